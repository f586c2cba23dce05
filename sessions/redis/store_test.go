package redis_test

import (
	"context"
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/sessions/redis"
	"switchboard/sessions/sessionstest"
)

var (
	owner = sessionstest.Owner
	must  = sessionstest.Must
)

// open opens a store that is closed with the test.
func open(t testing.TB, cfg redis.Config) *redis.Store {
	t.Helper()
	return sessionstest.Opened(t, func(ctx context.Context) (*redis.Store, error) { return redis.Open(ctx, cfg) })
}

// prefix returns a prefix for the keys of a test.
func prefix(t *testing.T) string { return strings.ReplaceAll(t.Name(), " ", "-") }

func TestStore(t *testing.T) {
	server := sessionstest.StartRedis(t)
	sessionstest.TestStore(t, func(t *testing.T) sessionstest.Store {
		s := open(t, redis.Config{URL: server.URL, Prefix: prefix(t)})
		must(t, s.Patient())
		return s
	})
}

func TestReopen(t *testing.T) {
	cfg := redis.Config{URL: sessionstest.StartRedis(t).URL}
	for round := range 3 { // after it was set, after a restart, and after a restart without changes
		s, err := redis.Open(t.Context(), cfg)
		must(t, err)
		ended := sessionstest.Run(t, s)
		if round == 0 {
			must(t, put(t, s, "key"))
		}
		sessionstest.WantOpen(t, s, "key")
		if err := ended(); err != nil {
			t.Fatalf("run: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
		if _, err := s.State(t.Context(), owner); handoff.CodeOf(err) != handoff.CodeShutdown {
			t.Fatalf("read after close: %v", err)
		}
	}
}

// TestFence lets the lease of a store expire by not renewing it.
func TestFence(t *testing.T) {
	server := sessionstest.StartRedis(t)
	sessionstest.TestFence(t, func(t *testing.T) sessionstest.Takeover {
		cfg := redis.Config{URL: server.URL}
		return sessionstest.Takeover{Former: open(t, cfg), Latter: func(t *testing.T) (sessionstest.Store, func()) {
			server.Do("DEL switchboard:holder")
			s := open(t, cfg)
			return s, func() { _ = s.Close() } // again with the test
		}}
	})
}

// TestFenceOfTheEmptied: a Redis that comes back empty accepts what the present holder writes until another one takes
// over.
func TestFenceOfTheEmptied(t *testing.T) {
	server := sessionstest.StartRedis(t)
	cfg := redis.Config{URL: server.URL}
	former := open(t, cfg)
	server.Do("FLUSHALL")
	must(t, put(t, former, "key"))
	server.Do("FLUSHALL")
	latter := open(t, cfg)
	if err := put(t, former, "key"); handoff.CodeOf(err) != handoff.CodeShutdown {
		t.Errorf("the former life wrote: %v", err)
	}
	must(t, latter.Close())
	if err := former.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "taken over") {
		t.Errorf("the former life takes the lease back: %v", err)
	}
}

// TestLook: a look returns the holder of the lease and does not affect it.
func TestLook(t *testing.T) {
	cfg := redis.Config{URL: sessionstest.StartRedis(t).URL}
	if seen, err := redis.Look(t.Context(), cfg); seen.Holder != "" || err != nil {
		t.Errorf("nobody has it: %q, %v", seen.Holder, err)
	}
	s := open(t, cfg)
	ended := sessionstest.Run(t, s)
	if seen, err := redis.Look(t.Context(), cfg); !strings.Contains(seen.Holder, ":") || err != nil {
		t.Errorf("somebody has it: %q, %v", seen.Holder, err)
	}
	if err := ended(); err != nil {
		t.Errorf("the holder ended with %v", err)
	}
	_, err := redis.Look(t.Context(), redis.Config{URL: "redis://127.0.0.1:1/0"})
	if handoff.CodeOf(err) != handoff.CodeUnreachable {
		t.Errorf("nobody there: %v", err)
	}
}
