package router

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/risk"
	"switchboard/handoff/wording"
)

// questions holds the open questions of a caller's agents.
type questions struct {
	pages  *handoff.Feed // Set once: what pages follow
	counts *Counts       // Set once

	mu     sync.Mutex
	open   map[handoff.QuestionID]*question // Guarded by mu
	serial int                              // Guarded by mu: number of the last label
}

// A question is an open question of an agent, with all that is needed to judge and deliver an answer.
type question struct {
	handoff.OpenQuestion                  // Set once; its Shown by ask
	replies              bool             // Set once: the agent takes an answer in words
	thread               string           // Set once: of the run when it asked
	controls             handoff.Controls // Set once: the agent

	claimed  bool        // Guarded by the mu of questions: an answer is on its way to the agent
	notified bool        // Guarded by the mu of questions: a notice was sent outside of calls
	giveUp   *time.Timer // Guarded by the mu of questions: declines it when nobody answers; nil: never
}

// tapReason returns why a question can only be answered on the page; "": it can be answered by voice.
func (q *question) tapReason() string {
	switch {
	case q.Question.Secret():
		return handoff.WhySecret
	case q.Shown.Words:
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
	return risk.WhyNotVoice(q.Level, q.tier())
}

// tier returns how dangerous it is to allow what is asked.
func (q *question) tier() risk.Tier { return risk.Of(q.Question, q.Workspace) }

// mayBeSaid reports whether a yes, or an answer in words, can be given in the call.
func (q *question) mayBeSaid() bool {
	return q.Shown.Tap == "" && (q.Shown.Words || slices.Contains(q.Shown.Decisions, handoff.DecisionAccept))
}

// ask opens a question, gives it its label, and shows it on the pages. If it is still open after wait, giveUp is
// called.
func (a *questions) ask(q *question, wait time.Duration, giveUp func()) {
	a.mu.Lock()
	a.serial++
	q.Shown.Label = "q" + strconv.Itoa(a.serial)
	if giveUp != nil {
		q.giveUp = time.AfterFunc(wait, giveUp)
	}
	a.open[q.Shown.ID] = q
	a.mu.Unlock()
	a.counts.asks.Add(q.Shown.Kind)
	shown := q.Shown
	a.pages.Publish(handoff.PageEvent{Kind: handoff.EventQuestion, Handoff: shown.Handoff, Question: &shown})
}

// waitOn lets giveUp be called again after d, if the question is still open.
func (a *questions) waitOn(q *question, d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open[q.Shown.ID] == q && q.giveUp != nil {
		q.giveUp.Reset(d)
	}
}

// close closes a question, and returns it, or nil if it was not open.
func (a *questions) close(id handoff.QuestionID) *question {
	a.mu.Lock()
	q := a.open[id]
	delete(a.open, id)
	if q != nil && q.giveUp != nil {
		q.giveUp.Stop()
	}
	a.mu.Unlock()
	if q != nil {
		a.pages.Publish(handoff.PageEvent{Kind: handoff.EventClosed, Handoff: q.Shown.Handoff, Closed: id})
	}
	return q
}

// of returns the open questions of a run, oldest first.
func (a *questions) of(id string) []*question {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []*question
	for _, q := range a.open {
		if q.Shown.Handoff == id {
			out = append(out, q)
		}
	}
	slices.SortFunc(out, func(x, y *question) int { return compareQuestions(x.Shown, y.Shown) })
	return out
}

func compareQuestions(x, y handoff.RecordQuestion) int {
	return cmp.Or(x.Asked.Compare(y.Asked), cmp.Compare(x.ID, y.ID))
}

// offers reports whether the caller is being asked whether to copy a thread.
func (a *questions) offers(t handoff.Target) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, q := range a.open {
		if q.Shown.Kind == handoff.QuestionCopy && q.Shown.Server == t.Server && q.thread == t.Thread {
			return true
		}
	}
	return false
}

// get returns an open question, or nil.
func (a *questions) get(id handoff.QuestionID) *question {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open[id]
}

// named finds an open question that may be seen, by its label or id; "" finds the only one.
func (a *questions) named(name string, may func(handoff.RecordQuestion) bool) (*question, error) {
	a.mu.Lock()
	open := slices.Collect(maps.Values(a.open))
	a.mu.Unlock()
	var matches []*question
	var labels []string
	for _, q := range open {
		if !may(q.Shown) {
			continue
		}
		labels = append(labels, q.Shown.Label)
		if name == "" || strings.EqualFold(name, q.Shown.Label) || name == string(q.Shown.ID) {
			matches = append(matches, q)
		}
	}
	slices.Sort(labels)
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

// notify returns an open question for a notice outside of calls, and true: once for each question, then false.
func (a *questions) notify(id handoff.QuestionID) (*question, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.open[id]
	if q == nil || q.notified {
		return nil, false
	}
	q.notified = true
	return q, true
}

// claim reserves a question for one answer, so that two taps never send two decisions. It fails if the question cannot
// be answered in this way.
func (a *questions) claim(id handoff.QuestionID, d handoff.Decision) (*question, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.open[id]
	if q == nil || q.claimed {
		return nil, handoff.Fault(handoff.CodeNotPending, "", "")
	}
	possible := slices.Contains(q.Shown.Decisions, d)
	if d == handoff.DecisionWords {
		possible = q.Question.Words && q.replies
	}
	if !possible {
		return nil, handoff.Fault(
			handoff.CodeMalformed, "this question cannot be answered with "+handoff.Clip(string(d), 40), "")
	}
	q.claimed = true
	return q, nil
}

// release undoes claim, for an answer that could not be given.
func (a *questions) release(q *question) {
	a.mu.Lock()
	defer a.mu.Unlock()
	q.claimed = false
}

// list returns all open questions, oldest first.
func (a *questions) list() []*question {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.SortedFunc(maps.Values(a.open), func(x, y *question) int { return compareQuestions(x.Shown, y.Shown) })
}

func (a *questions) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.open)
}

// unclaimed reports whether no answer to a question is on its way.
func (a *questions) unclaimed(q *question) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !q.claimed
}

// ask asks the caller a question of a run's agent: in the call, on the page, and if no call takes it, by a notice. A
// question that nobody answers in time is declined.
func (c *caller) ask(r *run, q *question) {
	a := q.Question
	q.Shown = handoff.RecordQuestion{
		ID: a.ID, Handoff: r.ID, Server: r.rec.Server, Title: r.rec.Title, Kind: a.Kind, Text: a.Text, Command: a.Command,
		Cwd: a.Cwd, Reason: a.Reason, Changes: a.Changes, Decisions: a.Decisions,
		Words: a.Words && q.replies, Asks: a.Asks, Beyond: a.Beyond, There: a.There, Person: a.Person,
		Program: a.Program, Asked: a.Asked,
	}
	q.Shown.Tap = q.tapReason()
	q.Shown.Voice = q.mayBeSaid()
	if !q.Shown.Words && a.Kind != handoff.QuestionCopy && slices.Contains(a.Decisions, handoff.DecisionAccept) {
		q.Shown.Risk = q.tier().String()
	}
	q.Shown.GivesUp = time.Now().Add(c.router.cfg.GiveUp)
	machine := c.router.registered(q.Shown.Server)
	q.Names, q.Others, q.Project = slices.Clone(machine.Names), machine.Others, r.rec.Project
	c.questions.ask(q, c.router.cfg.GiveUp, func() {
		c.router.jobs.start(func(ctx context.Context) { c.giveUpOn(ctx, q) })
	})
	if !r.publish(handoff.RunAsked{Question: q.OpenQuestion}) {
		c.notifyQuestion(q.Shown.ID)
	}
}

// giveUpOn declines a question that nobody answered in time. If that fails, because another answer is on its way or the
// agent is away, it tries again after AskAgain, as long as the question is open.
func (c *caller) giveUpOn(ctx context.Context, q *question) {
	if c.questions.get(q.Shown.ID) != q { // closed; if the agent asked it again, that is another question
		return
	}
	limited, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	err := c.decide(limited, q.Shown.ID, handoff.Decided{Decision: handoff.DecisionDecline, By: byNobody})
	if err == nil {
		c.feed.publish(q.Shown.Handoff, handoff.RunGaveUp{Question: q.Shown})
		return
	}
	c.router.cfg.Log.Info("question not declined", zap.String("handoff", q.Shown.Handoff), zap.Error(err))
	c.questions.waitOn(q, c.router.cfg.AskAgain)
}

// closeQuestions closes all open questions of a run, here, on the pages and in the calls.
func (c *caller) closeQuestions(id string) {
	for _, q := range c.questions.of(id) {
		c.closeQuestion(q.Shown.ID)
	}
}
