package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions/sessionstest"
	"switchboard/sessions/sqlite"
)

var (
	owner  = handoff.Caller{Principal: "owner"}
	sticky = handoff.Sticky{
		Target: handoff.Target{Server: "bigpc", Project: "api", Thread: "thread-1"}, Title: "auth refactor",
		Named: true, Since: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC),
	}
)

// open opens a store that is closed with the test.
func open(t *testing.T, cfg sqlite.Config) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	sessionstest.TestStore(t, func(t *testing.T) sessionstest.Store {
		return open(t, sqlite.Config{Dir: t.TempDir()})
	})
}

// TestFence takes the lock away from a store that does not look at it.
func TestFence(t *testing.T) {
	sessionstest.TestFence(t, func(t *testing.T) sessionstest.Takeover {
		dir := t.TempDir()
		return sessionstest.Takeover{Former: open(t, sqlite.Config{Dir: dir}), Latter: func(t *testing.T) (ledger.Ledger, func()) {
			if err := os.Remove(filepath.Join(dir, "lock")); err != nil {
				t.Fatal(err)
			}
			s := open(t, sqlite.Config{Dir: dir})
			return s, func() { _ = s.Close() } // again with the test
		}}
	})
}
