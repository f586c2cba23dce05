package main

import (
	"fmt"
	"slices"
	"testing"

	"switchboard/handoff"
)

// TestWorkOutlivesARestart: the work of a caller is there again after a restart, in its order and with what was done,
// whether it was heard in a call or waits to be, in both stores.
func TestWorkOutlivesARestart(t *testing.T) {
	t.Parallel()
	const n = 25
	onBothStores(t, func(t *testing.T, url string) {
		dir := t.TempDir()
		keep := func(p *plan) { p.StateDir, p.Redis, p.Hurry = dir, newSecret(url), 8 } // how much is told in one breath is chance
		first := start(t, keep)
		ended := func() bool {
			return !slices.ContainsFunc(first.handoffs(), func(r handoff.Record) bool { return r.Outcome == "" })
		}
		var asked []string
		for i := range n {
			if i == n-5 { // those before are heard now
				until(t, "the first of it to end", ended)
				p := first.call()
				first.allHeard()
				p.hangUp()
			}
			thread := "new"
			if i == 0 {
				thread = "Auth refactor"
			}
			asked = append(asked, first.hand(fmt.Sprintf(`{"server":"bigpc","thread_id":%q,"prompt":"run the tests"}`, thread)))
		}
		until(t, "all to end", ended)
		before := first.whole(asked[0])
		first.stop()

		second := start(t, keep)
		until(t, "all to be there", func() bool { return len(second.handoffs()) == n })
		var got []string
		for _, rec := range second.handoffs() {
			got = append(got, rec.ID)
		}
		if !slices.Equal(got, asked) {
			t.Fatalf("got %v, want %v", got, asked)
		}
		after := second.whole(asked[0])
		if after.State != handoff.StatusDelivered || after.Text != before.Text || after.Prompt != before.Prompt ||
			after.Spoken != before.Spoken ||
			!slices.EqualFunc(after.Items, before.Items, func(x, y handoff.RecordItem) bool { return handoff.Encode(x) == handoff.Encode(y) }) {
			t.Errorf("before %+v\nafter %+v", before, after)
		}
		// So does the history tell it, on any device.
		var history struct {
			Items []struct{ ID, Tests string }
		}
		second.get("/fleet/history", &history)
		if len(history.Items) != n-5 {
			t.Fatalf("%d pieces are history", len(history.Items))
		}
		for _, it := range history.Items { // the list alone tells that it is not green
			if it.Tests != "failed" {
				t.Errorf("the tests of %s %q, where all fail", it.ID, it.Tests)
			}
		}
		var past handoff.Record
		second.get("/fleet/history/"+history.Items[0].ID, &past)
		if past.Prompt != "run the tests" || past.Text == "" || len(past.Items) == 0 {
			t.Errorf("in the history %+v", past)
		}
		if waits := second.whole(asked[n-5]); waits.State != handoff.StatusCompleted || len(waits.Items) == 0 {
			t.Errorf("what waits to be heard: %+v", waits)
		}
	})
}
