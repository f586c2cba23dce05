package redis

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions/sessionstest"
)

var must = sessionstest.Must

// opened opens a store on a Redis of its own.
func opened(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{URL: sessionstest.StartRedis(t).URL})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// storeKeys returns every key of the store except those of the lease, with the days it has to live.
func storeKeys(t *testing.T, s *Store) string {
	t.Helper()
	var out []string
	for _, key := range s.client.Keys(t.Context(), "*").Val() {
		days := "for ever"
		if ttl := s.client.PTTL(t.Context(), key).Val(); ttl > 0 {
			days = fmt.Sprintf("%.0f days", ttl.Hours()/24)
		}
		if key != s.leaseKey() && key != s.epochKey() && key != s.formerLease() {
			key = strings.Replace(strings.TrimPrefix(key, "switchboard:"), s.id, "ID", 1)
			out = append(out, key+" "+days)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// What is kept of a handoff and how long: what nobody heard for ever, what was heard thirty days, and nothing
// stays in an index that is not there.
func TestKeys(t *testing.T) {
	t.Parallel()
	s := opened(t)
	c := handoff.Caller{Principal: "owner", User: "a/b"}
	write := func(b ledger.Batch) {
		t.Helper()
		must(t, sessionstest.Write(t.Context(), s, c, b))
	}
	want := func(want ...string) {
		t.Helper()
		if got := storeKeys(t, s); got != strings.Join(want, "\n") {
			t.Fatalf("the keys are\n%s\nwant\n%s", got, strings.Join(want, "\n"))
		}
	}
	const caller = "{owner/a%2Fb}:"
	const beats, index = "{m}:beats for ever", "homes:ID for ever"
	open := sessionstest.Put("k1")
	open.Changed = []ledger.Changed{{Key: "k1", Texts: map[string]string{ledger.PartPrompt: "fix it"}}}
	for _, open.For = range []time.Duration{ledger.StickyFor, 0} {
		write(open)
		lives := map[time.Duration]string{ledger.StickyFor: "90 days", 0: "for ever"}[open.For]
		want(index, beats, caller+"docs "+lives, caller+"texts:k1 for ever")
	}
	write(sessionstest.Over(time.Now(), sessionstest.Entry("k1")))
	want(index, beats, caller+"past 30 days", caller+"past:k1 30 days", caller+"texts:k1 30 days")

	if err := s.client.Del(t.Context(), "switchboard:"+caller+"past:k1").Err(); err != nil { // it has expired
		t.Fatal(err)
	}
	if page, err := s.History(t.Context(), c, ledger.HistoryQuery{}); err != nil || len(page.Entries) != 0 {
		t.Fatalf("history %+v, %v", page, err)
	}
	want(index, beats, caller+"texts:k1 30 days")
	must(t, s.Leave(c)(t.Context()))
	want(beats, caller+"texts:k1 30 days")

	tomb := sessionstest.Entry("k2")
	tomb.Unkept = true
	write(sessionstest.Over(time.Now(), tomb))
	if ttl, err := s.client.PTTL(t.Context(), "switchboard:"+caller+"past:k2").Result(); err != nil ||
		ttl <= ledger.KeyFor-time.Minute || ttl > ledger.KeyFor {
		t.Errorf("what has no words lives %v, %v", ttl, err)
	}
}

// A key of a wrong type causes an error, whose code is not unreachable.
func TestKeyOfAnotherType(t *testing.T) {
	s := opened(t)
	must(t, s.client.Set(t.Context(), "switchboard:{owner}:docs", "text", 0).Err())
	_, errState := s.State(t.Context(), sessionstest.Owner)
	_, errCommit := s.Commit(t.Context(), sessionstest.Owner, sessionstest.Put("key"))
	if handoff.CodeOf(errState) != handoff.CodeInternal || handoff.CodeOf(errCommit) != handoff.CodeInternal {
		t.Fatalf("it gave %v, and to a commit %v", errState, errCommit)
	}
}

// TestIndexOfALostRedis: the index of this life is back in a Redis that lost everything before the next regular
// rewrite.
func TestIndexOfALostRedis(t *testing.T) {
	t.Parallel()
	s := opened(t)
	c := sessionstest.Owner
	must(t, sessionstest.Write(t.Context(), s, c, sessionstest.Put("key")))
	for _, lose := range []string{"FLUSHALL", "PING"} {
		must(t, errors.Join(s.client.Do(t.Context(), lose).Err(), s.index(t.Context(), false)))
		if had, err := s.Homes().Callers(t.Context(), s.id); err != nil || len(had) != 1 || had[0] != c {
			t.Errorf("after %s it has %+v, %v", lose, had, err)
		}
	}
}
