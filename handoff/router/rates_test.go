package router

import (
	"fmt"
	"testing"
	"time"

	"switchboard/handoff"
)

// TestRates: the limit of pieces of work in a minute holds for a caller, and for a key with all its callers.
func TestRates(t *testing.T) {
	var r Rates
	now := time.Unix(1_800_000_000, 0)
	grant := func(user string) handoff.Grant {
		return handoff.Grant{
			Caller: handoff.Caller{Principal: "many", User: user}, Key: "k", Limits: handoff.Limits{HandoffsPerMinute: 3},
			KeyLimits: handoff.Limits{HandoffsPerMinute: 5},
		}
	}
	allowed := func(g handoff.Grant, at time.Time, tries int) (n int) {
		for range tries {
			if e := r.take(g, at); e == nil {
				n++
			} else if e.Code != handoff.CodeLimited || e.Retry <= 0 || e.Retry > time.Minute {
				t.Errorf("refused with %v after %v", e, e.Retry)
			}
		}
		return n
	}
	if n := allowed(grant("alice"), now, 10); n != 3 {
		t.Errorf("alice: %d", n)
	}
	if n := allowed(grant("bob"), now, 10); n != 2 {
		t.Errorf("bob, of what the key has left: %d", n)
	}
	if n := allowed(
		handoff.Grant{Caller: handoff.NamelessCaller("many", "1"), Key: "k", KeyLimits: handoff.Limits{HandoffsPerMinute: 5}},
		now, 10,
	); n != 0 {
		t.Errorf("who has no name: %d", n)
	}
	if n := allowed(grant("alice"), now.Add(20*time.Second), 10); n != 1 {
		t.Errorf("alice after a third of a minute: %d", n)
	}
	if n := allowed(handoff.Grant{Caller: handoff.Caller{Principal: "owner"}}, now, 1000); n != 1000 {
		t.Errorf("without limits: %d", n)
	}
	for i := range 2*maxRates + 1 {
		allowed(
			handoff.Grant{
				Caller: handoff.Caller{Principal: "many", User: fmt.Sprint(i)}, Limits: handoff.Limits{HandoffsPerMinute: 3},
			},
			now, 1,
		)
	}
	if len(r.limiters) > maxRates {
		t.Errorf("%d are counted", len(r.limiters))
	}
}

// TestRatesChange: a changed limit holds for the next piece of work, and earlier pieces still count.
func TestRatesChange(t *testing.T) {
	var r Rates
	now := time.Unix(1_800_000_000, 0)
	allowed := func(most int) (n int) {
		g := handoff.Grant{Caller: handoff.Caller{Principal: "owner"}, Limits: handoff.Limits{HandoffsPerMinute: most}}
		for range 30 {
			if r.take(g, now) == nil {
				n++
			}
		}
		return n
	}
	if n := allowed(20); n != 20 {
		t.Errorf("of 20: %d", n)
	}
	now = now.Add(time.Minute)
	if n := allowed(2); n != 2 {
		t.Errorf("of 2, where it was 20: %d", n)
	}
	now = now.Add(time.Minute)
	if n := allowed(20); n != 2 {
		t.Errorf("of 20, where it was 2 until now: %d", n)
	}
	now = now.Add(time.Minute)
	if n := allowed(20); n != 20 {
		t.Errorf("of 20 a minute later: %d", n)
	}
}
