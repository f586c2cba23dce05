package router

import (
	"testing"

	"switchboard/handoff"
	"switchboard/handoff/work"
)

// TestIdle: a router is idle when everything of its caller is in the store, and nobody attends or reads.
func TestIdle(t *testing.T) {
	req := handoff.Request{Target: handoff.Target{Server: "s", Thread: "t"}, Input: handoff.TextInput("go")}
	told := endedWork("h-1", "", "s")
	told.State = handoff.StatusDelivered
	for name, test := range map[string]struct {
		idle   bool
		occupy func(r *Router)
	}{
		"came once": {true, func(*Router) {}},
		"was told":  {true, func(r *Router) { recall(r, told) }},
		"attends":   {false, func(r *Router) { r.Attend(ladderGrant, &ear{}) }},
		"reads":     {false, func(r *Router) { r.Feed(ladderGrant).Listen(0) }},
		"is untold": {false, func(r *Router) { recall(r, endedWork("h-1", "", "s")) }},
		"is stored": {false, func(r *Router) { ask(r, &work.Unuse{Place: work.Place{Server: "s"}}) }},
		"works":     {false, func(r *Router) { client{r, ladderGrant, t}.start(req) }},
		"asks":      {false, func(r *Router) { r.doing.Add(1) }},
	} {
		r := NewRouter(Config{Store: shelved(), Caller: ladderCaller})
		if !r.Idle() {
			t.Error("a router that nobody has asked anything is not idle")
		}
		test.occupy(r)
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
	if handoff.CodeOf(err) != handoff.CodeShutdown {
		t.Errorf("another caller's work is taken: %v", err)
	}
}
