package redis_test

import (
	"testing"
	"time"

	"switchboard/sessions/redis"
	"switchboard/sessions/sessionstest"
)

// TestTwoOverOneRedis: what two instances share is at both what it is at one.
func TestTwoOverOneRedis(t *testing.T) {
	t.Parallel()
	server := sessionstest.StartRedis(t)
	one := open(t, redis.Config{URL: server.URL, Shared: true})
	other := open(t, redis.Config{URL: server.URL, Shared: true})
	sessionstest.TestCodesAtOnce(t, one, other)
	sessionstest.TestRecordKeptOnce(t, one, other)
}

// TestRatesOverOneRedis: what one instance gave counts at the other, by name, and only for as long as it takes.
func TestRatesOverOneRedis(t *testing.T) {
	t.Parallel()
	server := sessionstest.StartRedis(t)
	one := open(t, redis.Config{URL: server.URL, Shared: true})
	other := open(t, redis.Config{URL: server.URL, Shared: true})
	full := func(s *redis.Store, name string, given int, each time.Duration) time.Duration {
		t.Helper()
		left, err := s.SettleRate(t.Context(), name, given, each)
		if err != nil {
			t.Fatal(err)
		}
		return left
	}
	if left := full(one, "key k", 3, time.Hour); left != 3*time.Hour {
		t.Errorf("three are given, and count for %s", left)
	}
	if left := full(other, "key k", 2, time.Hour); left > 5*time.Hour || left <= 4*time.Hour {
		t.Errorf("two more are given at the other, and count for %s", left)
	}
	if left := full(other, "key k2", 0, time.Hour); left != 0 {
		t.Errorf("by another name nothing is given, and counts for %s", left)
	}
	full(one, "key short", 1, time.Millisecond)
	for full(other, "key short", 0, time.Millisecond) != 0 {
		time.Sleep(time.Millisecond)
	}
}
