package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"switchboard/sessions/sessionstest"
	"switchboard/sessions/sqlite"
)

var (
	owner = sessionstest.Owner
	must  = sessionstest.Must
)

// put writes documents of handoffs.
func put(t *testing.T, s *sqlite.Store, keys ...string) {
	t.Helper()
	must(t, sessionstest.Write(t.Context(), s, owner, sessionstest.Put(keys...)))
}

// open opens a store that is closed with the test.
func open(t testing.TB, cfg sqlite.Config) *sqlite.Store {
	t.Helper()
	return sessionstest.Opened(t, func(ctx context.Context) (*sqlite.Store, error) { return sqlite.Open(ctx, cfg) })
}

func TestStore(t *testing.T) {
	sessionstest.TestStore(t, func(t *testing.T) sessionstest.Store {
		return open(t, sqlite.Config{Dir: t.TempDir()})
	})
}

// TestFence takes the lock away from a store that does not check it.
func TestFence(t *testing.T) {
	sessionstest.TestFence(t, func(t *testing.T) sessionstest.Takeover {
		dir := t.TempDir()
		return sessionstest.Takeover{Former: open(t, sqlite.Config{Dir: dir}),
			Latter: func(t *testing.T) (sessionstest.Store, func()) {
				must(t, os.Remove(filepath.Join(dir, "lock")))
				s := open(t, sqlite.Config{Dir: dir})
				return s, func() { _ = s.Close() } // again with the test
			}}
	})
}
