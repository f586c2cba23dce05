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
	p.hear("attic is not answering")
	if lost := r.newestOf("backups"); lost.Outcome != handoff.OutcomeFailed || lost.Error.Code != handoff.CodeUnreachable {
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

	push(t, r, p)
	p = away(t, r, p)
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

// push gives work that needs an approval, and answers it; the second answer is too late.
func push(t *testing.T, r *running, p *phone) {
	t.Helper()
	p.say("Push it from bigpc")
	q := r.question()
	if !strings.Contains(q.Command, "git push") || q.Server != "bigpc" {
		t.Fatalf("question: %+v", q)
	}
	r.decide(q, "accept")
	if status, _ := r.ask("POST", "/fleet/questions/"+string(q.ID), `{"decision":"accept"}`); status != 409 {
		t.Fatalf("deciding twice: %d", status)
	}
	r.allHeard()
	if last := r.newest(); last.Outcome != handoff.OutcomeResult {
		t.Errorf("the push: %+v", last)
	}
}

// away hangs up in the middle of work, and returns the next call, which tells of it.
func away(t *testing.T, r *running, p *phone) *phone {
	t.Helper()
	p.say("Run the benchmarks on bigpc")
	until(t, "the benchmarks", func() bool { return r.newestOf("benchmarks").State == handoff.StatusStarted })
	p.hangUp()
	until(t, "the benchmarks to end", func() bool {
		last := r.newest()
		// Until it is written down, whoever calls hears it as news of the moment.
		return last.State == handoff.StatusCompleted && strings.Contains(r.logs.String(), `"msg":"handoff ended","principal":"owner","handoff":"`+last.ID+`"`)
	})
	p = r.call()
	p.hear("While you were away, one thing finished")
	until(t, "it to be delivered", func() bool { return r.newest().State == handoff.StatusDelivered })
	return p
}
