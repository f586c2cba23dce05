package redis

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
	"switchboard/sessions/sessionstest"
)

// ledgerKeys returns every key of the store except those of the lease, with the days it has to live.
func ledgerKeys(t *testing.T, s *Store) string {
	t.Helper()
	var out []string
	for _, key := range s.client.Keys(t.Context(), "*").Val() {
		days := "for ever"
		if ttl := s.client.PTTL(t.Context(), key).Val(); ttl > 0 {
			days = fmt.Sprintf("%.0f days", ttl.Hours()/24)
		}
		if key != s.leaseKey() && key != s.epochKey() {
			key = strings.Replace(strings.TrimPrefix(key, "switchboard:"), s.id, "ID", 1)
			out = append(out, key+" "+days)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// What is kept of a handoff and how long: what nobody heard for ever, what was heard thirty days, and nothing
// stays in an index that is not there.
func TestLedgerKeys(t *testing.T) {
	t.Parallel()
	s := opened(t)
	c := handoff.Caller{Principal: "owner", User: "a/b"}
	step := func(key string, to handoff.Status, outcome handoff.Outcome) {
		t.Helper()
		_, err := s.Advance(t.Context(), ledger.Step{
			Key: key, Caller: c, Owner: "me", Args: "args", To: to, New: true, At: time.Now(),
			Set:  ledger.Facts{Outcome: outcome},
			Body: ledger.Body{Prompt: "fix it"},
		})
		must(t, err)
	}
	want := func(want ...string) {
		t.Helper()
		if got := ledgerKeys(t, s); got != strings.Join(want, "\n") {
			t.Fatalf("the keys are\n%s\nwant\n%s", got, strings.Join(want, "\n"))
		}
	}
	const caller = "{owner/a%2Fb}:"
	step("k1", handoff.StatusAccepted, "")
	for _, key := range []string{caller + "handoff:k1", caller + "open"} { // as earlier versions wrote them
		s.client.PExpire(t.Context(), "switchboard:"+key, time.Hour)
	}
	step("k1", handoff.StatusCompleted, handoff.OutcomeFailed)
	const beats, index = "{m}:beats for ever", "homes:ID for ever"
	want(index, beats, caller+"body:k1 for ever", caller+"handoff:k1 for ever", caller+"open for ever",
		caller+"unheard for ever")
	step("k1", handoff.StatusDelivered, "")
	want(index, beats, caller+"body:k1 30 days", caller+"handoff:k1 30 days", caller+"history 30 days")

	if err := s.client.Del(t.Context(), "switchboard:"+caller+"handoff:k1").Err(); err != nil { // it has expired
		t.Fatal(err)
	}
	if page, err := s.History(t.Context(), c, ledger.HistoryQuery{}); err != nil || len(page.Entries) != 0 {
		t.Fatalf("history %+v, %v", page, err)
	}
	want(index, beats, caller+"body:k1 30 days")
	must(t, s.Leave(c)(t.Context()))
	want(beats, caller+"body:k1 30 days")

	tomb := sessionstest.Deliver(t, s, "k2", time.Now(), func(step *ledger.Step) {
		step.Caller, step.Set.Unkept = c, step.To != handoff.StatusDelivered
	})
	name, err := sessions.CallerName(c)
	must(t, err)
	if ttl, err := s.client.PTTL(t.Context(), s.key(name, entryKey)+"k2").Result(); err != nil ||
		ttl <= ledger.KeyFor-time.Minute || ttl > ledger.KeyFor {
		t.Errorf("%+v without words lives %v, %v", tomb, ttl, err)
	}
}

// Entries that cannot be read are left out of the open ones and counted, and no step changes them.
func TestLedgerBadEntries(t *testing.T) {
	s := opened(t)
	ctx, c := t.Context(), handoff.Caller{Principal: "owner"}
	good := ledger.Step{Key: "good", Caller: c, Owner: "me", Args: "args", To: handoff.StatusAccepted, New: true,
		At: time.Now()}
	for i, field := range []string{"key", "owner", "status", "accepted", "attempt", "principal"} {
		step := good
		step.Key = fmt.Sprint("bad-", i)
		_, err := s.Advance(ctx, step)
		must(t, err)
		value := ""
		if field == "attempt" || field == "accepted" {
			value = "many"
		}
		must(t, s.client.HSet(ctx, s.key("owner", entryKey)+step.Key, field, value).Err())
	}
	_, err := s.Advance(ctx, good)
	must(t, err)
	open, err := s.Open(ctx, c)
	if err != nil || len(open) != 1 || open[0].Key != "good" || s.counts.badEntries.Load() != 6 {
		t.Fatalf("open are %+v, %v, %d bad entries", open, err, s.counts.badEntries.Load())
	}
	again := good
	again.Key = "bad-4"
	if _, err := s.Advance(ctx, again); handoff.CodeOf(err) != handoff.CodeInternal {
		t.Fatalf("a bad entry gave %v", err)
	}
}

// TestTestsOfOlderWork: for work of older versions it is not known how its tests ended.
func TestTestsOfOlderWork(t *testing.T) {
	t.Parallel()
	s := opened(t)
	for _, key := range []string{"none", "passed", "older"} {
		sessionstest.Deliver(t, s, key, time.Now(), func(step *ledger.Step) {
			if step.To == handoff.StatusCompleted {
				step.Set.Tests = map[string]handoff.Tests{"passed": handoff.TestsPassed}[key]
			}
		})
	}
	name, err := sessions.CallerName(sessionstest.Owner)
	must(t, err)
	must(t, s.client.HDel(t.Context(), s.key(name, entryKey)+"older", "tests").Err())
	page, err := s.History(t.Context(), sessionstest.Owner, ledger.HistoryQuery{})
	must(t, err)
	got := map[string]handoff.Tests{}
	for _, e := range page.Entries {
		got[e.Key] = e.Tests
	}
	if want := map[string]handoff.Tests{"none": "", "passed": handoff.TestsPassed,
		"older": handoff.TestsUnknown}; !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestIndexOfALostRedis: the index of this life is back in a Redis that lost everything before the next regular
// rewrite.
func TestIndexOfALostRedis(t *testing.T) {
	t.Parallel()
	s := opened(t)
	c := handoff.Caller{Principal: "owner"}
	_, err := s.Advance(t.Context(), sessionstest.LedgerStep("key", "a", handoff.StatusAccepted))
	must(t, err)
	for _, lose := range []string{"FLUSHALL", "PING"} {
		must(t, errors.Join(s.client.Do(t.Context(), lose).Err(), s.index(t.Context(), false)))
		if had, err := s.Homes().Callers(t.Context(), s.id); err != nil || len(had) != 1 || had[0] != c {
			t.Errorf("after %s it has %+v, %v", lose, had, err)
		}
	}
}
