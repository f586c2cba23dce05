package work

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/risk"
	"switchboard/handoff/wording"
)

// A Question is an open question of an agent, with all that is needed to judge and deliver an answer. Its exported
// fields are set once.
type Question struct {
	handoff.OpenQuestion
	Replies  bool             // the agent takes an answer in words
	Controls handoff.Controls // the agent; nil: the question is whether to make a copy

	thread    string    // of the handoff when it asked
	claimed   bool      // an answer is on its way to the agent
	elsewhere bool      // it was withdrawn, or answered by another client, while one of ours was on its way
	notified  bool      // a notice was sent outside of calls
	giveUp    time.Time // when it is declined unless somebody answers
}

// tapReason returns why a question can only be answered on the page; "": it can be answered by voice.
func (q *Question) tapReason() string {
	switch {
	case q.Question.Secret():
		return handoff.WhySecret
	case q.Question.URL != "":
		return handoff.WhyLink
	case q.Shown.Words && !q.Question.Picks():
		return ""
	case wording.OnlyThere(q.Shown):
		return handoff.WhyNoWords
	case q.Question.Person:
		return handoff.WhyPerson
	case q.Question.Beyond != "":
		return handoff.WhyBeyond
	case !q.Question.Sayable():
		return handoff.WhyLong
	}
	return risk.WhyNotVoice(q.Level, q.Tier())
}

// Tier returns how dangerous it is to allow what is asked.
func (q *Question) Tier() risk.Tier { return risk.Of(q.Question, q.Workspace) }

// mayBeSaid reports whether a yes, or an answer in words, can be given in the call.
func (q *Question) mayBeSaid() bool {
	return q.Shown.Tap == "" && (q.Shown.Words || slices.Contains(q.Shown.Decisions, handoff.DecisionAccept))
}

// ask asks the caller a question: in the call, on the page, and if no call takes it, by a notice. A question that
// nobody answers in time is declined.
func (s *State) ask(h *Handoff, q *Question) {
	a := q.Question
	s.labels++
	q.Shown = handoff.RecordQuestion{
		ID: a.ID, Label: "q" + strconv.Itoa(s.labels), Handoff: h.ID, Server: h.Server, Title: h.Title, Kind: a.Kind,
		Text: a.Text, Command: a.Command, Cwd: a.Cwd, Reason: a.Reason, Changes: a.Changes, Decisions: a.Decisions,
		Words: a.Words && q.Replies, Asks: a.Asks, Beyond: a.Beyond, There: a.There, Person: a.Person,
		Program: a.Program, URL: a.URL, Asked: a.Asked,
	}
	q.Shown.Tap = q.tapReason()
	q.Shown.Voice = q.mayBeSaid()
	allows := slices.Contains(a.Decisions, handoff.DecisionAccept)
	if q.Shown.Words {
		allows = a.Picks()
	}
	if allows && a.Kind != handoff.QuestionCopy {
		q.Shown.Risk = q.Tier().String()
	}
	q.giveUp = s.now.Add(s.cfg.GiveUp)
	q.Shown.GivesUp = q.giveUp
	machine := s.cfg.Registered(q.Shown.Server)
	q.Names, q.Others, q.Project = slices.Clone(machine.Names), machine.Others, h.Project
	s.questions[a.ID] = q
	s.cfg.Counter.Asked(a.Kind)
	shown := q.Shown
	s.cfg.Pages.Publish(handoff.PageEvent{Kind: handoff.PageQuestion, Handoff: h.ID, Question: &shown})
	if !s.publish(h, handoff.EventAsked{Question: q.OpenQuestion}) {
		s.noticeQuestion(q)
	}
}

// sorted returns the open questions, oldest first.
func (s *State) sorted() []*Question {
	return slices.SortedFunc(maps.Values(s.questions), func(x, y *Question) int {
		return cmp.Or(x.Shown.Asked.Compare(y.Shown.Asked), cmp.Compare(x.Shown.ID, y.Shown.ID))
	})
}

// questionsOf returns the open questions of a handoff, oldest first.
func (s *State) questionsOf(id string) []*Question {
	if len(s.questions) == 0 {
		return nil
	}
	return slices.DeleteFunc(s.sorted(), func(q *Question) bool { return q.Shown.Handoff != id })
}

// offers reports whether the caller is being asked whether to copy a thread.
func (s *State) offers(t handoff.Target) bool {
	for _, q := range s.questions {
		if q.Shown.Kind == handoff.QuestionCopy && q.Shown.Server == t.Server && q.thread == t.Thread {
			return true
		}
	}
	return false
}

// closeQuestion closes a question here, on the pages and in the calls; nil, and one in whose place the agent asks anew,
// are not open.
func (s *State) closeQuestion(q *Question) {
	if q == nil || s.questions[q.Shown.ID] != q {
		return
	}
	delete(s.questions, q.Shown.ID)
	s.cfg.Pages.Publish(handoff.PageEvent{Kind: handoff.PageClosed, Handoff: q.Shown.Handoff, Closed: q.Shown.ID})
	if h := s.find(q.Shown.Handoff); h != nil {
		s.publish(h, handoff.EventAnswered{Question: q.Shown.ID})
	}
}

func (s *State) closeQuestions(h *Handoff) {
	for _, q := range s.questionsOf(h.ID) {
		s.closeQuestion(q)
	}
}

// withdrawn closes a question that the agent withdrew, or that another client answered. If an answer of ours is on its
// way, [Decided] adds to the record which of the two counted.
func (s *State) withdrawn(id handoff.QuestionID) {
	q := s.questions[id]
	switch {
	case q == nil:
	case q.claimed:
		q.elsewhere = true
	default:
		s.answered(q, "", byElsewhere)
	}
	s.closeQuestion(q)
}

// ByNobody stands in [handoff.Decided] for a question that was given up.
const ByNobody = "nobody"

// byElsewhere stands in [handoff.RecordAnswer] for a question that the agent withdrew, or that another client answered.
const byElsewhere = "elsewhere"

// Bounds of the answers that a record keeps.
const (
	maxAnswers  = 50      // the newest
	maxAnswered = 1 << 10 // bytes of the text and of the command of a question
)

// answered adds an answer to the record of the handoff that asked.
func (s *State) answered(q *Question, d handoff.Decision, by string) {
	h := s.find(q.Shown.Handoff)
	if h == nil {
		return
	}
	s.show(h, func() {
		h.Answers = append(h.Answers, handoff.RecordAnswer{
			Kind: q.Shown.Kind, Decision: d, By: by, At: s.now,
			Text: handoff.Clip(q.Shown.Text, maxAnswered), Command: handoff.Clip(q.Shown.Command, maxAnswered),
		})
		h.Answers = h.Answers[max(0, len(h.Answers)-maxAnswers):]
	})
}

// Claim reserves a question for one answer, so that two taps never send two decisions. A stop also stops the work.
// Question and Err are results; Err says why the question cannot be answered in this way.
type Claim struct {
	ID       handoff.QuestionID
	Decision handoff.Decision
	Question *Question
	Record   handoff.Record // of the handoff that asks
	Err      *handoff.Error
}

func (c *Claim) apply(s *State) {
	q := s.questions[c.ID]
	if q == nil || q.claimed {
		c.Err = handoff.Fault(handoff.CodeNotPending, "", "")
		return
	}
	possible := slices.Contains(q.Shown.Decisions, c.Decision)
	if c.Decision == handoff.DecisionWords {
		possible = q.Question.Words && q.Replies
	}
	if !possible {
		c.Err = handoff.Fault(handoff.CodeMalformed,
			"this question cannot be answered with "+handoff.Clip(string(c.Decision), 40), "")
		return
	}
	q.claimed = true
	c.Question = q
	if h := s.find(q.Shown.Handoff); h != nil {
		c.Record = h.brief()
		if c.Decision == handoff.DecisionStop {
			s.stop(h)
		}
	}
}

// Still asks whether a question is open. Open is the result.
type Still struct {
	Question *Question
	Open     bool
}

func (q *Still) apply(s *State) { q.Open = s.questions[q.Question.Shown.ID] == q.Question }

// Decided says what came of an answer to a claimed question.
type Decided struct {
	Question *Question
	handoff.Decided
	Err error // of giving it to the agent
}

func (d *Decided) apply(s *State) {
	q := d.Question
	switch {
	case d.Err == nil:
		s.cfg.Counter.Answered(d.By)
		s.answered(q, d.Decision, d.By)
		s.closeQuestion(q)
		switch {
		case d.By == ByNobody:
			if h := s.find(q.Shown.Handoff); h != nil {
				s.publish(h, handoff.EventGaveUp{Question: q.Shown})
			}
		case d.Call == "":
			s.byHand(q.Shown.Handoff,
				handoff.EventByHand{Deed: handoff.DeedAnswer, Question: q.Shown, Decision: d.Decision})
		}
	case q.elsewhere:
		s.answered(q, "", byElsewhere)
	case handoff.CodeOf(d.Err) == handoff.CodeNotPending:
		s.closeQuestion(q)
	default:
		q.claimed = false
	}
}

// Unanswered says that a question could not be declined, because another answer is on its way or the agent is away: it
// is declined later, as long as it is open.
type Unanswered struct{ Question *Question }

func (u *Unanswered) apply(s *State) {
	if s.questions[u.Question.Shown.ID] == u.Question {
		u.Question.giveUp = s.now.Add(s.cfg.AskAgain)
	}
}

// Unheard says that nobody answers a question in the call: a notice is sent outside of it.
type Unheard struct{ ID handoff.QuestionID }

func (u *Unheard) apply(s *State) {
	if q := s.questions[u.ID]; q != nil {
		s.noticeQuestion(q)
	}
}

// noticeQuestion sends a notice outside of calls, once, that an agent asks a question.
func (s *State) noticeQuestion(q *Question) {
	if q.notified {
		return
	}
	q.notified = true
	s.do(Notice{handoff.Notice{
		Caller: s.cfg.Caller, Kind: handoff.NoticeQuestion, Handoff: q.Shown.Handoff, Question: q.Shown.ID,
		Server: q.Shown.Server, Title: q.Shown.Title, Text: wording.QuestionNotice(q.Shown),
	}})
}

// Asking asks for the open questions that a grant may see, oldest first. Questions is the result.
type Asking struct {
	Grant     handoff.Grant
	Questions []*Question
}

func (a *Asking) apply(s *State) {
	for _, q := range s.sorted() {
		if s.maySee(a.Grant, q) {
			a.Questions = append(a.Questions, q)
		}
	}
}

// maySee reports whether a grant may see a question: it may answer it, or see the work that asks it.
func (s *State) maySee(g handoff.Grant, q *Question) bool {
	if !g.AllowsServer(q.Shown.Server) {
		return false
	}
	h := s.find(q.Shown.Handoff)
	return g.May(handoff.ActDecline) == nil || h != nil && h.Shown(g)
}

// Named finds a question by its label or id; "" finds the only one. all is sorted, oldest first.
func Named(all []*Question, name string) (*Question, error) {
	var matches []*Question
	var labels []string
	for _, q := range all {
		labels = append(labels, q.Shown.Label)
		if name == "" || strings.EqualFold(name, q.Shown.Label) || name == string(q.Shown.ID) {
			matches = append(matches, q)
		}
	}
	switch {
	case len(matches) == 1:
		return matches[0], nil
	case len(matches) > 1:
		return nil, &handoff.Error{
			Code: handoff.CodeMalformed, Subject: "more than one question is open, name one", Choices: labels,
		}
	case len(labels) == 0 || name == "":
		return nil, handoff.Fault(handoff.CodeNotPending, "", "")
	}
	return nil, handoff.Fault(handoff.CodeNotPending, "", "open are "+strings.Join(labels, ", "))
}
