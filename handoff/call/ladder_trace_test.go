package call

import (
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
		if w.closing.Load() && w.open(id) { // only that its end will be told by the next life of the process
			continue
		}
		w.note(ledgertest.Event{Kind: ledgertest.TraceSaid, Key: id, Session: session})
	}
}

// open tells whether the ledger waits for the outcome of a work.
func (w *world) open(id string) bool {
	for _, e := range w.ledger.Entries() {
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
	for _, e := range w.ledger.Entries() {
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
	for _, e := range w.ledger.Entries() {
		keys[e.ClientID] = e.Key
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, e := range w.trace {
		if key := keys[e.Key]; e.Kind == ledgertest.TraceSaid && key != "" {
			w.trace[i].Key = key
		}
	}
	if err := ledgertest.CheckTrace(append(w.trace, ledgertest.Event{Kind: ledgertest.TraceEnd})); err != nil {
		w.T.Error(err)
	}
}
