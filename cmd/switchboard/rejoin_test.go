package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
)

// TestCallIsRejoined: a client loses its network in mid-call while work goes on. Nothing is told into nothing; once it
// is back in the same call it is told, once.
func TestCallIsRejoined(t *testing.T) {
	t.Parallel()
	r := start(t, func(p *plan) { p.Hurry = 2 })
	p := r.dial("?rejoin=1")
	p.say("On bigpc continue the auth session and run the tests")
	until(t, "the work to begin", func() bool { return len(r.handoffs()) == 1 })
	p.vanish()
	call := r.theCall(true)
	until(t, "the work to end", func() bool { return r.handoffs()[0].Outcome != "" })
	if state := r.handoffs()[0].State; state != handoff.StatusCompleted {
		t.Errorf("told to nobody, it is %s", state)
	}
	again := r.dial("?rejoin=1&call_id=" + call)
	again.hear("TestRefreshExpiredToken")
	until(t, "it to be heard", func() bool { return r.handoffs()[0].State == handoff.StatusDelivered })
	again.say("Which machines do I have?") // the same conversation goes on
	again.hear("bigpc and laptop are ready")
	all := append(p.spoken(), again.spoken()...)
	if slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, "connection") }) {
		t.Errorf("what only the model is to know was said: %q", all)
	}
	told := slices.DeleteFunc(all, func(s string) bool { return !strings.Contains(s, "TestRefreshExpiredToken") })
	if len(told) != 1 {
		t.Errorf("told %q", told)
	}
	r.theCall(false)
}

// TestHeldCallIsToldInTheNext: a client calls anew instead of coming back, at its limit of calls: it gets a fresh call,
// which tells what came meanwhile.
func TestHeldCallIsToldInTheNext(t *testing.T) {
	t.Parallel()
	r := start(t, func(p *plan) {
		p.Hurry = 2
		p.Access[0].Limits.Calls = 1
	})
	p := r.dial("?rejoin=1")
	p.say("On bigpc continue the auth session and run the tests")
	until(t, "the work to begin", func() bool { return len(r.handoffs()) == 1 })
	p.vanish()
	until(t, "the work to end", func() bool { return r.handoffs()[0].Outcome != "" })
	r.theCall(true)
	r.call().hear("internal/auth does not")
	until(t, "it to be heard", func() bool { return r.handoffs()[0].State == handoff.StatusDelivered })
}

// theCall is the id of the one call that there is, once it waits for its caller or does not.
func (r *running) theCall(held bool) string {
	r.t.Helper()
	var calls []handoff.CallInfo
	until(r.t, fmt.Sprint("one call, held: ", held), func() bool {
		calls = items[handoff.CallInfo](r, "/fleet/calls")
		return len(calls) == 1 && calls[0].Held == held
	})
	return calls[0].ID
}
