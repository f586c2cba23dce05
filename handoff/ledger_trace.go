package handoff

import (
	"cmp"
	"fmt"
	"slices"
)

// A LedgerEventKind says what a [LedgerEvent] recorded.
type LedgerEventKind int

// The kinds of recorded events.
const (
	TraceStep  LedgerEventKind = iota // the store answered a step, or did not
	TraceTurn                         // an agent began a turn, or took words into a running one
	TraceSaid                         // an outcome was said in a voice session
	TraceEmpty                        // the store came back empty
	TraceEnd                          // everything that is open had the time to end: nothing may be lost
)

// A LedgerEvent is one line of a recorded run: what the store answered, and what was counted at the agent
// and at the voice model, where the truth is. Events of one handoff are in the order in which they happened.
type LedgerEvent struct {
	Kind LedgerEventKind

	Step  LedgerStep  // of a step
	Entry LedgerEntry // what came back
	Code  Code        // of its error, "" for none; with unreachable the step may be written or not

	ClientID string // of a turn: the [Turn.ID] that it carries
	Key      string // of what was said
	Session  string // where it was said
}

// CheckTrace tells what is wrong with a recorded run: an answer of the store that the table does not allow,
// a turn that ran twice or that nobody was allowed to start, an outcome that was said before it was written
// although the store answered, that counts as delivered and was not said, that was said twice in one session
// or, by the end, never.
func CheckTrace(events []LedgerEvent) error {
	c := &traceCheck{
		entries: map[string][]LedgerEntry{}, granted: map[string]bool{}, ran: map[string]bool{},
		said: map[[2]string]bool{}, heard: map[string]bool{}, mute: map[string]bool{},
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
	entries map[string][]LedgerEntry // by key, what may be in the store: several after a lost answer
	granted map[string]bool          // client ids that may be started
	ran     map[string]bool          // client ids that were
	said    map[[2]string]bool       // session and key
	heard   map[string]bool          // keys
	mute    map[string]bool          // keys whose newest step the store did not answer
}

func (c *traceCheck) take(e LedgerEvent) error {
	switch e.Kind {
	case TraceStep:
		return c.step(e)
	case TraceTurn:
		if !c.granted[e.ClientID] {
			return fmt.Errorf("the turn of %q ran without a step to dispatching", e.ClientID)
		}
		if c.ran[e.ClientID] {
			return fmt.Errorf("the turn of %q ran twice", e.ClientID)
		}
		c.ran[e.ClientID] = true
	case TraceSaid:
		at := [2]string{e.Session, e.Key}
		if c.said[at] {
			return fmt.Errorf("the outcome of %q was said twice in session %q", e.Key, e.Session)
		}
		unwritten := func(e LedgerEntry) bool { return ledgerOrder[e.Status] < ledgerOrder[StatusCompleted] }
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

// step finds out which of the possible entries give this answer.
func (c *traceCheck) step(e LedgerEvent) error {
	before := c.entries[e.Step.Key]
	if before == nil {
		before = []LedgerEntry{{}}
	}
	var after []LedgerEntry
	add := func(entry LedgerEntry) {
		if !slices.Contains(after, entry) {
			after = append(after, entry)
		}
	}
	for _, entry := range before {
		next, err := entry.Apply(e.Step)
		code := Code("")
		if err != nil {
			code = AsError(err).Code
		}
		if e.Code == CodeUnreachable {
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
	if e.Step.To == StatusDispatching && e.Code == "" {
		c.granted[e.Entry.ClientID] = true
	}
	if e.Step.To == StatusDelivered && e.Code == "" && !c.heard[e.Step.Key] {
		return fmt.Errorf("%q counts as delivered, and was never said", e.Step.Key)
	}
	c.entries[e.Step.Key], c.mute[e.Step.Key] = after, e.Code == CodeUnreachable
	return nil
}

// end checks that nothing was lost.
func (c *traceCheck) end() error {
	for key, entries := range c.entries {
		open := func(e LedgerEntry) bool { return e.Status != StatusDelivered }
		if entries[0].Status == "" && len(entries) == 1 {
			continue
		}
		if slices.ContainsFunc(entries, open) {
			return fmt.Errorf("%q is still %q", key, entries[slices.IndexFunc(entries, open)].Status)
		}
		if !c.heard[key] {
			return fmt.Errorf("the outcome of %q was never said", key)
		}
	}
	return nil
}
