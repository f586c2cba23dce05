package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestStoreWrites: a handoff costs at most four batches, for dispatching, started, completed and delivered; which
// session is in use goes with one of them.
func TestStoreWrites(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, store string) {
		fleet := newFarm(t)
		c := newSite(t, fleet.voice.URL, store, fleet.at).start()
		c.up("bigpc")
		p := c.call()
		for n, thread := range []string{"new", "", "", "new"} {
			p.say(fmt.Sprintf(`codex {"server":"bigpc","thread_id":%q,"prompt":"job %d takes 0"}`, thread, n))
			p.hear(fmt.Sprintf("job %d is done", n))
			// The turn and its outcome may come in one batch.
			least, most, got := 3*(n+1), 4*(n+1), 0
			until(t, fmt.Sprintf("%d batches", least), func() bool {
				got = c.roundTrips("commit")
				return got >= least
			})
			if got > most {
				t.Fatalf("after %d: %d batches, at most %d", n, got, most)
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
