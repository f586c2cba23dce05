package router

import (
	"context"
	"slices"
	"sync"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/work"
)

// maxPrefetches bounds the prefetches of one caller. Further requests attach their threads themselves.
const maxPrefetches = 8

// prefetchKept is how long a prefetched thread is kept for its request.
const prefetchKept = 10 * time.Second

// prefetches holds the prefetches of a caller that no request has taken.
type prefetches struct {
	mu    sync.Mutex
	byKey map[string]*prefetch // Guarded by mu: by the key of the request that is expected
}

// A prefetch attaches the thread of a request that is still being written. It starts no turn and makes no thread: a
// wrong prefetch costs a resume. A right one saves the time of an attach; all other steps of a handoff take 1 ms. With
// codex 0.169 on the same machine an attach takes 97 ms for a session of 2,000 items that codex has to load, 24 ms for
// a short one, 4 ms for one that is loaded (BenchmarkAttach), and a round trip more to another machine.
type prefetch struct {
	requested handoff.Target // Set once: the probable target of the request
	resolved  chan struct{}  // closed when target and err are set
	ready     chan struct{}  // closed when at is set, or will never be

	target     handoff.Target   // Set before resolved closes: the resolved names
	err        error            // Set before resolved closes
	thread     handoff.Target   // Set before ready closes: of at
	at         handoff.Attached // Set before ready closes; no Agent: nothing was attached
	attachedAt time.Time        // Set before ready closes
}

// Prefetch attaches the thread to which a request with this key will probably go. One request can use it. It does
// nothing beyond [maxPrefetches] of a caller.
func (v Service) Prefetch(g handoff.Grant, key string, t handoff.Target) {
	if g.May(handoff.ActAside) != nil { // it may give no work at all
		return
	}
	p := &prefetch{requested: work.Trimmed(t), resolved: make(chan struct{}), ready: make(chan struct{})}
	r := v.home(g.Caller)
	if !r.prefetches.add(key, p) {
		return
	}
	if !r.start(func(ctx context.Context) { r.attachAhead(ctx, g, key, p) }) {
		p.err = handoff.Fault(handoff.CodeShutdown, "", "")
		close(p.resolved)
		close(p.ready)
		r.prefetches.drop(key, p)
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

// on reports whether a thread of a server may be attached here.
func (a *prefetches) on(server string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.byKey {
		select {
		case <-p.resolved:
			if p.target.Server == server {
				return true
			}
		default: // nothing is attached yet
		}
	}
	return false
}

// take removes and returns the prefetch of a request, if it was for this target. The handoff of the request closes it.
func (a *prefetches) take(key string, t handoff.Target) *prefetch {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.byKey[key]
	if p == nil || p.requested != t {
		return nil
	}
	delete(a.byKey, key)
	return p
}

// drop removes a prefetch, unless a request has taken it, and reports whether it was removed.
func (a *prefetches) drop(key string, p *prefetch) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byKey[key] != p {
		return false
	}
	delete(a.byKey, key)
	return true
}

// attachAhead resolves and attaches the thread, and detaches it if no request takes the prefetch in time.
func (r *Router) attachAhead(ctx context.Context, g handoff.Grant, key string, p *prefetch) {
	limited, cancel := context.WithTimeout(ctx, work.SendTakes)
	r.resolveAndAttach(limited, g, p)
	cancel()
	if p.at.Agent != nil {
		select {
		case <-time.After(prefetchKept):
		case <-ctx.Done():
		}
	}
	if r.prefetches.drop(key, p) && p.at.Agent != nil {
		closeAgents(r.cfg.Log, []handoff.Agent{p.at.Agent})
	}
}

func (r *Router) resolveAndAttach(ctx context.Context, g handoff.Grant, p *prefetch) {
	defer close(p.ready)
	name, isCopy := work.CutPrefixFold(p.requested.Thread, work.CopyOf)
	p.target, p.err = r.cfg.Fleet.Resolve(ctx, g, handoff.Target{Server: p.requested.Server, Thread: name})
	close(p.resolved)
	t := p.target
	if p.err != nil || isCopy || t.Thread == handoff.NewThread {
		return
	}
	if t.Thread == "" {
		used, err := r.used(ctx)
		i := slices.IndexFunc(used, func(s handoff.Sticky) bool { return work.PlaceOf(s.Target) == work.PlaceOf(t) })
		if err != nil || i < 0 {
			return
		}
		t.Thread = used[i].Target.Thread
	}
	at, err := r.cfg.Fleet.Attach(ctx, t)
	if err != nil {
		return // the request will have the same error
	}
	p.thread, p.at, p.attachedAt = t, at, time.Now()
}

// awaitTarget waits for the resolved target.
func (p *prefetch) awaitTarget(ctx context.Context) (handoff.Target, error) {
	select {
	case <-p.resolved:
		return p.target, p.err
	case <-ctx.Done():
		return handoff.Target{}, handoff.Fault(handoff.CodeUnreachable, p.requested.Server, "not resolved in time")
	}
}

// awaitAttached waits for the attached thread. It returns false if that is not t, or too old, or a turn ran in it.
func (p *prefetch) awaitAttached(ctx context.Context, t handoff.Target) (handoff.Attached, bool) {
	select {
	case <-p.ready:
		fits := p.at.Agent != nil && p.thread == t && p.at.Running == "" && time.Since(p.attachedAt) < prefetchKept
		return p.at, fits
	case <-ctx.Done():
		return handoff.Attached{}, false
	}
}
