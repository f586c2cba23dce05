package realtime

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
)

const (
	// meterStep is how often the time of a call is written down: a process that is killed forgets as much.
	meterStep = 15 * time.Second
	// lastMinute is how long before its end a caller is told that their minutes run out.
	lastMinute = time.Minute
	// meterWait bounds one call of the store.
	meterWait = 3 * time.Second
	// callsRetry is when a caller with too many open calls may try again: nobody knows when one ends.
	callsRetry = 30 * time.Second
)

// Minutes keeps how long each name was in calls on a day of UTC ("2026-11-22"): it adds d, which may be 0, and
// returns the day's total. Its methods may be used from any goroutine.
type Minutes interface {
	Spend(ctx context.Context, name, day string, d time.Duration) (total time.Duration, err error)
}

// A quota counts the calls of callers and keys. Its methods may be used from any goroutine.
type quota struct {
	minutes Minutes     // Set once; nil: minutes are not counted
	log     *zap.Logger // Set once

	mu   sync.Mutex
	open map[string]int // Guarded by mu: open calls by name
}

// A share is what one name may use.
type share struct {
	name   string
	limits handoff.Limits
	owed   time.Duration // not yet written down
}

// An admission lets one call be. Owned by the goroutine that carries the call.
type admission struct {
	quota  *quota        // Set once
	shares []*share      // Set once: of the caller and of the key
	left   chan struct{} // closed when it was given back
}

// sharesOf are the names that a call counts for. A caller without a name has no limits that could hold them.
func sharesOf(g handoff.Grant) []*share {
	var all []*share
	if !g.Caller.Nameless() {
		all = append(all, &share{name: "caller " + g.Caller.String(), limits: g.Limits})
	}
	if g.Key != "" {
		all = append(all, &share{name: "key " + g.Key, limits: g.KeyLimits})
	}
	return all
}

// enter lets a call begin, before anything is dialled for it. An error has code [handoff.CodeLimited], or
// [handoff.CodeStoreDown] where nobody knows how many minutes are left.
func (q *quota) enter(ctx context.Context, g handoff.Grant) (*admission, *handoff.Error) {
	p := &admission{quota: q, shares: sharesOf(g), left: make(chan struct{})}
	q.mu.Lock()
	for _, s := range p.shares {
		if n := s.limits.Calls; n > 0 && q.open[s.name] >= n {
			q.mu.Unlock()
			fault := handoff.Fault(handoff.CodeLimited, countCalls(n), s.name)
			fault.Retry = callsRetry
			return nil, fault
		}
	}
	for _, s := range p.shares {
		q.open[s.name]++
	}
	q.mu.Unlock()
	left, err := p.spend(ctx, 0)
	var fault *handoff.Error
	switch {
	case err != nil:
		fault = handoff.Because(handoff.CodeStoreDown, "", err)
	case left <= 0:
		fault = usedUp()
		now := time.Now().UTC()
		fault.Retry = now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now)
	default:
		return p, nil
	}
	p.leave()
	return nil, fault
}

func countCalls(n int) string {
	if n == 1 {
		return "one call is open already"
	}
	return fmt.Sprintf("%d calls are open already", n)
}

func usedUp() *handoff.Error {
	return handoff.Fault(handoff.CodeLimited, "the minutes of today are used up", "")
}

// leave gives the pass back, once.
func (p *admission) leave() {
	defer close(p.left)
	p.quota.mu.Lock()
	defer p.quota.mu.Unlock()
	for _, s := range p.shares {
		if p.quota.open[s.name]--; p.quota.open[s.name] <= 0 {
			delete(p.quota.open, s.name)
		}
	}
}

// endless is how much is left where minutes have no limit.
const endless = time.Duration(1<<63 - 1)

// spend writes down that the call took so much longer, and returns how much is left of the day. What cannot
// be written is owed.
func (p *admission) spend(ctx context.Context, took time.Duration) (left time.Duration, err error) {
	left = endless
	if p.quota.minutes == nil {
		return left, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), meterWait)
	defer cancel()
	day := time.Now().UTC().Format(time.DateOnly)
	for _, s := range p.shares {
		if s.limits.MinutesPerDay == 0 {
			continue
		}
		s.owed += took
		total, failed := p.quota.minutes.Spend(ctx, s.name, day, s.owed)
		if failed != nil {
			err = failed
			continue
		}
		s.owed = 0
		left = min(left, time.Duration(s.limits.MinutesPerDay)*time.Minute-total)
	}
	return left, err
}

// meter writes down how long a call takes, tells the caller a minute before the day's minutes run out, and
// ends the call when they have. It returns when ctx ends. A store that is away ends no call.
func (p *admission) meter(ctx context.Context, c *Call) {
	since, told := time.Now(), false
	tick := time.NewTimer(0) // the first look tells how much is left
	defer tick.Stop()
	for {
		over := false
		select {
		case <-tick.C:
		case <-ctx.Done():
			over = true
		}
		now := time.Now()
		left, err := p.spend(ctx, now.Sub(since))
		since = now
		if err != nil {
			p.quota.log.Warn("minutes of a call not written down", zap.Error(err))
		}
		switch {
		case over, left == endless && err == nil:
			return
		case left <= 0:
			c.halt(usedUp())
		case left <= lastMinute && !told:
			told = true
			c.Say(handoff.Utterance{ID: "last-minute", Floor: handoff.FloorAsk,
				Text: "About one minute is left of the time for calls today; then this call ends. " +
					"Work that runs goes on, and its results will be told in the next call. Tell the caller so, in one short " +
					"sentence."})
		}
		next := min(meterStep, max(left, time.Second))
		if left > lastMinute {
			next = min(next, left-lastMinute)
		}
		tick.Reset(next)
	}
}
