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

// rates bounds how often work is given.
type rates struct {
	mu sync.Mutex
	by map[string]*rate.Limiter // Guarded by mu: by name of the caller or key
}

// take counts one piece of work for a caller and their key. An error has code [handoff.CodeLimited].
func (r *rates) take(g handoff.Grant, now time.Time) *handoff.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := map[string]int{}
	if !g.Caller.Nameless() {
		names["caller "+g.Caller.String()] = g.Limits.HandoffsPerMinute
	}
	if g.Key != "" {
		names["key "+g.Key] = g.KeyLimits.HandoffsPerMinute
	}
	var taken []*rate.Reservation
	for name, most := range names {
		if most <= 0 {
			continue
		}
		one := r.limiterLocked(name, most, now).ReserveN(now, 1)
		taken = append(taken, one)
		wait := one.DelayFrom(now)
		if wait <= 0 {
			continue
		}
		for _, t := range taken {
			t.CancelAt(now)
		}
		said := strconv.Itoa(most) + " pieces of work were given in the last minute"
		if most == 1 {
			said = "one piece of work was given in the last minute"
		}
		e := handoff.Fault(handoff.CodeLimited, said, name)
		e.Retry = wait
		return e
	}
	return nil
}

func (r *rates) limiterLocked(name string, most int, now time.Time) *rate.Limiter {
	if l := r.by[name]; l != nil {
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
	l := rate.NewLimiter(rate.Every(time.Minute/time.Duration(most)), most)
	r.by[name] = l
	return l
}
