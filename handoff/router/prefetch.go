package router

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

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
	taken chan struct{}  // holds a token when the request came for it
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
func (r *Router) Prefetch(g handoff.Grant, key string, t handoff.Target) {
	p := &prefetch{asked: t, taken: make(chan struct{}, 1), found: make(chan struct{}), ready: make(chan struct{})}
	c := r.caller(g.Caller)
	if !c.prefetches.add(key, p) {
		return
	}
	if !r.jobs.start(func(ctx context.Context) {
		defer c.prefetches.drop(key, p)
		c.attachAhead(ctx, g, p)
	}) {
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

func (a *prefetches) drop(key string, p *prefetch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byKey[key] == p {
		delete(a.byKey, key)
	}
}

// take returns what was attached ahead for a request, if it was right so far. A wrong one is let go.
func (a *prefetches) take(key string, t handoff.Target) *prefetch {
	a.mu.Lock()
	p := a.byKey[key]
	a.mu.Unlock()
	if p == nil {
		return nil
	}
	a.drop(key, p)
	if p.asked != t {
		return nil
	}
	select {
	case p.taken <- struct{}{}:
		return p
	default:
		return nil
	}
}

// attachAhead resolves and attaches, and lets go of it when no request comes for it.
func (c *caller) attachAhead(ctx context.Context, g handoff.Grant, p *prefetch) {
	limited, cancel := context.WithTimeout(ctx, ioTimeout)
	c.attachFor(limited, g, p)
	cancel()
	if p.at.Agent == nil {
		return
	}
	wait := time.NewTimer(prefetchKept)
	defer wait.Stop()
	select {
	case <-p.taken: // its run has it now, and closes it
		return
	case <-wait.C:
	case <-ctx.Done():
	}
	select {
	case <-p.taken:
	case p.taken <- struct{}{}: // from here on nobody can take it
		if err := p.at.Agent.Close(); err != nil {
			c.router.log.Debug("detach failed", zap.Error(err))
		}
	}
}

func (c *caller) attachFor(ctx context.Context, g handoff.Grant, p *prefetch) {
	defer close(p.ready)
	name, isCopy := cutPrefixFold(p.asked.Thread, copyOf)
	p.target, p.err = c.router.fleet.Resolve(ctx, g, handoff.Target{Server: p.asked.Server, Thread: name})
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
	at, err := c.router.fleet.Attach(ctx, t)
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

// agents are what was attached for a run, ahead or by the run itself.
type agents struct {
	fleet handoff.Fleet // Set once
	ahead *prefetch     // Set once: what was attached ahead; nil: nothing

	mu   sync.Mutex
	open []handoff.Agent // Guarded by mu: not closed, oldest first
	used bool            // Guarded by mu: what was attached ahead is among them, or was
}

// attach attaches a thread, or takes what was attached ahead, once.
func (a *agents) attach(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	if a.ahead != nil {
		if at, ok := a.ahead.attached(ctx, t); ok {
			a.mu.Lock()
			first := !a.used
			a.used = true
			a.mu.Unlock()
			if first {
				return a.hold(at, nil)
			}
		}
	}
	return a.hold(a.fleet.Attach(ctx, t))
}

// again attaches exactly the thread asked for, afresh.
func (a *agents) again(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	at, err := a.hold(a.fleet.Attach(ctx, t))
	switch {
	case err != nil:
		return handoff.Attached{}, err
	case at.Target.Thread != t.Thread:
		return handoff.Attached{}, handoff.Fault(handoff.CodeSessionMismatch, t.Server, "got "+at.Target.Thread)
	}
	return at, nil
}

// lookFor attaches the thread afresh and asks it for the turn that a start with an id may have made.
func (a *agents) lookFor(
	ctx context.Context, t handoff.Target, after handoff.TurnID, id string,
) (handoff.Attached, handoff.TurnID, error) {
	at, err := a.again(ctx, t)
	if err != nil {
		return at, "", err
	}
	reconciler, ok := at.Agent.(handoff.Reconciler)
	if !ok {
		return at, "", handoff.Fault(handoff.CodeUnknownStart, t.Server, "this kind of server cannot tell")
	}
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	turn, err := reconciler.Reconcile(ctx, after, id)
	// The connection was lost again, not the answer.
	if err != nil && handoff.AsError(err).Code == handoff.CodeUnknownStart {
		err = handoff.Because(handoff.CodeAgentGone, t.Server, err)
	}
	return at, turn, err
}

// hold keeps what was attached until it is let go.
func (a *agents) hold(at handoff.Attached, err error) (handoff.Attached, error) {
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.open = append(a.open, at.Agent)
	}
	return at, err
}

// former lets go of all but the newest, which the caller closes.
func (a *agents) former() []handoff.Agent {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := max(len(a.open)-1, 0)
	old := slices.Clone(a.open[:n])
	a.open = a.open[n:]
	return old
}

// end closes all of them, and what was attached ahead and not used.
func (a *agents) end(log *zap.Logger) {
	if a.ahead != nil {
		<-a.ahead.ready
	}
	a.mu.Lock()
	old := a.open
	if a.ahead != nil && a.ahead.at.Agent != nil && !a.used {
		old = append(old, a.ahead.at.Agent)
	}
	a.open, a.used = nil, true
	a.mu.Unlock()
	closeAgents(log, old)
}

func closeAgents(log *zap.Logger, old []handoff.Agent) {
	for _, agent := range old {
		if err := agent.Close(); err != nil {
			log.Debug("detach failed", zap.Error(err))
		}
	}
}
