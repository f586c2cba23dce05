package router

import (
	"sync"

	"switchboard/handoff"
)

// maxOwned bounds how many threads are known to be somebody's. When it is full, the oldest half is forgotten,
// so that those threads are seen by everybody who may use their server.
const maxOwned = 20_000

// owners knows for whom Switchboard made a thread. It is told of each that is made, of what the ledger has
// open, and of stickies as they are read: after a restart, a thread of a caller who has not come back yet and
// for whom nothing is open is known to nobody.
type owners struct {
	mu    sync.Mutex
	by    map[handoff.Target]handoff.Caller // Guarded by mu: by server and thread
	order []handoff.Target                  // Guarded by mu: oldest first
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
	if len(o.order) >= maxOwned {
		for _, old := range o.order[:maxOwned/2] {
			delete(o.by, old)
		}
		o.order = append([]handoff.Target(nil), o.order[maxOwned/2:]...)
	}
	if o.by == nil {
		o.by = map[handoff.Target]handoff.Caller{}
	}
	o.by[key], o.order = c, append(o.order, key)
}

// Hidden tells whether a caller must not see a thread, because Switchboard made it for somebody else. It never waits.
func (r *Router) Hidden(c handoff.Caller, server, thread string) bool {
	r.owners.mu.Lock()
	defer r.owners.mu.Unlock()
	owner, known := r.owners.by[handoff.Target{Server: server, Thread: thread}]
	return known && owner != c
}
