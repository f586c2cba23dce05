package sessions_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"switchboard/handoff"
	"switchboard/sessions"
	"switchboard/sessions/sessionstest"
)

// keepBusy takes processors until the test ends.
func keepBusy(t *testing.T) {
	t.Helper()
	var stop atomic.Bool
	var all sync.WaitGroup
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		all.Go(func() {
			for n := 0; !stop.Load(); n++ {
				_ = n
			}
		})
	}
	t.Cleanup(func() {
		stop.Store(true)
		all.Wait()
	})
}

// A busy machine makes the embedded Redis slow, never absent: many handoffs at once come through, snapshots
// are written beside them, and all of it is there after a restart.
func TestLedgerBusyMachine(t *testing.T) {
	const handoffs = 200
	keepBusy(t)
	dir := t.TempDir()
	s := open(t, sessions.Config{StateDir: dir})
	ended := run(t, s)
	var all sync.WaitGroup
	for i := range handoffs {
		all.Go(func() {
			for _, to := range []handoff.Status{handoff.StatusDispatching, handoff.StatusStarted} {
				if _, err := s.Advance(t.Context(), sessionstest.LedgerStep(fmt.Sprint("key-", i), "a", to)); err != nil {
					t.Errorf("handoff %d to %s: %v", i, to, err)
				}
			}
		})
	}
	all.Wait()
	if err := ended(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	after := open(t, sessions.Config{StateDir: dir})
	if found, err := after.OpenAll(t.Context()); err != nil || len(found) != handoffs {
		t.Fatalf("%d are there after a restart, %v", len(found), err)
	}
	if stats := s.Stats(); stats.SaveErrors != 0 || stats.Saves == 0 {
		t.Fatalf("stats %+v", stats)
	}
}
