package ledgertest

import (
	"cmp"
	"fmt"
	"slices"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// A LedgerEventKind is the kind of an [Event].
type LedgerEventKind int

// The kinds of recorded events.
const (
	TraceStep    LedgerEventKind = iota // the store answered a step, or did not
	TraceTurn                           // an agent began a turn, or took words into a running one
	TracePromise                        // a voice session was told that the work will be done
	TraceSaid                           // an outcome was said in a voice session
	TraceEmpty                          // the store came back empty
	TraceEnd                            // all open work had time to end: nothing may be lost
)

// An Event is one line of a trace: an answer of the store, or what really happened at an agent or a voice model. The
// events of one handoff are in the order in which they happened.
type Event struct {
	Kind LedgerEventKind

	Step  ledger.Step  // of a step
	Entry ledger.Entry // what came back
	Code  handoff.Code // of its error, "" for none; with unreachable the step may be written or not

	ClientID string // of a turn: the [handoff.Turn.ID] that it carries
	Key      string // of the outcome that was said, or of the promise
	Session  string // in which the outcome was said
}

// CheckTrace returns what is wrong with a trace: an answer of the store that the table does not allow; a turn that ran
// twice, or without a step to dispatching; or an outcome that was said before it was written although the store
// answered, that is delivered and was not said, that was said twice in one session, or that was never said.
func CheckTrace(events []Event) error {
	c := &traceCheck{
		entries: map[string][]ledger.Entry{}, granted: map[string]bool{}, ran: map[string]bool{},
		said: map[[2]string]bool{}, heard: map[string]bool{}, mute: map[string]bool{}, promised: map[string]bool{},
	}
	for i, e := range events {
		if err := c.take(e); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
	}
	return nil
}

// traceCheck replays a run.
type traceCheck struct {
	entries map[string][]ledger.Entry // by key, what may be in the store: several after a lost answer
	granted map[string]bool           // client ids that may be started
	ran     map[string]bool           // client ids that were
	said    map[[2]string]bool        // session and key
	heard   map[string]bool           // keys
	mute    map[string]bool           // keys whose newest step the store did not answer

	promised map[string]bool // keys
}

func (c *traceCheck) take(e Event) error {
	switch e.Kind {
	case TraceStep:
		return c.Step(e)
	case TraceTurn:
		if !c.granted[e.ClientID] {
			return fmt.Errorf("the turn of %q ran without a step to dispatching", e.ClientID)
		}
		if c.ran[e.ClientID] {
			return fmt.Errorf("the turn of %q ran twice", e.ClientID)
		}
		c.ran[e.ClientID] = true
	case TracePromise:
		c.promised[e.Key] = true
	case TraceSaid:
		at := [2]string{e.Session, e.Key}
		if c.said[at] {
			return fmt.Errorf("the outcome of %q was said twice in session %q", e.Key, e.Session)
		}
		unwritten := func(e ledger.Entry) bool { return ledger.Order[e.Status] < ledger.Order[handoff.StatusCompleted] }
		if slices.ContainsFunc(c.entries[e.Key], unwritten) && !c.mute[e.Key] {
			return fmt.Errorf("the outcome of %q was said before it was written", e.Key)
		}
		c.said[at], c.heard[e.Key] = true, true
	case TraceEmpty:
		clear(c.entries)
	case TraceEnd:
		return c.end()
	}
	return nil
}

// Step keeps those of the possible entries that agree with the store's answer.
func (c *traceCheck) Step(e Event) error {
	before := c.entries[e.Step.Key]
	if before == nil {
		before = []ledger.Entry{{}}
	}
	var after []ledger.Entry
	add := func(entry ledger.Entry) {
		if !slices.Contains(after, entry) {
			after = append(after, entry)
		}
	}
	for _, entry := range before {
		next, err := entry.Apply(e.Step)
		code := handoff.Code("")
		if err != nil {
			code = handoff.AsError(err).Code
		}
		if e.Code == handoff.CodeUnreachable {
			add(entry)
			add(next)
		} else if next == e.Entry && code == e.Code {
			add(next)
		}
	}
	if len(after) == 0 {
		return fmt.Errorf("the step of %q to %q gave %q (%s), which the table does not allow; it was %q", e.Step.Key,
			e.Step.To, e.Entry.Status, cmp.Or(e.Code, "no error"), before[0].Status)
	}
	if e.Step.To == handoff.StatusDispatching && e.Code == "" {
		c.granted[e.Entry.ClientID] = true
	}
	if e.Step.To == handoff.StatusDelivered && e.Code == "" && !c.heard[e.Step.Key] && !added(e.Entry) {
		return fmt.Errorf("%q counts as delivered, and was never said", e.Step.Key)
	}
	c.entries[e.Step.Key], c.mute[e.Step.Key] = after, e.Code == handoff.CodeUnreachable
	return nil
}

// added reports whether the words of an entry went into other work. Then nobody is told: the other work has the
// outcome.
func added(e ledger.Entry) bool {
	return e.Why == handoff.WhyAdded && e.Outcome == handoff.OutcomeResult
}

// end checks that nothing was lost.
func (c *traceCheck) end() error {
	for key, entries := range c.entries {
		open := func(e ledger.Entry) bool {
			asks := e.Status == handoff.StatusCompleted && e.Code.Asks() // it waits for a word of the caller
			return e.Status != handoff.StatusDelivered && !asks
		}
		unwritten := func(e ledger.Entry) bool { return e.Status == "" }
		ran := func(e ledger.Entry) bool { return c.ran[e.ClientID] }
		if slices.ContainsFunc(entries, unwritten) && !slices.ContainsFunc(entries, ran) && !c.promised[key] {
			continue // perhaps it was never written; nobody was told that it would be done, and nothing ran
		}
		if slices.ContainsFunc(entries, open) {
			return fmt.Errorf("%q is still %q", key, entries[slices.IndexFunc(entries, open)].Status)
		}
		if !c.heard[key] && !slices.ContainsFunc(entries, added) {
			return fmt.Errorf("the outcome of %q was never said", key)
		}
	}
	return nil
}
