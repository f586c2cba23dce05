package main

import (
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
)

// TestSideQuestion asks a machine something beside the work there: the answer is heard, no session is left behind,
// and what comes next goes on where the work was.
func TestSideQuestion(t *testing.T) {
	t.Parallel()
	r := start(t, func(p *plan) { p.Hurry = 5 })
	r.up("bigpc")
	p := r.call()
	p.say("Run the tests on bigpc")
	p.hear("TestRefreshExpiredToken")
	before, worked := sessionIDs(r), r.handoffs()[0].ThreadID
	p.say(`run_on_server {"server":"bigpc","prompt":"which branch is it on?"}`)
	p.hear("on the branch")
	p.say("Fix it")
	p.hear("pass")
	works := slices.DeleteFunc(r.allHeard(), func(w handoff.Record) bool { return w.Why == handoff.WhyAdded })
	if len(works) != 3 || works[0].ThreadID != worked || works[1].Why != handoff.WhyAside ||
		works[1].Outcome != handoff.OutcomeResult ||
		works[1].ThreadID == worked ||
		works[2].ThreadID != worked {
		t.Fatalf("the side question must stand apart: %+v", works)
	}
	if after := sessionIDs(r); slices.Contains(after, works[1].ThreadID) || len(after) != len(before) {
		t.Errorf("the sessions were %q and are %q", before, after)
	}
	for _, e := range p.all() {
		ours := strings.Contains(e.raw, "run_on_server") && !strings.Contains(e.raw, `"role":"user"`) // what they typed
		if ours || e.Type == "error" {
			t.Errorf("the client saw %.300s", e.raw)
		}
	}
}

// sessionIDs lists the sessions of bigpc.
func sessionIDs(r *running) (ids []string) {
	for _, s := range r.sessions("server=bigpc&limit=40").Items {
		ids = append(ids, s.ID)
	}
	return ids
}
