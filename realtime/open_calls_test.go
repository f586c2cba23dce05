package realtime

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// A register counts open calls over instances in memory.
type register struct {
	mu   sync.Mutex
	of   map[string]CallsHere // Guarded by mu: by instance and name
	down bool                 // Guarded by mu
}

type registerOf struct {
	*register
	instance string
}

func (r registerOf) CountCalls(_ context.Context, name string, mine CallsHere, most int) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		return false, errors.New("away")
	}
	key := r.instance + " " + name
	open := mine.Calls
	for other, count := range r.of {
		if other != key && strings.HasSuffix(other, " "+name) {
			open += count.Calls
		}
	}
	if most > 0 && open > most {
		return false, nil
	}
	if mine.Number > r.of[key].Number {
		r.of[key] = mine
	}
	return true, nil
}

func (r *register) change(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// TestOpenCallsOverInstances: the limit of a key holds over all instances. The end of a call is published to the
// others, also if the store was away then or has lost the counts, and when the instance ends.
func TestOpenCallsOverInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &register{of: map[string]CallsHere{}}
		instance := func(name string) (q *quota, end func()) {
			q = newQuota(Config{OpenCalls: registerOf{r, name}, Log: nopLog()})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); q.publish(ctx) }()
			return q, func() { cancel(); <-ended }
		}
		one, endOne := instance("one")
		two, endTwo := instance("two")
		defer endTwo()
		grant := func(user string) handoff.Grant {
			return handoff.Grant{
				Caller: handoff.Caller{Principal: "many", User: user}, Key: "k", Limits: handoff.Limits{Calls: 9},
				KeyLimits: handoff.Limits{Calls: 2},
			}
		}
		enter := func(q *quota, user string, want handoff.Code) *admission {
			t.Helper()
			p, fault := q.enter(t.Context(), grant(user))
			if (fault == nil) != (want == "") || fault != nil && fault.Code != want {
				t.Fatalf("%s: %v, want %q", user, fault, want)
			}
			return p
		}
		anna := enter(one, "anna", "")
		bert := enter(two, "bert", "")
		_, fault := one.enter(t.Context(), grant("cora"))
		if fault == nil || fault.Code != handoff.CodeLimited || fault.Retry <= 0 ||
			!strings.Contains(fault.Spoken(), "2 calls are open") {
			t.Fatalf("a third call: %v", fault)
		}
		r.change(func() {
			for key := range r.of {
				if strings.Contains(key, "caller") {
					t.Errorf("%s is told, who has one instance", key)
				}
			}
		})
		before := maps.Clone(r.of)
		anna.leave()
		synctest.Wait()
		r.change(func() { r.of = before }) // a replica takes the place of what counts them
		time.Sleep(tellEvery)
		synctest.Wait()
		cora := enter(two, "cora", "")
		enter(one, "dora", handoff.CodeLimited)

		r.change(func() { r.down = true })
		enter(one, "dora", handoff.CodeStoreDown)
		cora.leave()
		synctest.Wait()
		r.change(func() { r.down = false })
		enter(one, "dora", handoff.CodeLimited) // it is not told again at once
		time.Sleep(tellEvery)
		synctest.Wait()
		dora := enter(one, "dora", "")

		r.change(func() { clear(r.of) })
		time.Sleep(tellEvery)
		synctest.Wait()
		enter(two, "emil", handoff.CodeLimited)

		dora.leave()
		endOne()
		enter(two, "emil", "").leave()
		bert.leave()
		time.Sleep(2 * tellEvery)
		synctest.Wait()
		for _, q := range []*quota{one, two} {
			if len(q.open) != 0 || len(q.published) != 0 && q == two || len(q.stale) != 0 {
				t.Errorf("still open: %v, shared %v, stale %v", q.open, q.published, q.stale)
			}
		}
	})
}
