package router

import (
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
func (r *Router) MayGive(g handoff.Grant) error {
	if e := r.rates.check(g, time.Now()); e != nil {
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
