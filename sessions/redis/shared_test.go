package redis_test

import (
	"slices"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
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

// TestOwnersOverOneRedis: for whom one instance makes a thread the other can read before the work begins.
func TestOwnersOverOneRedis(t *testing.T) {
	t.Parallel()
	server := sessionstest.StartRedis(t)
	one := open(t, redis.Config{URL: server.URL, Shared: true})
	other := open(t, redis.Config{URL: server.URL, Shared: true})
	if _, err := one.Homes().Take(t.Context(), sessionstest.Owner, ""); err != nil {
		t.Fatal(err)
	}
	step := sessionstest.LedgerStep("new", "a", handoff.StatusDispatching)
	step.Set.Target, step.Set.Why = handoff.Target{Server: "bigpc", Thread: "t"}, handoff.WhyNew
	if _, err := one.Advance(t.Context(), step); err != nil {
		t.Fatal(err)
	}
	want := []ledger.Owned{{Server: "bigpc", Thread: "t", Caller: step.Caller}}
	if got, err := other.OwnedSince(t.Context(), step.At); err != nil || !slices.Equal(got, want) {
		t.Errorf("since then: %+v, %v", got, err)
	}
	if got, err := other.OwnedSince(t.Context(), step.At.Add(time.Second)); err != nil || len(got) != 0 {
		t.Errorf("since later: %+v, %v", got, err)
	}
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
