package redis_test

import (
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/sessions/redis"
	"switchboard/sessions/sessionstest"
)

// TestLook: a look tells who has the store, and takes nothing from them.
func TestLook(t *testing.T) {
	cfg := redis.Config{URL: sessionstest.StartRedis(t).URL}
	if holder, err := redis.Look(t.Context(), cfg); holder != "" || err != nil {
		t.Errorf("nobody has it: %q, %v", holder, err)
	}
	s := open(t, cfg)
	ended := run(t, s)
	if holder, err := redis.Look(t.Context(), cfg); !strings.Contains(holder, ":") || err != nil {
		t.Errorf("somebody has it: %q, %v", holder, err)
	}
	if err := ended(); err != nil {
		t.Errorf("the holder ended with %v", err)
	}
	if _, err := redis.Look(t.Context(), redis.Config{URL: "redis://127.0.0.1:1/0"}); err == nil || handoff.AsError(err).Code != handoff.CodeUnreachable {
		t.Errorf("nobody there: %v", err)
	}
}
