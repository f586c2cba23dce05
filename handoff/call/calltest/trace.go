package calltest

import (
	"cmp"
	"fmt"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// An EventKind is the kind of an [Event].
type EventKind int

// The kinds of events.
const (
	TraceWritten EventKind = iota // the store took a handoff, or did not answer
	TraceBusy                     // the store is asked to write something
	TraceLeft                     // an earlier life left a handoff in the store
	TraceTurn                     // an agent began a turn, or took words into a running one
	TracePromise                  // a voice session was told that the work will be done
	TraceSaid                     // an outcome was said in a voice session
	TraceEmpty                    // the store came back empty
	TraceEnd                      // all open work had time to end: nothing may be lost
)

// An Event is one line of a trace: what the store has, or what really happened at an agent or a voice model. The events
// of one handoff are in the order in which they happened.
type Event struct {
	Kind    EventKind
	ID      string // of the handoff
	Session string // in which something was said

	Entry ledger.Entry // as it was to be written
	Code  handoff.Code // with unreachable it may be written or not
}

// ranks orders the statuses.
var ranks = map[handoff.Status]int{
	handoff.StatusAccepted: 1, handoff.StatusDispatching: 2, handoff.StatusStarted: 3, handoff.StatusCompleted: 4,
	handoff.StatusDelivered: 5,
}

// CheckTrace returns what is wrong with a trace: a handoff that went back, or that was sent a third time; a turn that
// ran twice, or before the store had that it would; or an outcome that was said before it was written although the
// store answered, that is delivered and was not said, that was said twice in one session, or that was never said.
func CheckTrace(events []Event) error {
	c := &traceCheck{
		stored: map[string]ledger.Entry{}, granted: map[string]bool{}, ran: map[string]bool{},
		said: map[[2]string]bool{}, heard: map[string]bool{}, promised: map[string]bool{},
	}
	for i, e := range events {
		if err := c.take(e); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
	}
	return nil
}

// traceCheck replays a trace.
type traceCheck struct {
	stored   map[string]ledger.Entry // what the store has, by handoff
	granted  map[string]bool         // handoffs that may be started
	ran      map[string]bool         // handoffs that were
	said     map[[2]string]bool      // session and handoff
	heard    map[string]bool         // handoffs
	mute     bool                    // the store has not answered the newest batch, or did not
	promised map[string]bool         // handoffs
}

func (c *traceCheck) take(e Event) error {
	was, known := c.stored[e.ID]
	switch e.Kind {
	case TraceLeft:
		c.stored[e.ID] = e.Entry
		c.granted[e.ID] = c.granted[e.ID] || e.Entry.Attempt > 0
	case TraceBusy:
		c.mute = true
	case TraceWritten:
		return c.written(e)
	case TraceTurn:
		if !c.granted[e.ID] {
			return fmt.Errorf("the turn of %q ran before the store had that it would", e.ID)
		}
		if c.ran[e.ID] {
			return fmt.Errorf("the turn of %q ran twice", e.ID)
		}
		c.ran[e.ID] = true
	case TracePromise:
		c.promised[e.ID] = true
	case TraceSaid:
		at := [2]string{e.Session, e.ID}
		if c.said[at] {
			return fmt.Errorf("the outcome of %q was said twice in session %q", e.ID, e.Session)
		}
		if known && ranks[was.Status] < ranks[handoff.StatusCompleted] && !c.mute {
			return fmt.Errorf("the outcome of %q was said before it was written", e.ID)
		}
		c.said[at], c.heard[e.ID] = true, true
	case TraceEmpty:
		clear(c.stored)
	case TraceEnd:
		return c.end()
	}
	return nil
}

func (c *traceCheck) written(e Event) error {
	if c.mute = e.Code == handoff.CodeUnreachable; c.mute {
		return nil
	}
	was, now := c.stored[e.ID], e.Entry
	again := now.Status == handoff.StatusDispatching && now.Attempt > was.Attempt && now.Attempt <= 2
	if ranks[now.Status] < ranks[was.Status] && !again || was.Outcome != "" && was.Outcome != now.Outcome {
		return fmt.Errorf("%q went from %q %q to %q %q", e.ID, was.Status, was.Outcome, now.Status, now.Outcome)
	}
	c.stored[e.ID] = now
	c.granted[e.ID] = c.granted[e.ID] || now.Status == handoff.StatusDispatching
	if now.Status == handoff.StatusDelivered && !c.heard[e.ID] && !added(now) {
		return fmt.Errorf("%q counts as delivered, and was never said", e.ID)
	}
	return nil
}

// added reports whether the words of a handoff went into other work. Then nobody is told: the other work has the
// outcome.
func added(e ledger.Entry) bool {
	return e.Why == handoff.WhyAdded && e.Outcome == handoff.OutcomeResult
}

// end checks that nothing was lost.
func (c *traceCheck) end() error {
	for id := range c.ran {
		if _, known := c.stored[id]; !known && !c.heard[id] {
			return fmt.Errorf("%q ran, and is lost", id)
		}
	}
	for id, e := range c.stored {
		asks := e.Status == handoff.StatusCompleted && e.Code.Asks() // it waits for a word of the caller
		if e.Status != handoff.StatusDelivered && !asks {
			return fmt.Errorf("%q is still %q", id, cmp.Or(e.Status, "nowhere"))
		}
		if !c.heard[id] && !added(e) {
			return fmt.Errorf("the outcome of %q was never said", id)
		}
	}
	return nil
}
