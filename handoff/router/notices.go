package router

import (
	"switchboard/handoff"
	"switchboard/handoff/wording"
)

// notifyOutcome tells outside of calls, once, that work has ended and nobody heard how. What goes on
// without us has not ended: the next life of the process tells of it.
func (r *Router) notifyOutcome(c handoff.Caller, b *callerState, id string) {
	if r.notifier == nil {
		return
	}
	rec, first := b.notice(id)
	if !first || rec.Outcome == handoff.OutcomeUnknown && rec.Error != nil && rec.Error.Code == handoff.CodeShutdown {
		return
	}
	r.notifier.Notify(handoff.Notice{Caller: c, Kind: handoff.NoticeOutcome, Handoff: id, Server: rec.Server, Title: rec.Title, Text: rec.Spoken})
}

// notifyQuestion tells outside of calls, once, that an agent waits.
func (r *Router) notifyQuestion(c handoff.Caller, b *callerState, id handoff.QuestionID) {
	if r.notifier == nil {
		return
	}
	if q, first := b.notifyQuestion(id); first {
		r.notifier.Notify(handoff.Notice{Caller: c, Kind: handoff.NoticeQuestion, Handoff: q.shown.Handoff, Question: id, Server: q.shown.Server, Title: q.shown.Title, Text: wording.QuestionNotice(q.shown)})
	}
}
