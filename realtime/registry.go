package realtime

import (
	"context"
	"sync"
	"time"

	"switchboard/handoff"
)

// A registry knows the open calls of a front. It is safe for concurrent use.
type registry struct {
	mu       sync.Mutex
	calls    map[string]*Call      // Guarded by mu: open calls, by id
	attached map[string]attachment // Guarded by mu: calls of the provider that we are in or about to join, by id
}

func newRegistry() *registry {
	return &registry{calls: map[string]*Call{}, attached: map[string]attachment{}}
}

// An attachment is a call of the provider that we are in or about to join. Set once.
type attachment struct {
	grant handoff.Grant
	leave context.CancelFunc // leaves the call, also while its socket is dialled
	began time.Time          // when we began the call; zero: somebody else began it
	pass  *admission         // set for a call that we began, or took over from another instance
	in    chan struct{}      // closed once there is a [Call], or is known to be none
	claim *claim             // nil: no other instance can take the call over
}

// add adds a call, so that others find it.
func (r *registry) add(c *Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[c.id] = c
	r.signalIn(c.id)
}

func (r *registry) remove(c *Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.calls, c.id)
}

// get returns a call, and its attachment if the provider carries it. Either may be missing: nil, or the zero value.
func (r *registry) get(id string) (*Call, attachment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[id], r.attached[id]
}

// attach notes that we are about to join a call of the provider; false: we are in it already. After true, detach must
// be called.
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
	r.signalIn(id)
	delete(r.attached, id)
}

// signalIn closes the attachment's channel in, which [Front.Say] waits for. The caller holds mu.
func (r *registry) signalIn(id string) {
	if a, ok := r.attached[id]; ok && a.in != nil {
		close(a.in)
		a.in = nil
		r.attached[id] = a
	}
}

// ofProvider reports whether we began this call at the provider.
func (r *registry) ofProvider(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.attached[id].began.IsZero()
}

// rejoinable returns a call whose client this caller may be again, by WebRTC (browser) or WebSocket.
func (r *registry) rejoinable(grant handoff.Grant, id string, browser bool) (*Call, *handoff.Error) {
	r.mu.Lock()
	c := r.calls[id]
	r.mu.Unlock()
	switch {
	case c == nil || !c.grant.MayJoin(grant) || c.over.Load():
		return nil, noSuchCall()
	case c.legs.hold == 0:
		return nil, handoff.Malformed("call_id",
			"the client of this call did not say, as it began, that it comes back (rejoin=1)")
	case c.legs.performs != browser:
		return nil, handoff.Malformed("call_id", "a call is rejoined as it began: by WebRTC, or by WebSocket")
	}
	return c, nil
}

// leaveBeside uncounts a socket beside a call's client.
func (r *registry) leaveBeside(c *Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.besides--
}

// enterBeside returns a call that one more socket may join, and counts the socket.
func (r *registry) enterBeside(grant handoff.Grant, id string) (*Call, *handoff.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.calls[id]
	switch {
	case c == nil || !c.grant.MayJoin(grant):
		return nil, noSuchCall()
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
	// An attachment without a Call is one whose socket is being dialled.
	may := c != nil && c.grant.MayEnd(grant) || c == nil && attached && a.grant.MayEnd(grant)
	if may && attached {
		a.leave() // under mu: a Call that is added later finds its context ended
	}
	r.mu.Unlock()
	if may && c != nil {
		c.hangUp()
	}
	return may
}

// leave ends the calls of a caller whom another instance has taken over; that instance continues those that the
// provider carries.
func (r *registry) leave(c handoff.Caller) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.attached {
		if a.grant.Caller != c {
			continue
		}
		a.claim.move()
		a.leave() // a lost socket is not dialled again
	}
	for _, one := range r.calls {
		if one.grant.Caller == c {
			one.halt(handoff.Fault(handoff.CodeShutdown, "", "another instance has the caller"))
		}
	}
}

// ifLeft reports what would become of a caller's calls if another instance took the caller over: whether one would end,
// and if none, whether one would continue there.
func (r *registry) ifLeft(c handoff.Caller) (ends, goesOn bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.attached {
		if a.grant.Caller == c {
			if !a.claim.isKept() || a.claim.hasMoved() {
				return true, false
			}
			goesOn = true
		}
	}
	for id, one := range r.calls {
		if one.grant.Caller == c && !r.attached[id].claim.isKept() {
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
		if c.grant.MayEnd(grant) && !c.over.Load() { // a call that is over may take a moment to close its legs
			list = append(list, handoff.CallInfo{ID: id, Began: c.createdAt, Held: c.isHeld()})
		}
	}
	return list
}
