package handoff

import (
	"context"

	"go.uber.org/zap"
)

// A Notifier reaches a caller who is not in a call.
type Notifier interface {
	// Notify tells once about something that nobody heard. An error is logged; it is not tried again.
	Notify(ctx context.Context, n Notice) error
}

// NoticeKind is what a [Notice] is about.
type NoticeKind string

// The kinds of notices.
const (
	NoticeOutcome  NoticeKind = "outcome"  // work ended
	NoticeQuestion NoticeKind = "question" // an agent waits for an answer
)

// A Notice is what a caller who is not in a call should know.
type Notice struct {
	Caller  Caller     `json:"-"`
	Kind    NoticeKind `json:"kind"`
	Handoff string     `json:"id"`
	Server  string     `json:"server"`
	Title   string     `json:"title,omitempty"`
	Text    string     `json:"text"` // a sentence for a person
}

// notify sends a notice in the background.
func (r *Router) notify(n Notice) {
	if r.notifier == nil {
		return
	}
	r.start(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		if err := r.notifier.Notify(ctx, n); err != nil {
			r.log.Warn("notice not sent", zap.String("handoff", n.Handoff), zap.Error(err))
		}
	})
}

// notifyQuestion tells once outside of calls that an agent waits.
func (r *Router) notifyQuestion(c Caller, b *book, q askedQ) {
	if b.notifyQuestion(q.shown.ID) {
		r.notify(Notice{Caller: c, Kind: NoticeQuestion, Handoff: q.shown.Handoff, Server: q.shown.Server, Title: q.shown.Title, Text: questionNotice(q)})
	}
}
