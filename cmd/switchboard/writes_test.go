package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestStoreWrites: a handoff costs four writes, dispatching, started, completed and delivered, and one more where it
// changes which session is the sticky one.
func TestStoreWrites(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, store string) {
		fleet := newFarm(t)
		c := newSite(t, fleet.voice.URL, store, fleet.at).start()
		c.up("bigpc")
		p := c.call()
		want := [2]int{}
		for n, asked := range []struct {
			thread string
			sticks int
		}{{"new", 1}, {"", 0}, {"", 0}, {"new", 1}} {
			p.say(fmt.Sprintf(`codex {"server":"bigpc","thread_id":%q,"prompt":"job %d takes 0"}`, asked.thread, n))
			p.hear(fmt.Sprintf("job %d is done", n))
			want[0], want[1] = want[0]+4, want[1]+asked.sticks
			got := [2]int{}
			until(t, fmt.Sprintf("%d steps and %d stickies", want[0], want[1]), func() bool {
				got = [2]int{c.roundTrips("ledger_advance"), c.roundTrips("sticky_set")}
				return got[0] >= want[0] && got[1] >= want[1]
			})
			if got != want {
				t.Fatalf("after %d: steps and stickies written %v, want %v", n, got, want)
			}
		}
	})
}

// roundTrips tells how often an operation of the store was done.
func (r *running) roundTrips(op string) (n int) {
	r.t.Helper()
	_, body := r.ask(http.MethodGet, "/metrics", "")
	_, rest, _ := strings.Cut(string(body), fmt.Sprintf("\nswitchboard_store_seconds_count{op=%q} ", op))
	_, _ = fmt.Sscan(rest, &n)
	return n
}
