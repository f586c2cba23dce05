package router

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

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
