package turns

import (
	"slices"

	"switchboard/handoff"
)

// maxQuestions is how many open questions of one thread are kept. A turn waits at one or two; further ones are
// left to the other clients of its server.
const maxQuestions = 64

// An Open question is one that nobody has answered. Wire is what its kind of server needs to answer it.
type Open[Wire any] struct {
	handoff.Question
	Wire  Wire
	Taken bool // an answer is on its way; changed by Take and GiveBack
	told  bool // whoever follows the turn knows of it
}

// Questions are the open questions of one thread. The zero value has none.
type Questions[Wire any] struct {
	open []*Open[Wire] // in the order of their Add
}

func (s *Questions[Wire]) index(id handoff.QuestionID) int {
	return slices.IndexFunc(s.open, func(q *Open[Wire]) bool { return q.ID == id })
}

// Add keeps a question. It reports false when there are too many. One that is asked again is the same.
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

// Tell returns the questions of a turn that were not told yet, oldest first. Now they were.
func (s *Questions[Wire]) Tell(turn handoff.TurnID) []handoff.Question {
	var fresh []handoff.Question
	for _, q := range s.open {
		if q.Turn == turn && !q.told {
			q.told = true
			fresh = append(fresh, q.Question)
		}
	}
	sortByAge(fresh)
	return fresh
}

// sortByAge keeps the order of those that were asked at the same time.
func sortByAge(all []handoff.Question) {
	slices.SortStableFunc(all, func(a, b handoff.Question) int { return a.Asked.Compare(b.Asked) })
}

// Untold returns the questions that nobody here was told, oldest first.
func (s *Questions[Wire]) Untold() []handoff.Question {
	var all []handoff.Question
	for _, q := range s.open {
		if !q.told {
			all = append(all, q.Question)
		}
	}
	sortByAge(all)
	return all
}

// Retell has the questions of a turn told again, because whoever followed it lost them.
func (s *Questions[Wire]) Retell(turn handoff.TurnID) {
	for _, q := range s.open {
		if q.Turn == turn {
			q.told = false
		}
	}
}

// Close forgets the questions that match and returns those that were told.
func (s *Questions[Wire]) Close(match func(*Open[Wire]) bool) []handoff.Question {
	var told []handoff.Question
	s.open = slices.DeleteFunc(s.open, func(q *Open[Wire]) bool {
		if !match(q) {
			return false
		}
		if q.told {
			told = append(told, q.Question)
		}
		return true
	})
	return told
}

// Len is how many there are.
func (s *Questions[Wire]) Len() int { return len(s.open) }

// Take gives a question that was told to the one who answers it. Nobody else gets it until it is given back.
func (s *Questions[Wire]) Take(id handoff.QuestionID) (*Open[Wire], bool) {
	i := s.index(id)
	if i < 0 || !s.open[i].told || s.open[i].Taken {
		return nil, false
	}
	s.open[i].Taken = true
	return s.open[i], true
}

// GiveBack returns a question whose answer certainly never left.
func (s *Questions[Wire]) GiveBack(q *Open[Wire]) { q.Taken = false }
