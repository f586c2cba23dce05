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

// testCallsOfTwo: calls of a name are allowed at one instance while all living instances together have few enough. Of
// two counts of an instance the one with the greater number holds, in whatever order they come.
func testCallsOfTwo(t *testing.T, one, other *redis.Store) {
	dead := ""
	count := func(s *redis.Store, name string, number uint64, calls, most int, want bool) {
		t.Helper()
		fits, err := s.Calls(func(id string) bool { return id == dead }).CountCalls(t.Context(), name, number, calls, most)
		if err != nil || fits != want {
			t.Errorf("count %d, %d calls of %d: %v, %v", number, calls, most, fits, err)
		}
	}
	count(one, "key k", 2, 2, 3, true)
	count(one, "key k", 1, 1, 3, true) // an older count that comes late
	count(other, "key k", 1, 2, 3, false)
	count(other, "key k", 2, 1, 3, true)
	count(one, "key k", 3, 3, 3, false)
	count(one, "key k", 4, 3, 0, true) // the calls are open all the same
	count(other, "key k", 3, 1, 3, false)
	dead = one.Homes().ID()
	count(other, "key k", 4, 3, 3, true)
	count(one, "key k2", 5, 3, 3, true)
	dead = ""
	count(one, "key k", 1, 0, 3, true) // nothing of what was dead is known
	count(other, "key k", 5, 3, 3, true)
}
