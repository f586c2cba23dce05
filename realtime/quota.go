package realtime

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/models"
)

const (
	// meterStep is how often the time of a call is written down, and so how much a killed process can lose.
	meterStep = 15 * time.Second
	// lastMinute is how long before its end a caller is told that their minutes run out.
	lastMinute = time.Minute
	// meterWait bounds one call of the store.
	meterWait = 3 * time.Second
	// callsRetry is after how long a caller with too many open calls is told to try again: nobody knows when one ends.
	callsRetry = 30 * time.Second
)

// Spending stores how much each name spent on a day of UTC ("2026-11-22"): Spend notes how much a call has spent of it
// so far, and returns the day's total. An amount that was noted before, or is less, changes nothing: an answer may be
// lost. Time in calls is in nanoseconds, money in [models.Money]. It must be safe for concurrent use.
type Spending interface {
	Spend(ctx context.Context, name, day, call string, soFar int64) (total int64, err error)
}

// A quota limits the calls of callers and keys: how many are open, and the time and money of a day. It is safe for
// concurrent use.
type quota struct {
	spending Spending                          // Set once; nil: time and money of a day are not counted
	tariff   models.Tariff                     // Set once
	billed   func(context.Context, Bill) error // Set once; nil: bills are dropped
	partings func(language string) Partings    // Set once
	used     used                              // safe by itself
	others   OpenCalls                         // Set once; nil: this is the only instance
	log      *zap.Logger                       // Set once

	mu        sync.Mutex
	open      map[string]int      // Guarded by mu: open calls by name
	counts    uint64              // Guarded by mu: number of the newest count for the other instances
	published map[string]bool     // Guarded by mu: names with a published count; true: the last tick published 0
	stale     map[string]struct{} // Guarded by mu: names whose published count is out of date
	wake      chan struct{}       // capacity 1; a token asks to publish stale counts
}

func newQuota(c Config) *quota {
	return &quota{
		spending: c.Spending, tariff: c.Tariff, billed: c.Billed, partings: c.Partings, others: c.OpenCalls, log: c.Log,
		open: map[string]int{}, published: map[string]bool{}, stale: map[string]struct{}{},
		wake: make(chan struct{}, 1),
	}
}

// A share is what one call uses of the limits of one name, a caller or a key. Owned by the admission.
type share struct {
	name            string
	limits          handoff.Limits
	acrossInstances bool         // several instances may have calls of it
	count           CallsHere    // open calls, with this one
	time            spent        // of the call, in nanoseconds
	money           spent        // of the call, in [models.Money]
	dayTotal        models.Money // the day's total as it was read last
}

// A spent is what one call spends of one limit.
type spent struct {
	day     string // of the amounts that are written
	before  int64  // of the call's amount: what is written for earlier days
	written int64  // of the call's amount: what is written
}

// write notes the amount that the call has spent so far, over all days, and returns the day's total.
func (s *spent) write(ctx context.Context, to Spending, name, call string, amount int64) (total int64, err error) {
	if day := time.Now().UTC().Format(time.DateOnly); day != s.day {
		s.day, s.before = day, s.written
	}
	if total, err = to.Spend(ctx, name, s.day, call, amount-s.before); err == nil {
		s.written = amount
	}
	return total, err
}

// An admission is the place of one call in the quota, until leave gives it back. Owned by the goroutine that carries
// the call.
type admission struct {
	quota  *quota        // Set once
	id     string        // Set once: names the call in what is spent
	took   time.Duration // how long the call has taken
	since  time.Time     // until when that is written down; zero: it has not begun
	shares []*share      // Set once: of the caller and of the key
	left   chan struct{} // closed by leave
	bill   bill          // safe by itself
}

// sharesOf returns a share for each name that a call counts for. A caller without a name is none, as its limits could
// not be enforced.
func sharesOf(g handoff.Grant) []*share {
	var all []*share
	if !g.Caller.Nameless() {
		all = append(all, &share{name: nameOf(g.Caller), limits: g.Limits})
	}
	if g.Key != "" {
		all = append(all, &share{name: "key " + g.Key, limits: g.KeyLimits, acrossInstances: true})
	}
	return all
}

// nameOf returns the name that the calls of a caller count for.
func nameOf(c handoff.Caller) string { return "caller " + c.String() }

// inCall reports whether a call of a caller has an admission that was not given back.
func (q *quota) inCall(c handoff.Caller) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.open[nameOf(c)] > 0
}

// enter admits a call, before anything is dialled for it. An error has code [handoff.CodeLimited], or
// [handoff.CodeStoreDown] if it is not known how much of a limit is left.
func (q *quota) enter(ctx context.Context, g handoff.Grant) (*admission, *handoff.Error) {
	p := &admission{quota: q, id: rand.Text(), shares: sharesOf(g), left: make(chan struct{}),
		bill: bill{charged: make(chan struct{}, 1), bill: Bill{Caller: g.Caller, Began: time.Now()}}}
	q.mu.Lock()
	for _, s := range p.shares {
		if n := s.limits.Calls; n > 0 && q.open[s.name] >= n {
			q.mu.Unlock()
			return nil, tooManyCalls(s)
		}
	}
	for _, s := range p.shares {
		q.open[s.name]++
		s.count = q.countLocked(s.name)
	}
	q.mu.Unlock()
	if fault := p.fits(ctx); fault != nil {
		p.leave()
		return nil, fault
	}
	left, err := p.spend(ctx, 0)
	fault, unpaid := p.pay(ctx)
	switch err = errors.Join(err, unpaid); {
	case err != nil:
		fault = handoff.StoreDown(err)
	case left <= 0 || fault != nil:
		fault = cmp.Or(fault, usedUp())
		now := time.Now().UTC()
		fault.Retry = now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now)
	default:
		return p, nil
	}
	p.leave()
	return nil, fault
}

func tooManyCalls(s *share) *handoff.Error {
	said := "one call is open already"
	if n := s.limits.Calls; n > 1 {
		said = fmt.Sprintf("%d calls are open already", n)
	}
	fault := handoff.Fault(handoff.CodeLimited, said, s.name)
	fault.Retry = callsRetry
	return fault
}

func usedUp() *handoff.Error {
	return handoff.Fault(handoff.CodeLimited, "the minutes of today are used up", "")
}

// leave gives the admission back and stores the bill. It must be called once.
func (p *admission) leave() {
	defer close(p.left)
	p.storeBill()
	p.quota.mu.Lock()
	defer p.quota.mu.Unlock()
	for _, s := range p.shares {
		if p.quota.open[s.name]--; p.quota.open[s.name] <= 0 {
			delete(p.quota.open, s.name)
		}
		p.quota.changedLocked(s.name)
	}
}

// endless is how much time is left if minutes have no limit.
const endless = time.Duration(1<<63 - 1)

// spend writes down that the call took so much longer, and returns how much of the day's time is left. Time that cannot
// be written is written with the next attempt.
func (p *admission) spend(ctx context.Context, took time.Duration) (left time.Duration, err error) {
	left = endless
	if p.quota.spending == nil {
		return left, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), meterWait)
	defer cancel()
	p.took += took
	for _, s := range p.shares {
		if s.limits.MinutesPerDay == 0 {
			continue
		}
		total, failed := s.time.write(ctx, p.quota.spending, s.name, p.id, int64(p.took))
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		left = min(left, time.Duration(s.limits.MinutesPerDay)*time.Minute-time.Duration(total))
	}
	return left, err
}

// meter writes down how long a call takes and what it costs, tells the caller a minute before the day's minutes run
// out, and ends the call when the minutes or the money are used up. It returns when ctx ends. A failing store ends no
// call.
func (p *admission) meter(ctx context.Context, c *Call) {
	if p.since.IsZero() { // otherwise a lost socket was dialled again, while the call went on
		p.since = time.Now()
	}
	told := false
	tick := time.NewTimer(0) // the first look tells how much is left
	defer tick.Stop()
	for {
		over := false
		select {
		case <-tick.C:
		case <-p.bill.charged:
		case <-ctx.Done():
			over = true
		}
		now := time.Now()
		left, err := p.spend(ctx, now.Sub(p.since))
		p.since = now
		spent, unpaid := p.pay(ctx)
		if err = errors.Join(err, unpaid); err != nil {
			p.quota.log.Warn("minutes or cost of a call not written down", zap.Error(err))
		}
		if spent != nil {
			c.part(spent, p.quota.partings(c.grant.Language).Money)
		}
		switch {
		case over, left == endless && err == nil && !p.limited():
			return
		case left <= 0:
			c.halt(usedUp())
		case left <= lastMinute && !told:
			told = true
			c.Say(handoff.Utterance{ID: "last-minute", Floor: handoff.FloorAsk,
				Text: toSay(p.quota.partings(c.grant.Language).Minute, "The time for calls is nearly used up today; "+
					"then this call ends. Tell the caller so, in these words or fewer.")})
		}
		next := min(meterStep, max(left, time.Second))
		if left > lastMinute {
			next = min(next, left-lastMinute)
		}
		tick.Reset(next)
	}
}
