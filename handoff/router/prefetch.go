package router

import (
	"context"
	"sync"
	"time"

	"switchboard/handoff"
)

// maxPrefetches bounds how many threads are attached ahead for one caller; more are attached when their request
// comes.
const maxPrefetches = 8

// prefetchKept is how long a thread that was attached ahead waits for its request, or is fresh enough to use.
const prefetchKept = 10 * time.Second

// prefetches are threads attached ahead for a caller.
type prefetches struct {
	mu    sync.Mutex
	byKey map[string]*prefetch // Guarded by mu: by the key of the request that is expected
}

// A prefetch attaches the thread of a request that is still being written. It runs nothing and makes nothing:
// a wrong one costs a resume. A right one saves what attaching takes beside the 1 ms of all else: with codex 0.169 on
// the same machine 97 ms for a session of 2,000 items that it has to load, 24 ms for a short one, 4 ms for one that it
// has loaded (BenchmarkAttach), and a round trip more to a machine that is far.
type prefetch struct {
	asked handoff.Target // Set once: where the request seems to go
	found chan struct{}  // closed when target and err are set
	ready chan struct{}  // closed when at is set, or will never be

	target handoff.Target   // Set before found closes: the resolved names
	err    error            // Set before found closes
	thread handoff.Target   // Set before ready closes: what was attached
	at     handoff.Attached // Set before ready closes; no Agent: nothing was attached
	when   time.Time
}

// Prefetch attaches the thread to which a request with this key will probably go. One request can use it. What exceeds
// maxPrefetches of a caller at a time is left out.
func (v Service) Prefetch(g handoff.Grant, key string, t handoff.Target) {
	p := &prefetch{asked: t, found: make(chan struct{}), ready: make(chan struct{})}
	c := v.of(g.Caller)
	if !c.prefetches.add(key, p) {
		return
	}
	if !c.router.jobs.start(func(ctx context.Context) { c.attachAhead(ctx, g, key, p) }) {
		c.prefetches.drop(key, p)
	}
}

func (a *prefetches) add(key string, p *prefetch) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byKey[key] != nil || len(a.byKey) >= maxPrefetches {
		return false
	}
	a.byKey[key] = p
	return true
}

// on reports whether a thread of a server may be attached ahead.
func (a *prefetches) on(server string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.byKey {
		select {
		case <-p.found:
			if p.target.Server == server {
				return true
			}
		default: // nothing is attached yet
		}
	}
	return false
}

// take returns what was attached ahead for a request, if it was right so far. Its run has it now, and closes it.
func (a *prefetches) take(key string, t handoff.Target) *prefetch {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.byKey[key]
	if p == nil || p.asked != t {
		return nil
	}
	delete(a.byKey, key)
	return p
}

// drop lets go of what no request has taken, and reports whether none has.
func (a *prefetches) drop(key string, p *prefetch) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byKey[key] != p {
		return false
	}
	delete(a.byKey, key)
	return true
}

// attachAhead resolves and attaches, and lets go of it when no request comes for it.
func (c *caller) attachAhead(ctx context.Context, g handoff.Grant, key string, p *prefetch) {
	limited, cancel := context.WithTimeout(ctx, ioTimeout)
	c.attachFor(limited, g, p)
	cancel()
	if p.at.Agent != nil {
		wait := time.NewTimer(prefetchKept)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-ctx.Done():
		}
	}
	if c.prefetches.drop(key, p) && p.at.Agent != nil {
		closeAgents(c.router.cfg.Log, []handoff.Agent{p.at.Agent})
	}
}

func (c *caller) attachFor(ctx context.Context, g handoff.Grant, p *prefetch) {
	defer close(p.ready)
	name, isCopy := cutPrefixFold(p.asked.Thread, copyOf)
	p.target, p.err = c.router.cfg.Fleet.Resolve(ctx, g, handoff.Target{Server: p.asked.Server, Thread: name})
	close(p.found)
	t := p.target
	if p.err != nil || isCopy || t.Thread == handoff.NewThread {
		return
	}
	if t.Thread == "" {
		if err := c.loadStickies(ctx); err != nil {
			return
		}
		s, ok := c.stickies.get(keyOf(t))
		if !ok {
			return
		}
		t.Thread = s.Target.Thread
	}
	at, err := c.router.cfg.Fleet.Attach(ctx, t)
	if err != nil {
		return // the request finds out by itself, and says it
	}
	p.thread, p.at, p.when = t, at, time.Now()
}

// resolved returns the names as they were resolved ahead.
func (p *prefetch) resolved(ctx context.Context) (handoff.Target, error) {
	select {
	case <-p.found:
		return p.target, p.err
	case <-ctx.Done():
		return handoff.Target{}, handoff.Fault(handoff.CodeUnreachable, p.asked.Server, "not resolved in time")
	}
}

// attached returns the thread if it was attached ahead, is the one that is wanted, and nothing ran in it.
func (p *prefetch) attached(ctx context.Context, t handoff.Target) (handoff.Attached, bool) {
	select {
	case <-p.ready:
		fits := p.at.Agent != nil && p.thread == t && p.at.Running == "" && time.Since(p.when) < prefetchKept
		return p.at, fits
	case <-ctx.Done():
		return handoff.Attached{}, false
	}
}
