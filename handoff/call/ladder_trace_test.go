package call

import (
	"slices"
	"strings"

	"switchboard/handoff"
	"switchboard/handoff/call/calltest"
)

// What happens in a ladder is traced where the truth is: at the ledger, at the agents and at the voice
// model. [calltest.CheckTrace] holds it against the table.

// traceTurn notes that an agent began a turn, or took words into another.
func (w *world) traceTurn(client string) {
	w.note(calltest.Event{Kind: calltest.TraceTurn, ID: client})
}

// traceSaid notes what a voice model was given to say, and will say.
func (w *world) traceSaid(session string, works []string) {
	for _, id := range works {
		if w.Closing.Load() && w.open(id) { // only that its end will be told by the next life of the process
			continue
		}
		w.note(calltest.Event{Kind: calltest.TraceSaid, ID: id, Session: session})
	}
}

// tracePromise notes that a voice model was told of work that goes on.
func (w *world) tracePromise(session, work string) {
	w.note(calltest.Event{Kind: calltest.TracePromise, ID: work, Session: session})
}

// open reports whether the ledger waits for the outcome of a work.
func (w *world) open(id string) bool {
	for _, e := range w.Ledger.Entries() {
		if e.ClientID == id {
			return e.Status == handoff.StatusDispatching || e.Status == handoff.StatusStarted
		}
	}
	return false
}

func (w *world) note(e calltest.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, e)
}

// traceSteer finds the work whose words were taken into a running turn: agents are not told.
func (w *world) traceSteer(words string) {
	id := "nobody"
	for _, e := range w.Ledger.Entries() {
		if e.Status == handoff.StatusDispatching && strings.HasPrefix(words, e.Prompt) {
			id = e.ClientID
		}
	}
	w.traceTurn(id)
}

// checkTrace holds what happened against the rules. By now nothing may be left over.
func (w *world) checkTrace() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = programsLast(pageFirst(w.trace))
	if err := calltest.CheckTrace(append(w.trace, calltest.Event{Kind: calltest.TraceEnd})); err != nil {
		w.T.Error(err)
	}
}

// pageFirst puts what a page was told before the step that says so: it has its answer once that is written.
func pageFirst(trace []calltest.Event) []calltest.Event {
	for i, e := range trace {
		if e.Kind != calltest.TraceSaid || e.Session != "page" {
			continue
		}
		for j, step := range trace[:i] {
			if step.Kind == calltest.TraceWritten && step.ID == e.ID && step.Entry.Status == handoff.StatusDelivered {
				trace = slices.Insert(slices.Delete(trace, i, i+1), j, e)
				break
			}
		}
	}
	return trace
}

// programsLast puts what a program told right before the step that says so, or takes it out where none does. It tells
// what lists show, which may be before the ledger has it, and nothing is promised of that.
func programsLast(trace []calltest.Event) []calltest.Event {
	isTold := func(e calltest.Event) bool {
		return e.Kind == calltest.TraceSaid && strings.HasPrefix(e.Session, "program ")
	}
	var told []calltest.Event
	for _, e := range trace {
		if isTold(e) {
			told = append(told, e)
		}
	}
	trace = slices.DeleteFunc(trace, isTold)
	for _, e := range told {
		delivered := func(o calltest.Event) bool {
			return o.Kind == calltest.TraceWritten && o.ID == e.ID && o.Entry.Status == handoff.StatusDelivered
		}
		if i := slices.IndexFunc(trace, delivered); i >= 0 {
			trace = slices.Insert(trace, i, e)
		}
	}
	return trace
}
