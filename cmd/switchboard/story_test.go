package main

import (
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
)

// TestStory plays what a newcomer does, in the order of the suggestions, over the real wire on both sides:
// a Realtime client, the simulated voice, the router and the simulated machines.
func TestStory(t *testing.T) {
	t.Parallel()
	r := start(t, func(p *plan) { p.Hurry, p.Story = 5, true })
	r.up("bigpc")
	r.up("laptop")
	r.up("attic") // as long as nobody asks it for work
	p := r.call()
	p.say("Which machines do I have?")
	p.hear("bigpc, laptop and attic are ready.")
	p.say("What was I working on?")
	p.hear("Auth refactor on bigpc")
	p.say("Continue the auth session on bigpc and run the tests")
	p.hear("TestRefreshExpiredToken")
	p.say("Fix it")
	p.hear("pass")
	p.say("On laptop, write the release notes")
	p.say("Ask attic to check the backups")
	if lost := r.ended("backups"); lost.Outcome != handoff.OutcomeFailed || lost.Error.Code != handoff.CodeUnreachable {
		t.Errorf("what attic was asked: %+v", lost)
	}
	var works []handoff.Record
	until(t, "the release notes", func() bool {
		works = r.handoffs()
		return slices.ContainsFunc(works, func(w handoff.Record) bool { return w.Server == "laptop" && w.State == handoff.StatusDelivered })
	})
	if len(works) < 3 || works[0].ThreadID != works[1].ThreadID || works[0].Why != "named" || works[1].Why != "continued" {
		t.Fatalf("the follow-up must land in the same session: %+v", works)
	}

	for _, w := range r.handoffs() {
		if w.Outcome == "" {
			t.Errorf("no outcome: %+v", w)
		}
	}
	for _, e := range p.all() {
		if strings.Contains(e.raw, `"codex"`) || strings.Contains(e.raw, "sb_") || e.Type == "error" {
			t.Errorf("the client saw something of ours: %.300s", e.raw)
		}
	}
}
