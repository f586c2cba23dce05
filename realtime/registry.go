package realtime

import (
	"context"
	"sync"
	"time"

	"switchboard/handoff"
)

// A registry knows the calls of a front that live. Its methods may be used from any goroutine.
type registry struct {
	mu       sync.Mutex
	calls    map[string]*Call      // Guarded by mu: those that run, by id
	attached map[string]attachment // Guarded by mu: calls of the provider that we are in, or about to be, by id
}

func newRegistry() *registry {
	return &registry{calls: map[string]*Call{}, attached: map[string]attachment{}}
}

// An attachment is a call of the provider that we are in, or about to be. Set once.
type attachment struct {
	grant handoff.Grant
	leave context.CancelFunc // ends it also while its socket is dialled
	began time.Time          // of a call that we began; zero: somebody else did
	pass  *admission         // of a call that we began
	in    chan struct{}      // closed once there is a [Call], or there will be none
	lasts *lasting           // nil: no other instance goes on in it
}

// add makes a call one that can be found.
func (r *registry) add(c *Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[c.id] = c
	r.enter(c.id)
}

func (r *registry) remove(c *Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.calls, c.id)
}

// get finds a call, and how we are in it if the provider carries it. Either may be missing: nil, or the zero value.
func (r *registry) get(id string) (*Call, attachment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[id], r.attached[id]
}

// attach notes that we are in a call of the provider, or about to be; false: we are already. Who was noted detaches.
func (r *registry) attach(id string, a attachment) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, taken := r.attached[id]
	if _, own := r.calls[id]; own || taken {
		return false
	}
	r.attached[id] = a
	return true
}

func (r *registry) detach(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enter(id)
	delete(r.attached, id)
}

// enter lets those go on who wait until we are in a call of the provider. The caller holds mu.
func (r *registry) enter(id string) {
	if a, ok := r.attached[id]; ok && a.in != nil {
		close(a.in)
		a.in = nil
		r.attached[id] = a
	}
}

// ofProvider reports whether a call is one that we began at the provider.
func (r *registry) ofProvider(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.attached[id].began.IsZero()
}

// rejoinable finds a call whose client this caller may be again.
func (r *registry) rejoinable(grant handoff.Grant, id string, browser bool) (*Call, *handoff.Error) {
	r.mu.Lock()
	c := r.calls[id]
	r.mu.Unlock()
	switch {
	case c == nil || !c.grant.MayJoin(grant) || c.over.Load():
		return nil, &handoff.Error{Code: handoff.CodeNotFound, Subject: "such call", Param: "call_id"}
	case c.legs.hold == 0:
		return nil, handoff.Malformed("call_id",
			"the client of this call did not say, as it began, that it comes back (rejoin=1)")
	case c.legs.performs != browser:
		return nil, handoff.Malformed("call_id", "a call is rejoined as it began: by WebRTC, or by WebSocket")
	}
	return c, nil
}

// leaveBeside makes room for another socket beside a call's client.
func (r *registry) leaveBeside(c *Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.besides--
}

// enterBeside finds a call that one more socket may join, and counts it.
func (r *registry) enterBeside(grant handoff.Grant, id string) (*Call, *handoff.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.calls[id]
	switch {
	case c == nil || !c.grant.MayJoin(grant):
		return nil, &handoff.Error{Code: handoff.CodeNotFound, Subject: "such call", Param: "call_id"}
	case c.besides >= maxBeside:
		return nil, &handoff.Error{Code: handoff.CodeLimited, Subject: "more sockets on this call", Param: "call_id"}
	}
	c.besides++
	return c, nil
}

// held returns the calls of the same caller and key that wait for their client.
func (r *registry) held(grant handoff.Grant) (held []*Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		if c.grant.Caller == grant.Caller && c.grant.Key == grant.Key && c.isHeld() {
			held = append(held, c)
		}
	}
	return held
}

// hangUp ends a call that this caller may end; false: there is none.
func (r *registry) hangUp(grant handoff.Grant, id string) bool {
	r.mu.Lock()
	c := r.calls[id]
	a, attached := r.attached[id]
	// A call without a Call is one of the provider whose socket is being dialled.
	may := c != nil && c.grant.MayEnd(grant) || c == nil && attached && a.grant.MayEnd(grant)
	if may && attached {
		a.leave() // before it can be admitted: that looks afterwards
	}
	r.mu.Unlock()
	if may && c != nil {
		c.hangUp()
	}
	return may
}

// leave ends the calls of a caller whom another instance has; those that the provider carries go on there.
func (r *registry) leave(c handoff.Caller) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.attached {
		if a.grant.Caller != c {
			continue
		}
		a.lasts.move()
		a.leave() // one whose socket was lost is not dialled again
	}
	for _, one := range r.calls {
		if one.grant.Caller == c {
			one.halt(handoff.Fault(handoff.CodeShutdown, "", "another instance has the caller"))
		}
	}
}

// ifLeft reports what becomes of a caller's calls when another instance has the caller: whether one ends, and if none
// does, whether one goes on there.
func (r *registry) ifLeft(c handoff.Caller) (ends, goesOn bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.attached {
		if a.grant.Caller == c {
			if !a.lasts.isKept() || a.lasts.hasMoved() {
				return true, false
			}
			goesOn = true
		}
	}
	for id, one := range r.calls {
		if one.grant.Caller == c && !r.attached[id].lasts.isKept() {
			return true, false
		}
	}
	return false, goesOn
}

// list returns the calls that this caller may end, in no order.
func (r *registry) list(grant handoff.Grant) []handoff.CallInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := []handoff.CallInfo{}
	for id, a := range r.attached {
		if r.calls[id] == nil && !a.began.IsZero() && a.grant.MayEnd(grant) {
			list = append(list, handoff.CallInfo{ID: id, Began: a.began})
		}
	}
	for id, c := range r.calls {
		if c.grant.MayEnd(grant) && !c.over.Load() { // one that is over may take a moment to close its far ends
			list = append(list, handoff.CallInfo{ID: id, Began: c.made, Held: c.isHeld()})
		}
	}
	return list
}
