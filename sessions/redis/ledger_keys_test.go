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
	step("k1", handoff.StatusCompleted, handoff.OutcomeFailed)
	const beats, index = "{m}:beats for ever", "homes:ID for ever"
	want(index, beats, caller+"docs for ever", caller+"texts:k1 for ever")
	step("k1", handoff.StatusDelivered, "")
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

	tomb := sessionstest.Deliver(t, s, "k2", time.Now(), func(step *ledger.Step) {
		step.Caller, step.Set.Unkept = c, step.To != handoff.StatusDelivered
	})
	name, err := sessions.CallerName(c)
	must(t, err)
	if ttl, err := s.client.PTTL(t.Context(), s.key(name, pastPrefix)+"k2").Result(); err != nil ||
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
	e, err := s.Advance(ctx, good)
	must(t, err)
	bad := map[string]string{}
	for i, lost := range []string{"Key", "Owner", "Status", "Accepted", "Caller", "}"} {
		name := fmt.Sprint("handoff:bad-", i)
		bad[name] = strings.Replace(handoff.Encode(e), lost, "", 1)
		must(t, s.client.HSet(ctx, s.key("owner", docsKey), name, bad[name]).Err())
	}
	open, err := s.Open(ctx, c)
	if err != nil || len(open) != 1 || open[0].Key != "good" || s.counts.badEntries.Load() != uint64(len(bad)) {
		t.Fatalf("open are %+v, %v, %d bad entries", open, err, s.counts.badEntries.Load())
	}
	again := good
	again.Key = "bad-4"
	if _, err := s.Advance(ctx, again); handoff.CodeOf(err) != handoff.CodeInternal {
		t.Fatalf("a bad entry gave %v", err)
	}
	for name, was := range bad {
		if is := s.client.HGet(ctx, s.key("owner", docsKey), name).Val(); is != was {
			t.Errorf("%s is %s", name, is)
		}
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
