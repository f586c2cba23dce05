package sessions_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
	"switchboard/sessions/sessionstest"
)

func TestLedgerEmbedded(t *testing.T) {
	sessionstest.TestLedger(t, func(t *testing.T) handoff.Ledger {
		return open(t, sessions.Config{StateDir: t.TempDir()})
	})
}

func TestLedgerEmbeddedInBubble(t *testing.T) {
	sessionstest.TestLedgerInBubble(t, func(t *testing.T) handoff.Ledger {
		return open(t, sessions.Config{})
	})
}

func TestLedgerReal(t *testing.T) {
	redis := sessionstest.StartRedis(t)
	sessionstest.TestLedger(t, func(t *testing.T) handoff.Ledger {
		return open(t, sessions.Config{URL: redis.URL, Prefix: strings.ReplaceAll(t.Name(), " ", "-")})
	})
}

// FuzzLedger: the script and the table never disagree.
func FuzzLedger(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00\x05\x00\x00\x00"))
	f.Add([]byte("\x02\x00\x00\x00\x02\x01\x00\x00\x10\x00\x00\x00\x12\x01\x00\x00\x13\x00\x00\x00"))
	f.Add([]byte("\x01\x00\x00\x00\x92\x00\x00\x00\x00\x00\x00\x00\x04\x04\x00\x00"))
	f.Fuzz(func(t *testing.T, walk []byte) {
		s := open(t, sessions.Config{})
		var e handoff.LedgerEntry
		for ; len(walk) >= 4; walk = walk[4:] {
			e = sessionstest.Advance(t, s, e, sessionstest.RandomStep("key", [4]byte(walk)))
		}
	})
}

// ledgerStep advances a store that must not refuse.
func ledgerStep(t *testing.T, s *sessions.Store, to handoff.Status) handoff.LedgerEntry {
	t.Helper()
	step := sessionstest.LedgerStep("key", "a", to)
	step.At = time.Now()
	e, err := s.Advance(t.Context(), step)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func wantOpen(t *testing.T, s *sessions.Store, want ...handoff.LedgerEntry) {
	t.Helper()
	mine, err := s.Open(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.OpenAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(mine) != len(want) || len(all) != len(want) || len(want) == 1 && (mine[0] != want[0] || all[0] != want[0]) {
		t.Fatalf("open %+v, of all %+v, want %+v", mine, all, want)
	}
}

// Entries live a day after their last step, delivered ones two hours, and they survive a restart.
func TestLedgerExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, sessions.Config{StateDir: dir})
		e := ledgerStep(t, s, handoff.StatusDispatching)
		for range 5 { // each step renews, a repeated one too
			time.Sleep(20 * time.Hour)
			e = ledgerStep(t, s, handoff.StatusStarted)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(23 * time.Hour)
		s = open(t, sessions.Config{StateDir: dir})
		wantOpen(t, s, e)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(61 * time.Minute)
		s = open(t, sessions.Config{StateDir: dir})
		wantOpen(t, s)

		ledgerStep(t, s, handoff.StatusDispatching)
		e = ledgerStep(t, s, handoff.StatusCompleted)
		time.Sleep(23 * time.Hour)
		wantOpen(t, s, e)
		ledgerStep(t, s, handoff.StatusDelivered)
		wantOpen(t, s)
		time.Sleep(119 * time.Minute)
		again := sessionstest.LedgerStep("key", "b", handoff.StatusDispatching)
		if _, err := s.Advance(t.Context(), again); err == nil || handoff.AsError(err).Code != handoff.CodeTakenOver {
			t.Fatalf("a delivered request came again: %v", err)
		}
		time.Sleep(2 * time.Minute)
		if _, err := s.Advance(t.Context(), again); err != nil {
			t.Fatalf("after it is forgotten: %v", err)
		}
	})
}
