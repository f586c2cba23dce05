package router

import (
	"context"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"switchboard/handoff"
)

// maxRates bounds the number of limiters. When there are too many, those that are at rest are removed; if there are
// none of these, all are removed.
const maxRates = 10_000

// Rates limits how often work is given, by caller and by key, over all routers of a process. The zero value is ready;
// it is safe for concurrent use.
type Rates struct {
	mu       sync.Mutex
	limiters map[string]*rate.Limiter // Guarded by mu: by name of the caller or key

	// Guarded by mu: the pieces of work that each name gave since its last settlement (see [Rates.Settle]). It also has
	// names that only asked. nil: there is one instance.
	unsettled map[string]int
}

// MayGive reports whether a caller may give work at this moment, without counting it. An error has code
// [handoff.CodeLimited].
func (v Service) MayGive(g handoff.Grant) error {
	if e := v.of(g.Caller).cfg.Rates.check(g, time.Now()); e != nil {
		return e
	}
	return nil
}

// check is take without counting.
func (r *Rates) check(g handoff.Grant, now time.Time) *handoff.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, e := r.roomLocked(g, now)
	return e
}

// take counts one piece of work for a caller and their key. An error has code [handoff.CodeLimited].
func (r *Rates) take(g handoff.Grant, now time.Time) *handoff.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	counted, e := r.roomLocked(g, now)
	for name, one := range counted {
		one.AllowN(now, 1) // there is room
		r.noteLocked(name, 1)
	}
	return e
}

// roomLocked returns the limiters of a caller and their key, by name, if each allows one more piece of work.
func (r *Rates) roomLocked(g handoff.Grant, now time.Time) (map[string]*rate.Limiter, *handoff.Error) {
	names := map[string]int{}
	if !g.Caller.Nameless() {
		names["caller "+g.Caller.String()] = g.Limits.HandoffsPerMinute
	}
	if g.Key != "" {
		names["key "+g.Key] = g.KeyLimits.HandoffsPerMinute
	}
	counted := map[string]*rate.Limiter{}
	for name, most := range names {
		if most <= 0 {
			continue
		}
		one := r.limiterLocked(name, most, now)
		r.noteLocked(name, 0)
		counted[name] = one
		wait := time.Duration((1 - one.TokensAt(now)) / float64(one.Limit()) * float64(time.Second))
		if wait <= 0 {
			continue
		}
		said := strconv.Itoa(most) + " pieces of work were given in the last minute"
		if most == 1 {
			said = "one piece of work was given in the last minute"
		}
		e := handoff.Fault(handoff.CodeLimited, said, name)
		e.Retry = wait
		return nil, e
	}
	return counted, nil
}

func (r *Rates) limiterLocked(name string, most int, now time.Time) *rate.Limiter {
	limit := rate.Every(time.Minute / time.Duration(most))
	if l := r.limiters[name]; l != nil {
		if l.Burst() != most { // the settings have changed; work that was given still counts
			l.SetLimitAt(now, limit)
			l.SetBurstAt(now, most)
		}
		return l
	}
	if len(r.limiters) >= maxRates {
		for name, l := range r.limiters {
			if l.TokensAt(now) >= float64(l.Burst()) {
				delete(r.limiters, name)
			}
		}
	}
	if r.limiters == nil || len(r.limiters) >= maxRates {
		r.limiters = map[string]*rate.Limiter{}
	}
	l := rate.NewLimiter(limit, most)
	r.limiters[name] = l
	return l
}

// settleEvery is the time between two settlements of an instance with the store. In between each instance counts alone,
// so the limit may be exceeded by the work that other instances take in about twice that time.
const settleEvery = 100 * time.Millisecond

// RateStore counts how often work is given over all instances.
type RateStore interface {
	// SettleRate adds the pieces of work that one instance was given under a name. Each piece counts for the time each.
	// It returns the time after which no piece of any instance counts any more; 0: none counts now.
	SettleRate(ctx context.Context, name string, given int, each time.Duration) (full time.Duration, err error)
}

// Share makes Rates count together with other instances from now on; see [Rates.Settle].
func (r *Rates) Share() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unsettled == nil {
		r.unsettled = map[string]int{}
	}
}

// noteLocked notes for the next settlement that a name asked for room, and how many pieces of work it gave.
func (r *Rates) noteLocked(name string, gave int) {
	if _, known := r.unsettled[name]; r.unsettled != nil && (known || len(r.unsettled) < maxRates) {
		r.unsettled[name] += gave
	}
}

// Settle settles with the store every [settleEvery], until ctx ends. While the store is away, each instance counts
// alone, and its work is settled later.
func (r *Rates) Settle(ctx context.Context, store RateStore) {
	ticker := time.NewTicker(settleEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.settle(ctx, store)
		case <-ctx.Done():
			return
		}
	}
}

// settle settles once.
func (r *Rates) settle(ctx context.Context, store RateStore) {
	r.mu.Lock()
	unsettled := r.unsettled
	if unsettled != nil {
		r.unsettled = map[string]int{}
	}
	r.mu.Unlock()
	for name, gave := range unsettled {
		r.mu.Lock()
		l := r.limiters[name]
		r.mu.Unlock()
		if l == nil { // it was removed
			continue
		}
		each := time.Duration(float64(time.Second) / float64(l.Limit()))
		full, err := store.SettleRate(ctx, name, gave, each)
		r.mu.Lock()
		if err != nil {
			r.noteLocked(name, gave)
		} else {
			r.learnLocked(name, l, full, each)
		}
		r.mu.Unlock()
	}
}

// learnLocked takes the work of other instances from a limiter; full is the result of [RateStore.SettleRate].
func (r *Rates) learnLocked(name string, l *rate.Limiter, full, each time.Duration) {
	now := time.Now()
	meanwhile := float64(r.unsettled[name]) // given since then, so not in full
	left := float64(l.Burst()) - float64(full)/float64(each) - meanwhile
	for others := int(l.TokensAt(now) - left); others > 0; {
		some := min(others, l.Burst())
		l.ReserveN(now, some) // may leave less than zero: the limiter owes that
		others -= some
	}
}
