package router

import (
	"switchboard/handoff"
	"switchboard/handoff/speech"
	"sync"
	"sync/atomic"
)

// Bounds of a call's inbox: reports of what works do on the way are refused first, they are on the page
// and in the thread. Answers, questions and outcomes are few, bounded by the works that are open, and
// always taken.
const maxProgressPosted = 256

// A call is one voice call as works see it: they speak into it and report to its loop. It never blocks.
type call struct {
	voice   handoff.Voice  // Set once
	dropped *atomic.Uint64 // Set once: counts reports that found the inbox full
	posted  chan struct{}  // holds one token while the inbox has something

	mu    sync.Mutex
	ended bool             // Guarded by mu
	inbox []func(*serving) // Guarded by mu: for the loop of the call, in order
}

func newCall(voice handoff.Voice, dropped *atomic.Uint64) *call {
	return &call{voice: voice, dropped: dropped, posted: make(chan struct{}, 1)}
}

// endedCall returns a call that nobody listens to any more.
func endedCall() *call { return &call{ended: true, dropped: new(atomic.Uint64)} }

// say gives an utterance to the voice model. False means that the call has ended and nobody will hear it.
func (c *call) say(u handoff.Utterance) bool {
	c.mu.Lock()
	ended := c.ended
	c.mu.Unlock()
	if ended {
		return false
	}
	c.voice.Say(u)
	return true
}

// post hands the loop of the call something to do. False means that the call has ended.
func (c *call) post(fn func(*serving)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.postLocked(fn)
}

func (c *call) postLocked(fn func(*serving)) bool {
	if c.ended {
		return false
	}
	c.inbox = append(c.inbox, fn)
	select {
	case c.posted <- struct{}{}:
	default: // it is awake already
	}
	return true
}

// tell reports an event to the schedule of the call. False means that the call has ended.
func (c *call) tell(e speech.Event) bool {
	return c.post(func(s *serving) { s.pace(e) })
}

// progress reports what may be missed when too much happens.
func (c *call) progress(e speech.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.inbox) >= maxProgressPosted {
		c.dropped.Add(1)
		return
	}
	c.postLocked(func(s *serving) { s.pace(e) })
}

// take empties the inbox.
func (c *call) take() []func(*serving) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fns := c.inbox
	c.inbox = nil
	return fns
}

// end closes the call and returns what its loop did not do yet. From here on nothing is taken.
func (c *call) end() []func(*serving) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	fns := c.inbox
	c.inbox = nil
	return fns
}
