package router

import (
	"cmp"
	"context"
	"fmt"
	"switchboard/handoff"
	"switchboard/handoff/phase"
	"switchboard/handoff/wording"
	"time"
)

// heldElsewhere: another program on that machine has the thread. A copy of it can be offered, once at a time.
func (w *work) heldElsewhere(e *handoff.Error) {
	if w.book.offers(w.target) {
		e = offered()
	}
	if _, copies := w.r.fleet.(handoff.Forker); !copies || e.Code == handoff.CodeNoConsent {
		w.fail(phase.FactAttachFailed, e)
		return
	}
	title := cmp.Or(w.rec.Title, e.Subject)
	w.rec = w.book.change(w.ID, func(r *handoff.Record) { r.Title = title })
	w.waits, w.elsewhere = handoff.WaitsYes, true
	w.Step(phase.FactAttachHeld)
}

// offered is why a session is not offered as a copy twice at a time.
func offered() *handoff.Error {
	return handoff.Fault(handoff.CodeNoConsent, "whether a copy of that session may be made", "")
}

// offer asks the caller whether to make a copy, as an agent asks for permission: heard, with evidence for
// a yes, or tapped on the page. The thread is not held meanwhile, as nothing is done with it.
func (w *work) offer() {
	w.r.lanes.leave(w.claims, w.ID)
	w.claims = nil
	q := handoff.Question{
		ID: handoff.QuestionID("copy:" + w.ID), Kind: handoff.QuestionCopy, Asked: time.Now(), Decisions: []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline},
		Text: fmt.Sprintf("May a copy of the session %s be made on %s, to go on there?", wording.SayTitle(w.rec.Title), w.rec.Server),
	}
	if w.elsewhere {
		q.Reason = "It is open in another program on that machine."
	}
	w.askCaller(askedQ{question: q, level: w.r.registered(w.target.Server).VoiceApprovals}, offer{w})
}

// An offer takes the caller's answer to a question of our own.
type offer struct{ work *work }

// Decide gives the answer to the work that offered.
func (o offer) Decide(_ context.Context, _ handoff.QuestionID, d handoff.Decision) error {
	fact := phase.FactCopyDeclined
	if d == handoff.DecisionAccept {
		fact = phase.FactCopyAllowed
	}
	o.work.order(order{fact: fact})
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

// copyThread makes the copy that the caller allowed.
func (w *work) copyThread(ctx context.Context) func() {
	forker, ok := w.r.fleet.(handoff.Forker)
	if !ok {
		err := handoff.Fault(handoff.CodeUnsupported, w.target.Server, "this fleet makes no copies")
		return func() { w.fail(phase.FactAttachFailed, err) }
	}
	at, err := forker.Fork(ctx, w.target, "")
	return w.made(at, err)
}

// copying makes the copy; it is theirs from here on.
func (w *work) copying() {
	w.waits = handoff.WaitsNot
	w.rec = w.book.change(w.ID, func(r *handoff.Record) { r.Why = handoff.WhyCopy })
	w.background(ioTimeout, w.copyThread)
}
