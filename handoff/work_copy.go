package handoff

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// heldElsewhere: another program on that machine has the thread. A copy of it can be offered, once at a time.
func (w *work) heldElsewhere(e *Error) {
	if w.book.offers(w.target) {
		e = offered()
	}
	if _, copies := w.r.fleet.(Forker); !copies || e.Code == CodeNoConsent {
		w.fail(FactAttachFailed, e)
		return
	}
	title := cmp.Or(w.rec.Title, e.Subject)
	w.rec = w.book.change(w.id, func(r *Record) { r.Title = title })
	w.waits, w.elsewhere = waitsYes, true
	w.step(FactAttachHeld)
}

// offered is why a session is not offered as a copy twice at a time.
func offered() *Error {
	return Fault(CodeNoConsent, "whether a copy of that session may be made", "")
}

// offer asks the caller whether to make a copy, as an agent asks for permission: heard, with evidence for
// a yes, or tapped on the page. The thread is not held meanwhile, as nothing is done with it.
func (w *work) offer() {
	w.r.lanes.leave(w.claims, w.id)
	w.claims = nil
	q := Question{
		ID: QuestionID("copy:" + w.id), Kind: QuestionCopy, Asked: time.Now(), Decisions: []Decision{DecisionAccept, DecisionDecline},
		Text: fmt.Sprintf("May a copy of the session %s be made on %s, to go on there?", sayTitle(w.rec.Title), w.rec.Server),
	}
	if w.elsewhere {
		q.Reason = "It is open in another program on that machine."
	}
	w.askCaller(askedQ{question: q, level: w.r.registered(w.target.Server).VoiceApprovals}, offer{w})
}

// An offer takes the caller's answer to a question of our own.
type offer struct{ work *work }

// Decide gives the answer to the work that offered.
func (o offer) Decide(_ context.Context, _ QuestionID, d Decision) error {
	fact := FactCopyDeclined
	if d == DecisionAccept {
		fact = FactCopyAllowed
	}
	o.work.order(order{fact: fact})
	return nil
}

// Steer is refused: nothing runs.
func (o offer) Steer(context.Context, TurnID, []Part) error { return Fault(CodeNotPending, "", "") }

// Interrupt is refused: nothing runs.
func (o offer) Interrupt(context.Context, TurnID) error { return Fault(CodeNotPending, "", "") }

// copyThread makes the copy that the caller allowed.
func (w *work) copyThread(ctx context.Context) func() {
	forker, ok := w.r.fleet.(Forker)
	if !ok {
		err := Fault(CodeUnsupported, w.target.Server, "this fleet makes no copies")
		return func() { w.fail(FactAttachFailed, err) }
	}
	at, err := forker.Fork(ctx, w.target)
	return w.made(at, err)
}

// copying makes the copy; it is theirs from here on.
func (w *work) copying() {
	w.waits = waitsNot
	w.rec = w.book.change(w.id, func(r *Record) { r.Why = WhyCopy })
	w.background(ioTimeout, w.copyThread)
}
