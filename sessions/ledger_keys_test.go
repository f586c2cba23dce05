package sessions

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// ledgerKeys tells every key of the store with the hours it has to live.
func ledgerKeys(t *testing.T, s *Store) string {
	t.Helper()
	keys, err := s.keeper.(*embedded).dump()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, k := range keys {
		hours := time.Until(time.UnixMilli(k.Expires)).Hours()
		out = append(out, fmt.Sprintf("%s %s %.0f h", k.Key, k.Type, hours))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// What is kept of a handoff and how long: nothing stays in an index that is not open, and no key lives for
// ever.
func TestLedgerKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		c := handoff.Caller{Principal: "owner", User: "a/b"}
		step := func(key string, to handoff.Status, outcome handoff.Outcome) {
			t.Helper()
			_, err := s.Advance(t.Context(), handoff.LedgerStep{
				Key: key, Caller: c, Owner: "me", Args: "args", To: to, New: true, At: time.Now(), Set: handoff.LedgerFacts{Outcome: outcome},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		want := func(want string) {
			t.Helper()
			if got := ledgerKeys(t, s); got != want {
				t.Fatalf("the keys are\n%s\nwant\n%s", got, want)
			}
		}
		index := "switchboard:open-callers set 24 h\nswitchboard:{owner/a%2Fb}:handoff:"
		step("k1", handoff.StatusAccepted, "")
		want(index + "k1 hash 24 h\nswitchboard:{owner/a%2Fb}:open zset 24 h")

		step("k1", handoff.StatusCompleted, handoff.OutcomeFailed)
		step("k1", handoff.StatusDelivered, "")
		want("switchboard:{owner/a%2Fb}:handoff:k1 hash 2 h")

		step("k2", handoff.StatusAccepted, "")
		time.Sleep(20 * time.Hour)
		step("k3", handoff.StatusAccepted, "")
		time.Sleep(5 * time.Hour) // k2 has expired, and stays in the index until it is read
		open, err := s.Open(t.Context(), c)
		if err != nil || len(open) != 1 || open[0].Key != "k3" {
			t.Fatalf("open are %+v, %v", open, err)
		}
		if n := s.client.ZCard(t.Context(), s.openKey("owner/a%2Fb")).Val(); n != 1 {
			t.Fatalf("%d in the index", n)
		}
		time.Sleep(20 * time.Hour)
		want("")
	})
}

// Entries that cannot be read are left out of the open ones and counted, and no step changes them.
func TestLedgerBadEntries(t *testing.T) {
	s, err := Open(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	ctx, c := t.Context(), handoff.Caller{Principal: "owner"}
	good := handoff.LedgerStep{Key: "good", Caller: c, Owner: "me", Args: "args", To: handoff.StatusAccepted, New: true, At: time.Now()}
	for i, field := range []string{"key", "owner", "status", "accepted", "attempt", "principal"} {
		step := good
		step.Key = fmt.Sprint("bad-", i)
		if _, err := s.Advance(ctx, step); err != nil {
			t.Fatal(err)
		}
		value := ""
		if field == "attempt" || field == "accepted" {
			value = "many"
		}
		if err := s.client.HSet(ctx, s.entryKeys("owner")+step.Key, field, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Advance(ctx, good); err != nil {
		t.Fatal(err)
	}
	open, err := s.Open(ctx, c)
	if err != nil || len(open) != 1 || open[0].Key != "good" || s.Stats().BadEntries != 6 {
		t.Fatalf("open are %+v, %v, stats %+v", open, err, s.Stats())
	}
	again := good
	again.Key = "bad-4"
	if _, err := s.Advance(ctx, again); err == nil || handoff.AsError(err).Code != handoff.CodeInternal {
		t.Fatalf("a bad entry gave %v", err)
	}
}
