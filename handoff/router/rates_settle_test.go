package router

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// rateStore is a [RateStore] in memory.
type rateStore struct {
	mu   sync.Mutex
	full map[string]time.Time // Guarded by mu
	down bool                 // Guarded by mu
}

func (s *rateStore) SettleRate(
	_ context.Context, name string, given int, each time.Duration,
) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return 0, errors.New("away")
	}
	now := time.Now()
	full := s.full[name]
	if full.Before(now) {
		full = now
	}
	s.full[name] = full.Add(time.Duration(given) * each)
	return s.full[name].Sub(now), nil
}

func (s *rateStore) away(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// TestRatesOfSeveral: a limit is one limit over three instances. Asked all the time at each of them, they give together
// what it allows, and beyond that no more than what comes to each within 0.2 s; what they give while the store is away
// is counted when it is back.
func TestRatesOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const instances, most = 3, 60
		g := handoff.Grant{Caller: handoff.Caller{Principal: "many"}, Limits: handoff.Limits{HandoffsPerMinute: most}}
		store := &rateStore{full: map[string]time.Time{}}
		ctx, stop := context.WithCancel(t.Context())
		var all [instances]Rates
		var running sync.WaitGroup
		for i := range all {
			all[i].Share()
			running.Go(func() { all[i].Settle(ctx, store) })
		}
		given := func(span time.Duration) (n int) {
			for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				for i := range all {
					if all[i].take(g, time.Now()) == nil {
						n++
					}
				}
			}
			return n
		}
		const beyond = instances * 10 // what is asked of each in 0.2 s
		if n := given(time.Minute); n < 2*most-2 || n > 2*most+beyond {
			t.Errorf("in the first minute %d are given, of %d at once and %d more", n, most, most)
		}
		if n := given(2 * time.Minute); n < 2*most-2 || n > 2*most+2 {
			t.Errorf("in two more minutes %d are given, of %d", n, 2*most)
		}
		store.away(true)
		given(time.Minute)
		store.away(false)
		if n := given(time.Minute); n > 3 {
			t.Errorf("%d are given, although each instance gave all of it while the store was away", n)
		}
		stop()
		running.Wait()
	})
}
