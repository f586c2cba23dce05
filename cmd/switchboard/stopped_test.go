package main

import (
	"slices"
	"testing"

	"switchboard/handoff"
)

// TestStoppedWorkKeepsItsOutput: what a command printed until its work was stopped stays with the work.
func TestStoppedWorkKeepsItsOutput(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	id := r.hand(`{"server":"bigpc","prompt":"run the benchmarks"}`)
	printed := func() bool {
		return slices.ContainsFunc(r.whole(id).Items, func(it handoff.RecordItem) bool { return it.Kind == handoff.ItemCommand && it.Output != "" })
	}
	until(t, "the benchmarks to print", printed)
	r.post("/fleet/handoffs/"+id+"/stop", "{}")
	until(t, "the work to be stopped", func() bool { return r.whole(id).Outcome == handoff.OutcomeInterrupted })
	if !printed() {
		t.Errorf("what it printed is gone: %+v", r.whole(id).Items)
	}
}
