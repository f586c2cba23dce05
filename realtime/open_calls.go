package realtime

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// tellEvery is how often the other instances are told of the open calls once more: what counts them may have lost it.
const tellEvery = 5 * time.Second

// OpenCalls counts the open calls of a name over all instances that live. It is safe for concurrent use.
type OpenCalls interface {
	// CountCalls notes how many calls of a name this instance has. That is false, and nothing is noted, where they are
	// more than most together with those of the other instances; most 0 is any number.
	CountCalls(ctx context.Context, name string, mine CallsHere, most int) (bool, error)
}

// CallsHere is how many calls of a name an instance has. Of two counts that one with the greater number is newer.
type CallsHere struct {
	Number uint64
	Calls  int
}

// countLocked takes a count of a name, to be told to the other instances.
func (q *quota) countLocked(name string) CallsHere {
	q.counts++
	return CallsHere{Number: q.counts, Calls: q.open[name]}
}

// fits reports why a call is too much over all instances; nil: it is not. A caller is at one instance; those of a key
// may be at several.
func (p *admission) fits(ctx context.Context) *handoff.Error {
	q := p.quota
	if q.others == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, meterWait)
	defer cancel()
	for _, s := range p.shares {
		if !s.many || s.limits.Calls == 0 {
			continue
		}
		q.mu.Lock()
		q.shared[s.name] = false
		q.mu.Unlock()
		fits, err := q.others.CountCalls(ctx, s.name, s.count, s.limits.Calls)
		switch {
		case err != nil:
			return handoff.Because(handoff.CodeStoreDown, "", err)
		case !fits:
			return tooManyCalls(s)
		}
	}
	return nil
}

// changedLocked has the other instances told of a name, if they know it.
func (q *quota) changedLocked(name string) {
	if _, known := q.shared[name]; !known {
		return
	}
	q.stale[name] = struct{}{}
	select {
	case q.told <- struct{}{}:
	default: // they will be
	}
}

// tell tells the other instances of calls that have ended, and now and then of all that are open, until ctx ends; then
// of those that have ended, once more.
func (q *quota) tell(ctx context.Context) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		all := false
		select {
		case <-tick.C:
			all = true
		case <-q.told:
		case <-ctx.Done():
			q.tellNow(context.WithoutCancel(ctx), false)
			return
		}
		q.tellNow(ctx, all)
	}
}

// tellNow tells of what the others know an older count of, or of all that they know. That none is open is told with two
// ticks more: what counts them may come back as it was a moment ago.
func (q *quota) tellNow(ctx context.Context, all bool) {
	ctx, cancel := context.WithTimeout(ctx, meterWait)
	defer cancel()
	q.mu.Lock()
	names := slices.Collect(maps.Keys(q.stale))
	if all {
		names = slices.Collect(maps.Keys(q.shared))
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
			q.stale[name] = struct{}{} // with the next tick
		} else if _, stale := q.stale[name]; all && !stale && count.Calls == 0 && q.open[name] == 0 {
			if q.shared[name] {
				delete(q.shared, name)
			} else {
				q.shared[name] = true
			}
		}
		q.mu.Unlock()
		if err != nil {
			q.log.Warn("open calls not told to the other instances", zap.Error(err))
			return
		}
	}
}
