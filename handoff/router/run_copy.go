package router

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/phase"
	"switchboard/handoff/wording"
)

// heldElsewhere: another program on that machine has the thread. A copy of it can be offered, once at a time.
func (r *run) heldElsewhere(e *handoff.Error) (phase.Fact, *handoff.Error) {
	if r.caller.questions.offers(r.target) {
		return phase.FactAttachFailed, offered()
	}
	if _, copies := r.router.fleet.(handoff.Forker); !copies {
		return phase.FactAttachFailed, e
	}
	title := cmp.Or(r.rec.Title, e.Subject)
	r.show(func(rec *handoff.Record) { rec.Title = title })
	r.waits, r.elsewhere = handoff.WaitsYes, true
	return phase.FactAttachHeld, e
}

// offered is why a session is not offered as a copy twice at a time.
func offered() *handoff.Error {
	return handoff.Fault(handoff.CodeNoConsent, "whether a copy of that session may be made", "")
}

// offer asks the caller whether to make a copy, as an agent asks for permission: heard, with evidence for
// a yes, or tapped on the page. The thread is not held meanwhile, as nothing is done with it.
func (r *run) offer(ctx context.Context) (phase.Fact, *handoff.Error) {
	r.router.queues.leave(r.claims, r.ID)
	r.claims = nil
	q := handoff.Question{
		ID: handoff.QuestionID("copy:" + r.ID), Kind: handoff.QuestionCopy, Asked: time.Now(), Decisions: []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline},
		Text: fmt.Sprintf("May a copy of the session %s be made on %s, to go on there?", wording.SayTitle(r.rec.Title), r.rec.Server),
	}
	if r.elsewhere {
		q.Reason = "It is open in another program on that machine."
	}
	r.askCaller(&question{asked: q, level: r.router.registered(r.target.Server).VoiceApprovals, thread: r.target.Thread, controls: offer{r}})
	r.outside(ctx, func() { <-ctx.Done() }) // until the answer comes, from outside
	return phase.FactNothing, nil
}

// An offer takes the caller's answer to a question of our own.
type offer struct{ run *run }

// Decide gives the answer to the run that offered.
func (o offer) Decide(_ context.Context, _ handoff.QuestionID, d handoff.Decision) error {
	fact := phase.FactCopyDeclined
	if d == handoff.DecisionAccept {
		fact = phase.FactCopyAllowed
	}
	o.run.tell(fact, nil)
	return nil
}

// Steer is refused: nothing runs.
func (o offer) Steer(context.Context, handoff.TurnID, []handoff.Part) error {
	return handoff.Fault(handoff.CodeNotPending, "", "")
}

// Interrupt is refused: nothing runs.
func (o offer) Interrupt(context.Context, handoff.TurnID) error {
	return handoff.Fault(handoff.CodeNotPending, "", "")
}

// copyThread makes the copy that the caller allowed, or asked for with the words; it is theirs from here on.
func (r *run) copyThread(ctx context.Context) (phase.Fact, *handoff.Error) {
	r.waits = handoff.WaitsNot
	r.show(func(rec *handoff.Record) { rec.Why = handoff.WhyCopy })
	target, fleet := r.target, r.router.fleet
	return r.made(ctx, func(ctx context.Context) (handoff.Attached, error) {
		if forker, ok := fleet.(handoff.Ephemeral); ok && r.copiesAside() {
			return forker.ForkEphemeral(ctx, target, r.req.After)
		}
		if forker, ok := fleet.(handoff.Forker); ok && !r.copiesAside() {
			return forker.Fork(ctx, target, r.req.After)
		}
		return handoff.Attached{}, handoff.Fault(handoff.CodeUnsupported, target.Server, "this fleet makes no such copies")
	})
}
