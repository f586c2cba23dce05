package router

import (
	"context"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"switchboard/handoff"
)

// maxRates bounds how many callers and keys are counted. When it is full, those go that would be allowed
// everything at once anyway, and if that frees nothing, all of them.
const maxRates = 10_000

// Rates bounds how often work is given, whichever router it is given to. The zero value is ready; it is safe for
// concurrent use.
type Rates struct {
	mu sync.Mutex
	by map[string]*rate.Limiter // Guarded by mu: by name of the caller or key

	// Guarded by mu: what was given by the names that were asked for since they were settled; nil: this is the only
	// instance. See [Rates.Settle].
	asked map[string]int
}

// MayGive reports whether a caller may give work at this moment, without counting it. An error has code
// [handoff.CodeLimited].
func (v Service) MayGive(g handoff.Grant) error {
	if e := v.of(g.Caller).router.cfg.Rates.check(g, time.Now()); e != nil {
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
		r.askedLocked(name, 1)
	}
	return e
}

// roomLocked returns what counts the work of a caller and their key, by name, if there is room for one more.
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
		r.askedLocked(name, 0)
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
	if l := r.by[name]; l != nil {
		if l.Burst() != most { // the settings have changed; what was given counts on
			l.SetLimitAt(now, limit)
			l.SetBurstAt(now, most)
		}
		return l
	}
	if len(r.by) >= maxRates {
		for name, l := range r.by {
			if l.TokensAt(now) >= float64(l.Burst()) {
				delete(r.by, name)
			}
		}
	}
	if r.by == nil || len(r.by) >= maxRates {
		r.by = map[string]*rate.Limiter{}
	}
	l := rate.NewLimiter(limit, most)
	r.by[name] = l
	return l
}

// settleEvery is how often several instances tell each other how much work was given. In between each counts alone, so
// that more is given than a limit allows by what comes to the others in about twice that time.
const settleEvery = 100 * time.Millisecond

// RateStore counts how often work is given over all instances.
type RateStore interface {
	// SettleRate adds what one instance gave by a name, each piece of which takes its time to count no more, and
	// returns when all that was given will have: 0 is now.
	SettleRate(ctx context.Context, name string, given int, each time.Duration) (full time.Duration, err error)
}

// Share counts with other instances from now on; see [Rates.Settle].
func (r *Rates) Share() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == nil {
		r.asked = map[string]int{}
	}
}

// askedLocked notes that a name was asked for, and how much it gave.
func (r *Rates) askedLocked(name string, gave int) {
	if _, known := r.asked[name]; r.asked != nil && (known || len(r.asked) < maxRates) {
		r.asked[name] += gave
	}
}

// Settle settles with the store again and again, until ctx ends. What a store that is away does not take is settled
// later; until then each instance counts alone.
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

// settle settles the names that were asked for.
func (r *Rates) settle(ctx context.Context, store RateStore) {
	r.mu.Lock()
	asked := r.asked
	if asked != nil {
		r.asked = map[string]int{}
	}
	r.mu.Unlock()
	for name, gave := range asked {
		r.mu.Lock()
		l := r.by[name]
		r.mu.Unlock()
		if l == nil { // it is full
			continue
		}
		each := time.Duration(float64(time.Second) / float64(l.Limit()))
		full, err := store.SettleRate(ctx, name, gave, each)
		r.mu.Lock()
		if err != nil {
			r.askedLocked(name, gave)
		} else {
			r.learnLocked(name, l, full, each)
		}
		r.mu.Unlock()
	}
}

// learnLocked takes from a limiter what others gave.
func (r *Rates) learnLocked(name string, l *rate.Limiter, full, each time.Duration) {
	now := time.Now()
	meanwhile := float64(r.asked[name]) // given since it asked, which is not in full
	left := float64(l.Burst()) - float64(full)/float64(each) - meanwhile
	for others := int(l.TokensAt(now) - left); others > 0; {
		some := min(others, l.Burst())
		l.ReserveN(now, some) // it owes what is too much
		others -= some
	}
}
