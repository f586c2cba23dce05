package router

import (
	"context"
	"slices"
	"switchboard/handoff"
	"switchboard/handoff/risk"
	"time"

	"go.uber.org/zap"
)

func (r *run) question(q handoff.Question) {
	controls, ok := r.attached.Agent.(handoff.Controls)
	if !ok || r.state.Merged { // others answer what others are asked
		return
	}
	_, replies := r.attached.Agent.(handoff.Replier)
	r.askCaller(askedQ{question: q, workspace: r.attached.Workspace, level: r.attached.VoiceApprovals, replies: replies}, controls)
}

// askCaller asks in the call, on the page, and later outside; when nobody answers for long it is a no.
func (r *run) askCaller(a askedQ, controls handoff.Controls) {
	q := a.question
	a.shown = handoff.RecordQuestion{
		ID: q.ID, Handoff: r.ID, Server: r.rec.Server, Title: r.rec.Title, Kind: q.Kind, Text: q.Text, Command: q.Command,
		Cwd: q.Cwd, Reason: q.Reason, Changes: q.Changes, Decisions: q.Decisions,
		Words: q.Words && a.replies, Asks: q.Asks, Beyond: q.Beyond, Asked: q.Asked,
	}
	a.shown.Tap = a.tapReason()
	a.shown.Voice = a.mayBeSaid()
	a.names = slices.Clone(r.router.registered(a.shown.Server).Names)
	if r.rec.Project != "" {
		a.names = append(a.names, r.rec.Project)
	}
	asked := r.known.ask(a, controls)
	if !r.publish(handoff.RunAsked{Question: asked.open()}) {
		r.router.notifyQuestion(r.caller, r.known, asked.shown.ID)
	}
	r.io.Go(func() { r.giveUpOn(asked) })
}

// giveUpOn declines a question that nobody answers in time. Where that does not go, because an answer is on
// its way or the agent takes none, it is tried again while the question is open: nobody else ends it.
func (r *run) giveUpOn(q askedQ) {
	t := time.NewTimer(r.router.giveUp)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-r.ioCtx.Done():
			return
		}
		if now := r.known.question(q.shown.ID); now == nil || now.shown.Label != q.shown.Label { // asked anew, it has its own time
			return
		}
		err := r.declineFor(q)
		if err == nil {
			r.publish(handoff.RunGaveUp{Question: q.shown})
			return
		}
		r.log.Info("question not declined", zap.Error(err))
		t.Reset(r.router.askAgain)
	}
}

// declineFor declines a question for a caller who does not answer.
func (r *run) declineFor(q askedQ) error {
	ctx, cancel := context.WithTimeout(r.ioCtx, ioTimeout)
	defer cancel()
	return r.router.decide(ctx, r.caller, q.shown.ID, decided{decision: handoff.DecisionDecline, by: ByNobody, tier: risk.Of(q.question, q.workspace)})
}
