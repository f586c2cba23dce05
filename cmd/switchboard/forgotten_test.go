package main

import (
	"strings"
	"testing"

	"switchboard/handoff"
)

// TestForgottenWorkEnds: what the simulated machines forget at a restart they say they forgot. Work of a former
// life that no machine knows ends, and the next work in its session begins at once.
func TestForgottenWorkEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keep := func(p *plan) { p.StateDir = dir }
	first := start(t, keep)
	first.hand(`{"server":"bigpc","thread_id":"Auth refactor","prompt":"run the benchmarks"}`)
	first.hand(`{"server":"laptop","thread_id":"new","prompt":"run the benchmarks"}`)
	until(t, "both to run", func() bool {
		n := 0
		for _, w := range first.handoffs() {
			if w.State == handoff.StatusStarted {
				n++
			}
		}
		return n == 2
	})
	first.stop()

	second := start(t, keep)
	until(t, "the forgotten work to end", func() bool {
		for _, w := range second.handoffs() {
			if w.Outcome == "" {
				return false
			}
			if w.Error == nil || w.Server == "bigpc" && !strings.Contains(w.Error.Message+w.Error.Detail, "has forgotten this work") {
				t.Fatalf("%s on %s: %q, %+v", w.Title, w.Server, w.Outcome, w.Error)
			}
		}
		return true
	})
	for _, body := range []string{
		`{"server":"bigpc","thread_id":"Auth refactor","prompt":"what did you do?"}`,
		`{"server":"laptop","prompt":"what did you do?"}`,
	} {
		if rec := second.outcome(second.hand(body)); rec.Outcome != handoff.OutcomeResult {
			t.Errorf("new work: %+v", rec)
		}
	}
}

// hand gives work to a machine over the API.
func (r *running) hand(body string) string {
	r.t.Helper()
	status, rec := r.again("/fleet/handoffs", "", body)
	if status/100 != 2 {
		r.t.Fatalf("%s: %d %+v", body, status, rec.Error)
	}
	return rec.ID
}
