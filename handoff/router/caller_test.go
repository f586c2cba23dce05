package router

import (
	"testing"

	"switchboard/handoff"
)

// TestIdle: a router is idle when everything of its caller is in the store.
func TestIdle(t *testing.T) {
	for name, test := range map[string]struct {
		idle   bool
		occupy func(c *caller)
	}{
		"came once": {true, func(*caller) {}},
		"told":      {true, func(c *caller) { c.open(handoff.Record{ID: "h-1", State: handoff.StatusDelivered}, nil) }},
		"attends":   {false, func(c *caller) { c.feed.enter(&attendance{listener: &ear{}}) }},
		"writes":    {false, func(c *caller) { c.claims.take("key", "h-1") }},
		"untold": {false, func(c *caller) {
			c.open(handoff.Record{ID: "h-1", State: handoff.StatusCompleted, Outcome: handoff.OutcomeResult}, nil)
		}},
		"asked":  {false, func(c *caller) { c.questions.ask(&question{}, 0, nil) }},
		"stored": {false, func(c *caller) { c.stickies.queue(stickyWrite{}) }},
		"reads":  {false, func(c *caller) { c.feed.pages.Listen(0) }},
		"works": {false, func(c *caller) {
			rec := &recordState{Record: handoff.Record{State: handoff.StatusDelivered}, run: &run{}}
			c.registry.records = append(c.registry.records, rec)
		}},
	} {
		r := NewRouter(Config{Stickies: noStickies{}, Caller: ladderCaller})
		if !r.Idle() {
			t.Error("a router that nobody has asked anything is not idle")
		}
		test.occupy(r.caller(ladderCaller))
		if idle := r.Idle(); idle != test.idle {
			t.Errorf("of a caller who %s the router is idle: %v", name, idle)
		}
	}
}

// TestAnotherCaller: a router knows nothing of a caller whom it does not serve, and takes nothing from them.
func TestAnotherCaller(t *testing.T) {
	r := running(t, Config{Fleet: newCopier()})
	id, err := r.Start(t.Context(), ladderGrant, handoff.Request{
		Target: handoff.Target{Server: "s", Thread: "t"}, Input: handoff.TextInput("go"),
	})
	if err != nil {
		t.Fatal(err)
	}
	other := handoff.Grant{Caller: handoff.Caller{Principal: "owner", User: "another"}}
	if _, err := r.Handoff(other, string(id)); handoff.CodeOf(err) != handoff.CodeNotFound {
		t.Errorf("another caller sees the work: %v", err)
	}
	if list, err := r.Handoffs(other); len(list) > 0 || err != nil {
		t.Errorf("another caller has %v, %v", list, err)
	}
	_, err = r.Start(t.Context(), other, handoff.Request{
		Target: handoff.Target{Server: "s", Thread: "t"}, Input: handoff.TextInput("go"),
	})
	if handoff.CodeOf(err) != handoff.CodeInternal {
		t.Errorf("another caller's work is taken: %v", err)
	}
}
