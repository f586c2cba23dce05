package redis_test

import (
	"fmt"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions/redis"
	"switchboard/sessions/sessionstest"
)

// fuzzed returns a store on a Redis of its own.
func fuzzed(f *testing.F) *redis.Store {
	f.Helper()
	s, err := redis.Open(f.Context(), redis.Config{URL: sessionstest.StartRedis(f).URL})
	must(f, err)
	f.Cleanup(func() { _ = s.Close() })
	return s
}

// FuzzLedger: script and table agree.
func FuzzLedger(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00\x05\x00\x00\x00"))
	f.Add([]byte("\x02\x00\x00\x00\x02\x01\x00\x00\x10\x00\x00\x00\x12\x01\x00\x00\x13\x00\x00\x00"))
	f.Add([]byte("\x01\x00\x00\x00\x92\x00\x00\x00\x00\x00\x00\x00\x04\x04\x00\x00"))
	s, n := fuzzed(f), 0
	f.Fuzz(func(t *testing.T, walk []byte) {
		n++
		var e ledger.Entry
		for ; len(walk) >= 4; walk = walk[4:] {
			step := sessionstest.RandomStep("key", [4]byte(walk))
			step.Caller.Principal = fmt.Sprint("owner-", n) // too many unheard outcomes: the oldest is dropped
			e = sessionstest.Advance(t, s, e, step)
		}
	})
}

// FuzzHistory: script and table agree on open entries, history and bodies.
func FuzzHistory(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00\x00\x01\x04\x00\x00\x00\x00\x22\x05\x00\x00\x00\x00\x53"))
	s, n := fuzzed(f), 0
	f.Fuzz(func(t *testing.T, walk []byte) {
		n++
		sessionstest.WalkHistory(t, s, fmt.Sprint("owner-", n), walk[:min(len(walk), 300)])
	})
}

// ledgerStep makes a step, which must succeed.
func ledgerStep(t *testing.T, s *redis.Store, to handoff.Status) ledger.Entry {
	t.Helper()
	step := sessionstest.LedgerStep("key", "a", to)
	step.At = time.Now()
	e, err := s.Advance(t.Context(), step)
	must(t, err)
	return e
}

func wantOpen(t *testing.T, s *redis.Store, want ...ledger.Entry) {
	t.Helper()
	mine, err := s.Open(t.Context(), owner)
	must(t, err)
	all, err := s.OpenAll(t.Context())
	must(t, err)
	if len(mine) != len(want) || len(all) != len(want) || len(want) == 1 && (mine[0] != want[0] || all[0] != want[0]) {
		t.Fatalf("open %+v, of all %+v, want %+v", mine, all, want)
	}
}
