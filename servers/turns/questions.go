package turns

import (
	"slices"

	"switchboard/handoff"
)

// maxQuestions is how many open questions a thread may have here. A turn waits at one or two. Further ones are left to
// the other clients of the server.
const maxQuestions = 64

// An Open is a question that is not answered. Wire is what its kind of server needs to answer it.
type Open[Wire any] struct {
	handoff.Question
	Wire     Wire
	Taken    bool // an answer is being sent; changed by Take and GiveBack
	reported bool // the follower of its turn has it
}

// Questions are the open questions of one thread. The zero value has none.
type Questions[Wire any] struct {
	open []*Open[Wire] // in the order of their Add
}

func (s *Questions[Wire]) index(id handoff.QuestionID) int {
	return slices.IndexFunc(s.open, func(q *Open[Wire]) bool { return q.ID == id })
}

// Add adds a question, unless a question with its id is open. It returns false if there are too many.
func (s *Questions[Wire]) Add(q handoff.Question, wire Wire) bool {
	if s.index(q.ID) >= 0 {
		return true
	}
	if len(s.open) >= maxQuestions {
		return false
	}
	s.open = append(s.open, &Open[Wire]{Question: q, Wire: wire})
	return true
}

// Tell returns the questions of a turn that are not reported yet, oldest first, and marks them as reported.
func (s *Questions[Wire]) Tell(turn handoff.TurnID) []handoff.Question {
	var fresh []handoff.Question
	for _, q := range s.open {
		if q.Turn == turn && !q.reported {
			q.reported = true
			fresh = append(fresh, q.Question)
		}
	}
	sortByAge(fresh)
	return fresh
}

// sortByAge sorts questions, oldest first. It is stable.
func sortByAge(all []handoff.Question) {
	slices.SortStableFunc(all, func(a, b handoff.Question) int { return a.Asked.Compare(b.Asked) })
}

// Untold returns the questions that are not reported, oldest first.
func (s *Questions[Wire]) Untold() []handoff.Question {
	var all []handoff.Question
	for _, q := range s.open {
		if !q.reported {
			all = append(all, q.Question)
		}
	}
	sortByAge(all)
	return all
}

// Retell marks the questions of a turn as not reported, because its follower has lost them.
func (s *Questions[Wire]) Retell(turn handoff.TurnID) {
	for _, q := range s.open {
		if q.Turn == turn {
			q.reported = false
		}
	}
}

// Move gives the questions of a turn to another one, whose follower does not know them.
func (s *Questions[Wire]) Move(from, to handoff.TurnID) {
	for _, q := range s.open {
		if q.Turn == from {
			q.Turn, q.reported = to, false
		}
	}
}

// Close removes the questions that match, and returns those of them that were reported.
func (s *Questions[Wire]) Close(match func(*Open[Wire]) bool) []handoff.Question {
	var reported []handoff.Question
	s.open = slices.DeleteFunc(s.open, func(q *Open[Wire]) bool {
		if !match(q) {
			return false
		}
		if q.reported {
			reported = append(reported, q.Question)
		}
		return true
	})
	return reported
}

// Len returns the number of open questions.
func (s *Questions[Wire]) Len() int { return len(s.open) }

// Take returns a reported question to be answered, and marks it as taken; false: there is none, or it is taken.
func (s *Questions[Wire]) Take(id handoff.QuestionID) (*Open[Wire], bool) {
	i := s.index(id)
	if i < 0 || !s.open[i].reported || s.open[i].Taken {
		return nil, false
	}
	s.open[i].Taken = true
	return s.open[i], true
}

// GiveBack marks a question as not taken. Its answer must not have been sent.
func (s *Questions[Wire]) GiveBack(q *Open[Wire]) { q.Taken = false }
