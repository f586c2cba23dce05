package realtime

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// tellEvery is how often the counts of open calls are published again: the store may have lost them.
const tellEvery = 5 * time.Second

// OpenCalls counts the open calls of a name over all running instances. It must be safe for concurrent use.
type OpenCalls interface {
	// CountCalls stores how many calls of a name this instance has. It returns false and stores nothing if the calls of
	// all instances together would be more than most; most 0 is any number.
	CountCalls(ctx context.Context, name string, mine CallsHere, most int) (bool, error)
}

// CallsHere is how many calls of a name an instance has. Of two counts, the one with the greater number is newer.
type CallsHere struct {
	Number uint64
	Calls  int
}

// countLocked returns a new count of a name, to be published.
func (q *quota) countLocked(name string) CallsHere {
	q.counts++
	return CallsHere{Number: q.counts, Calls: q.open[name]}
}

// fits returns an error if the call exceeds a limit over all instances. Only keys are counted so: a caller is at one
// instance, the callers of a key may be at several.
func (p *admission) fits(ctx context.Context) *handoff.Error {
	q := p.quota
	if q.others == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, meterWait)
	defer cancel()
	for _, s := range p.shares {
		if !s.acrossInstances || s.limits.Calls == 0 {
			continue
		}
		q.mu.Lock()
		q.published[s.name] = false
		q.mu.Unlock()
		fits, err := q.others.CountCalls(ctx, s.name, s.count, s.limits.Calls)
		switch {
		case err != nil:
			return handoff.StoreDown(err)
		case !fits:
			return tooManyCalls(s)
		}
	}
	return nil
}

// changedLocked asks publish to publish the count of a name, if one was published before.
func (q *quota) changedLocked(name string) {
	if _, known := q.published[name]; !known {
		return
	}
	q.stale[name] = struct{}{}
	select {
	case q.wake <- struct{}{}:
	default: // a token is there
	}
}

// publish publishes stale counts as they change, and every tellEvery all counts, until ctx ends. Then it publishes the
// stale ones once more.
func (q *quota) publish(ctx context.Context) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		all := false
		select {
		case <-tick.C:
			all = true
		case <-q.wake:
		case <-ctx.Done():
			q.publishNow(context.WithoutCancel(ctx), false)
			return
		}
		q.publishNow(ctx, all)
	}
}

// publishNow publishes the stale counts, or all. A count of 0 is published with two more ticks before it is forgotten:
// the store may lose it, and come back with an older state.
func (q *quota) publishNow(ctx context.Context, all bool) {
	ctx, cancel := context.WithTimeout(ctx, meterWait)
	defer cancel()
	q.mu.Lock()
	names := slices.Collect(maps.Keys(q.stale))
	if all {
		names = slices.Collect(maps.Keys(q.published))
	}
	q.mu.Unlock()
	for _, name := range names {
		q.mu.Lock()
		count := q.countLocked(name)
		delete(q.stale, name)
		q.mu.Unlock()
		_, err := q.others.CountCalls(ctx, name, count, 0)
		q.mu.Lock()
		if err != nil {
			q.stale[name] = struct{}{} // tried again with the next tick
		} else if _, stale := q.stale[name]; all && !stale && count.Calls == 0 && q.open[name] == 0 {
			if q.published[name] {
				delete(q.published, name)
			} else {
				q.published[name] = true
			}
		}
		q.mu.Unlock()
		if err != nil {
			q.log.Warn("open calls not told to the other instances", zap.Error(err))
			return
		}
	}
}
