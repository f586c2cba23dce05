package router

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/risk"
)

// question takes what the agent asks.
func (r *run) question(q handoff.Question) {
	controls, ok := r.attached.Agent.(handoff.Controls)
	if !ok || r.state.Merged { // others answer what others are asked
		return
	}
	_, replies := r.attached.Agent.(handoff.Replier)
	r.askCaller(&question{asked: q, workspace: r.attached.Workspace, level: r.attached.VoiceApprovals, replies: replies, controls: controls})
}

// askCaller asks in the call, on the page, and later outside; when nobody answers for long it is a no.
func (r *run) askCaller(q *question) {
	a := q.asked
	q.shown = handoff.RecordQuestion{
		ID: a.ID, Handoff: r.ID, Server: r.rec.Server, Title: r.rec.Title, Kind: a.Kind, Text: a.Text, Command: a.Command,
		Cwd: a.Cwd, Reason: a.Reason, Changes: a.Changes, Decisions: a.Decisions,
		Words: a.Words && q.replies, Asks: a.Asks, Beyond: a.Beyond, Asked: a.Asked,
	}
	q.shown.Tap = q.tapReason()
	q.shown.Voice = q.mayBeSaid()
	if !q.shown.Words && a.Kind != handoff.QuestionCopy && slices.Contains(a.Decisions, handoff.DecisionAccept) {
		q.shown.Risk = risk.Of(a, q.workspace).String()
	}
	q.shown.GivesUp = time.Now().Add(r.router.giveUp)
	q.names, q.project = slices.Clone(r.router.registered(q.shown.Server).Names), r.rec.Project
	r.caller.questions.ask(q, r.router.giveUp, func() {
		r.router.jobs.start(func(ctx context.Context) { r.giveUpOn(ctx, q) })
	})
	if !r.publish(handoff.RunAsked{Question: q.open()}) {
		r.caller.notifyQuestion(q.shown.ID)
		return
	}
	r.caller.questions.announced(q)
}

// giveUpOn declines a question that nobody answered in time. Where that does not go, because an answer is on
// its way or the agent takes none, it is tried again while the question is open: nobody else ends it.
func (r *run) giveUpOn(ctx context.Context, q *question) {
	if r.caller.questions.get(q.shown.ID) != q { // asked anew, it has its own time
		return
	}
	limited, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	err := r.caller.decide(limited, q.shown.ID, decided{decision: handoff.DecisionDecline, by: byNobody, tier: risk.Of(q.asked, q.workspace)})
	if err == nil {
		r.publish(handoff.RunGaveUp{Question: q.shown})
		return
	}
	r.log.Info("question not declined", zap.Error(err))
	r.caller.questions.waitOn(q, r.router.askAgain)
}

// closeQuestions takes away everywhere what the agent asked and nobody answered yet.
func (r *run) closeQuestions() {
	for _, q := range r.caller.questions.of(r.ID) {
		r.caller.closed(q.shown.ID)
	}
}
