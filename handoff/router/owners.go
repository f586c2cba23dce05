package router

import (
	"context"
	"sync"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// owners knows for whom Switchboard made a thread. It is told of each that is made, before it is used; the ledger keeps
// that beyond the process, and what it has is read at start. Until then a thread that nobody is known to own is hidden.
type owners struct {
	mu     sync.Mutex
	unread bool                              // Guarded by mu: the ledger has more
	by     map[handoff.Target]handoff.Caller // Guarded by mu: by server and thread
	order  []handoff.Target                  // Guarded by mu: oldest first
}

// readOwners reads what the ledger has, once.
func (r *Router) readOwners(ctx context.Context) error {
	r.owners.mu.Lock()
	unread := r.owners.unread
	r.owners.mu.Unlock()
	if !unread {
		return nil
	}
	all, err := r.makers.Owned(ctx)
	if err != nil {
		return err
	}
	for _, o := range all {
		r.owners.made(o.Caller, handoff.Target{Server: o.Server, Thread: o.Thread})
	}
	r.owners.mu.Lock()
	defer r.owners.mu.Unlock()
	r.owners.unread = false
	return nil
}

// made notes that a thread was made for a caller. The first one keeps it.
func (o *owners) made(c handoff.Caller, t handoff.Target) {
	key := handoff.Target{Server: t.Server, Thread: t.Thread}
	if key.Thread == "" || key.Thread == handoff.NewThread {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.by[key]; known {
		return
	}
	if len(o.order) >= ledger.MaxOwned {
		for _, old := range o.order[:ledger.MaxOwned/2] {
			delete(o.by, old)
		}
		o.order = append([]handoff.Target(nil), o.order[ledger.MaxOwned/2:]...)
	}
	if o.by == nil {
		o.by = map[handoff.Target]handoff.Caller{}
	}
	o.by[key], o.order = c, append(o.order, key)
}

// Hidden reports whether a caller must not see a thread, because Switchboard made it for somebody else. It never waits.
func (r *Router) Hidden(c handoff.Caller, server, thread string) bool {
	r.owners.mu.Lock()
	defer r.owners.mu.Unlock()
	owner, known := r.owners.by[handoff.Target{Server: server, Thread: thread}]
	return known && owner != c || !known && r.owners.unread
}
