package call

import (
	"slices"
	"strings"

	"switchboard/handoff"
	"switchboard/handoff/ledger/ledgertest"
)

// What happens in a ladder is traced where the truth is: at the ledger, at the agents and at the voice
// model. [ledgertest.CheckTrace] holds it against the table.

// traceTurn notes that an agent began a turn, or took words into another.
func (w *world) traceTurn(client string) {
	w.note(ledgertest.Event{Kind: ledgertest.TraceTurn, ClientID: client})
}

// traceSaid notes what a voice model was given to say, and will say.
func (w *world) traceSaid(session string, works []string) {
	for _, id := range works {
		if w.Closing.Load() && w.open(id) { // only that its end will be told by the next life of the process
			continue
		}
		w.note(ledgertest.Event{Kind: ledgertest.TraceSaid, Key: id, Session: session})
	}
}

// tracePromise notes that a voice model was told of work that goes on.
func (w *world) tracePromise(session, work string) {
	w.note(ledgertest.Event{Kind: ledgertest.TracePromise, Key: work, Session: session})
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

func (w *world) note(e ledgertest.Event) {
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

// checkTrace holds what happened against the table. What was said is known by its work; the ledger knows
// that by a key. By now nothing may be left over.
func (w *world) checkTrace() {
	keys := map[string]string{}
	for _, e := range w.Ledger.Entries() {
		keys[e.ClientID] = e.Key
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.trace {
		if id := e.Step.Set.ClientID; id != "" { // also of what was never written
			keys[id] = e.Step.Key
		}
	}
	for i, e := range w.trace {
		if key := keys[e.Key]; (e.Kind == ledgertest.TraceSaid || e.Kind == ledgertest.TracePromise) && key != "" {
			w.trace[i].Key = key
		}
	}
	w.trace = programsLast(pageFirst(w.trace))
	if err := ledgertest.CheckTrace(append(w.trace, ledgertest.Event{Kind: ledgertest.TraceEnd})); err != nil {
		w.T.Error(err)
	}
}

// pageFirst puts what a page was told before the step that says so: it has its answer once that is written.
func pageFirst(trace []ledgertest.Event) []ledgertest.Event {
	for i, e := range trace {
		if e.Kind != ledgertest.TraceSaid || e.Session != "page" {
			continue
		}
		for j, step := range trace[:i] {
			if step.Kind == ledgertest.TraceStep && step.Step.Key == e.Key && step.Step.To == handoff.StatusDelivered {
				trace = slices.Insert(slices.Delete(trace, i, i+1), j, e)
				break
			}
		}
	}
	return trace
}

// programsLast puts what a program told right before the step that says so, or takes it out where none does. It tells
// what lists show, which may be before the ledger has it, and nothing is promised of that.
func programsLast(trace []ledgertest.Event) []ledgertest.Event {
	isTold := func(e ledgertest.Event) bool {
		return e.Kind == ledgertest.TraceSaid && strings.HasPrefix(e.Session, "program ")
	}
	var told []ledgertest.Event
	for _, e := range trace {
		if isTold(e) {
			told = append(told, e)
		}
	}
	trace = slices.DeleteFunc(trace, isTold)
	for _, e := range told {
		delivered := func(o ledgertest.Event) bool {
			return o.Kind == ledgertest.TraceStep && o.Step.Key == e.Key && o.Step.To == handoff.StatusDelivered
		}
		if i := slices.IndexFunc(trace, delivered); i >= 0 {
			trace = slices.Insert(trace, i, e)
		}
	}
	return trace
}
