package handoff

// notifyOutcome tells outside of calls, once, that work has ended and nobody heard how. What goes on
// without us has not ended: the next life of the process tells of it.
func (r *Router) notifyOutcome(c Caller, b *book, id string) {
	if r.notifier == nil {
		return
	}
	rec, first := b.notice(id)
	if !first || rec.Outcome == OutcomeUnknown && rec.Error != nil && rec.Error.Code == CodeShutdown {
		return
	}
	r.notifier.Notify(Notice{Caller: c, Kind: NoticeOutcome, Handoff: id, Server: rec.Server, Title: rec.Title, Text: rec.Spoken})
}

// notifyQuestion tells outside of calls, once, that an agent waits.
func (r *Router) notifyQuestion(c Caller, b *book, id QuestionID) {
	if r.notifier == nil {
		return
	}
	if q, first := b.notifyQuestion(id); first {
		r.notifier.Notify(Notice{Caller: c, Kind: NoticeQuestion, Handoff: q.shown.Handoff, Server: q.shown.Server, Title: q.shown.Title, Text: questionNotice(q.shown)})
	}
}
