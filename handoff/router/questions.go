package router

import (
	"slices"
	"strings"
	"switchboard/handoff"
	"switchboard/handoff/risk"
	"switchboard/handoff/wording"
)

// askedQ is a question of an agent with what is needed to judge an answer to it.
type askedQ struct {
	shown     handoff.RecordQuestion
	question  handoff.Question
	workspace string   // of the thread
	level     string   // what may be approved by voice there
	replies   bool     // the agent takes an answer in words
	names     []string // by which a reply may mean the machine
}

// tapReason says why a question can only be answered on the page, or "".
func (q askedQ) tapReason() string {
	switch {
	case q.question.Secret():
		return handoff.WhySecret
	case q.shown.Words:
		return ""
	case wording.OnlyThere(q.shown):
		return handoff.WhyNoWords
	case q.question.Beyond != "":
		return handoff.WhyBeyond
	}
	return risk.WhyNotVoice(q.level, risk.Of(q.question, q.workspace))
}

// open is the question as those see it who hear of the run.
func (q askedQ) open() handoff.OpenQuestion {
	return handoff.OpenQuestion{Shown: q.shown, Question: q.question, Workspace: q.workspace, Level: q.level, Names: q.names}
}

// mayBeSaid tells whether what the question waits for, a yes or words, can be given in the call.
func (q askedQ) mayBeSaid() bool {
	return q.shown.Tap == "" && (q.shown.Words || slices.Contains(q.shown.Decisions, handoff.DecisionAccept))
}

// openQuestion is a question that waits for the caller, with the agent that asked.
type openQuestion struct {
	askedQ                    // Set once
	controls handoff.Controls // Set once

	deciding bool // Guarded by the mu of callerState: an answer is on its way
	notified bool // Guarded by the mu of callerState: told outside of calls, which happens once
}

// ask shows a question and gives it its name.
func (b *callerState) ask(q askedQ, controls handoff.Controls) askedQ {
	b.mu.Lock()
	b.serial++
	q.shown.Label = "q" + itoa(b.serial)
	b.questions[q.shown.ID] = &openQuestion{askedQ: q, controls: controls}
	b.mu.Unlock()
	b.counts.asked(q.shown.Kind)
	shown := q.shown
	b.feed.Publish(handoff.PageEvent{Kind: handoff.EventQuestion, Handoff: shown.Handoff, Question: &shown})
	return q
}

// closeQuestion takes a question away; somebody answered it, or it was withdrawn.
func (b *callerState) closeQuestion(id handoff.QuestionID) *openQuestion {
	b.mu.Lock()
	q := b.questions[id]
	delete(b.questions, id)
	b.mu.Unlock()
	if q != nil {
		b.feed.Publish(handoff.PageEvent{Kind: handoff.EventClosed, Handoff: q.shown.Handoff, Closed: id})
	}
	return q
}

// closeQuestions takes away what a run asked and nobody answered yet.
func (b *callerState) closeQuestions(id string) []handoff.QuestionID {
	var closed []handoff.QuestionID
	for _, q := range b.questionsOf(id) {
		b.closeQuestion(q.shown.ID)
		closed = append(closed, q.shown.ID)
	}
	return closed
}

// questionsOf returns the open questions of a run, oldest first.
func (b *callerState) questionsOf(id string) []askedQ {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.questionsOfLocked(id)
}

func (b *callerState) questionsOfLocked(id string) []askedQ {
	var out []askedQ
	for _, q := range b.questions {
		if q.shown.Handoff == id {
			out = append(out, q.askedQ)
		}
	}
	slices.SortFunc(out, func(x, y askedQ) int { return compareQuestions(x.shown, y.shown) })
	return out
}

func compareQuestions(x, y handoff.RecordQuestion) int {
	if c := x.Asked.Compare(y.Asked); c != 0 {
		return c
	}
	return strings.Compare(string(x.ID), string(y.ID))
}

// offers tells whether the caller is being asked about a copy of a thread.
func (b *callerState) offers(t handoff.Target) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range b.questions {
		if rec := b.findLocked(q.shown.Handoff); q.shown.Kind == handoff.QuestionCopy && rec != nil && rec.Server == t.Server && rec.ThreadID == t.Thread {
			return true
		}
	}
	return false
}

// question returns an open question, or nil.
func (b *callerState) question(id handoff.QuestionID) *openQuestion {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.questions[id]
}

// questionNamed finds the question that a name means; without a name, the only one.
func (b *callerState) questionNamed(g handoff.Grant, name string) (*openQuestion, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []*openQuestion
	var names []string
	for _, q := range b.questions {
		if !g.AllowsServer(q.shown.Server) {
			continue
		}
		names = append(names, q.shown.Label)
		if name == "" || strings.EqualFold(name, q.shown.Label) || name == string(q.shown.ID) {
			found = append(found, q)
		}
	}
	slices.Sort(names)
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, &handoff.Error{Code: handoff.CodeMalformed, Subject: "more than one question is open, name one", Choices: names}
	case len(names) == 0 || name == "":
		return nil, handoff.Fault(handoff.CodeNotPending, "", "")
	}
	return nil, handoff.Fault(handoff.CodeNotPending, "", "open are "+strings.Join(names, ", "))
}

// notifyQuestion returns an open question that is to be told outside of calls. Asked again it returns none.
func (b *callerState) notifyQuestion(id handoff.QuestionID) (askedQ, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.questions[id]
	if q == nil || q.notified {
		return askedQ{}, false
	}
	q.notified = true
	return q.askedQ, true
}

// claimQuestion reserves a question for one answer, so that two taps never send two decisions.
func (b *callerState) claimQuestion(id handoff.QuestionID, d handoff.Decision) (*openQuestion, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.questions[id]
	if q == nil || q.deciding {
		return nil, handoff.Fault(handoff.CodeNotPending, "", "")
	}
	if err := q.mayAnswer(d); err != nil {
		return nil, err
	}
	q.deciding = true
	return q, nil
}

// releaseQuestion opens a question again whose answer could not be given.
func (b *callerState) releaseQuestion(q *openQuestion) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q.deciding = false
}

func (b *callerState) listQuestions() []handoff.RecordQuestion {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]handoff.RecordQuestion, 0, len(b.questions))
	for _, q := range b.questions {
		out = append(out, q.shown)
	}
	slices.SortFunc(out, compareQuestions)
	return out
}
