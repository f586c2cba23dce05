package redis_test

import (
	"slices"
	"testing"
	"time"

	"switchboard/handoff/ledger"
	"switchboard/sessions/redis"
	"switchboard/sessions/sessionstest"
)

// TestTwoOverOneRedis: two instances over one Redis share their data.
func TestTwoOverOneRedis(t *testing.T) {
	t.Parallel()
	testTwo(t, sessionstest.StartRedis(t).URL)
}

// testTwo runs the tests of two instances.
func testTwo(t *testing.T, url string) {
	for name, test := range map[string]func(t *testing.T, one, other *redis.Store){
		"codes and records": testCodesOfTwo, "owners": testOwnersOfTwo, "rates": testRatesOfTwo, "calls": testCallsOfTwo,
	} {
		t.Run(name, func(t *testing.T) {
			cfg := redis.Config{URL: url, Prefix: prefix(t), Shared: true}
			test(t, open(t, cfg), open(t, cfg))
		})
	}
}

func testCodesOfTwo(t *testing.T, one, other *redis.Store) {
	sessionstest.TestCodesAtOnce(t, one, other)
	sessionstest.TestRecordKeptOnce(t, one, other)
}

// testOwnersOfTwo: when one instance makes a thread, the other one can read for whom before the work begins.
func testOwnersOfTwo(t *testing.T, one, other *redis.Store) {
	if _, err := one.Homes().Take(t.Context(), owner, ""); err != nil {
		t.Fatal(err)
	}
	at, want := time.Now(), []ledger.Owned{{Server: "bigpc", Thread: "t", Caller: owner}}
	made := ledger.Batch{Changed: []ledger.Changed{{Key: "new", Owned: want[0], At: at}}}
	must(t, sessionstest.Write(t.Context(), one, owner, made))
	if got, err := other.OwnedSince(t.Context(), at); err != nil || !slices.Equal(got, want) {
		t.Errorf("since then: %+v, %v", got, err)
	}
	if got, err := other.OwnedSince(t.Context(), at.Add(time.Second)); err != nil || len(got) != 0 {
		t.Errorf("since later: %+v, %v", got, err)
	}
}

// testRatesOfTwo: work that one instance starts counts at the other one, by name, for as long as it should.
func testRatesOfTwo(t *testing.T, one, other *redis.Store) {
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

// testCallsOfTwo: calls of a name are allowed at one instance while all instances together have few enough, until
// counts are forgotten. Of two counts of an instance the one with the greater number holds, in whatever order they
// come.
func testCallsOfTwo(t *testing.T, one, other *redis.Store) {
	count := func(s *redis.Store, number uint64, calls, most int, want bool, others ...string) {
		t.Helper()
		fits, found, err := s.CountCalls(t.Context(), "key k", number, calls, most)
		if err != nil || fits != want || !slices.Equal(found, others) {
			t.Errorf("count %d, %d calls of %d: %v, others %q, %v", number, calls, most, fits, found, err)
		}
	}
	first, second := one.Homes().ID(), other.Homes().ID()
	count(one, 2, 2, 3, true)
	count(one, 1, 1, 3, true) // an older count that comes late
	count(other, 1, 2, 3, false, first)
	count(other, 2, 1, 3, true, first)
	count(one, 3, 3, 3, false, second)
	count(one, 4, 3, 0, true, second) // the calls are open all the same
	count(other, 3, 1, 3, false, first)
	if err := other.ForgetCalls(t.Context(), "key k", []string{first}); err != nil {
		t.Fatal(err)
	}
	count(other, 4, 3, 3, true)
	if fits, others, err := one.CountCalls(t.Context(), "key k2", 5, 3, 3); err != nil || !fits || len(others) != 0 {
		t.Errorf("another name: %v, others %q, %v", fits, others, err)
	}
}
