package router

import (
	"time"

	"switchboard/handoff"
)

// Bounds of what a record keeps of answers: their number, and what was asked, in bytes. The newest stay.
const (
	maxAnswers  = 50
	maxAnswered = 1 << 10
)

// byElsewhere is how a question was answered, or withdrawn, where nobody here had a hand in it.
const byElsewhere = "elsewhere"

// answered notes on the record of a question how it was answered.
func (c *callerState) answered(q *question, d handoff.Decision, by string) {
	a := handoff.RecordAnswer{
		Kind: q.shown.Kind, Text: handoff.Clip(q.shown.Text, maxAnswered), Command: handoff.Clip(q.shown.Command, maxAnswered),
		Decision: d, By: by, At: time.Now(),
	}
	c.change(q.shown.Handoff, func(rec *handoff.Record) {
		rec.Answers = append(rec.Answers, a)
		rec.Answers = rec.Answers[max(0, len(rec.Answers)-maxAnswers):]
	})
}

// answeredElsewhere notes that an open question was closed by somebody else. One that is just being answered here is
// noted by who answers it.
func (c *callerState) answeredElsewhere(id handoff.QuestionID) {
	c.mu.Lock()
	q := c.questions[id]
	open := q != nil && q.state < questionClaimed
	c.mu.Unlock()
	if open {
		c.answered(q, "", byElsewhere)
	}
}
