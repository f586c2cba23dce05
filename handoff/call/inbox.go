package call

import (
	"sync"
	"sync/atomic"

	"switchboard/handoff"
	"switchboard/handoff/speech"
)

// maxProgressPosted bounds the queue of a call's inbox: beyond it, progress of handoffs is dropped, which is also on
// the page and in the thread. Answers, questions and outcomes are always taken; the number of open handoffs bounds
// them.
const maxProgressPosted = 256

// An inbox is the queue of a call's loop, and passes utterances to the voice. It implements [handoff.Listener] and
// never blocks.
type inbox struct {
	voice   handoff.Voice  // Set once
	dropped *atomic.Uint64 // Set once: counts dropped progress
	ready   chan struct{}  // holds one token while the inbox has something

	mu    sync.Mutex
	ended bool             // Guarded by mu
	queue []func(*serving) // Guarded by mu: for the loop of the call, in order
	spare []func(*serving) // Guarded by mu: the list that the loop took last, to be filled again
}

func newInbox(voice handoff.Voice, dropped *atomic.Uint64) *inbox {
	return &inbox{voice: voice, dropped: dropped, ready: make(chan struct{}, 1)}
}

// Hear implements [handoff.Listener].
func (c *inbox) Hear(e handoff.Event) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e.Kind.(type) {
	case handoff.EventDoing, handoff.EventRemark:
		if len(c.queue) >= maxProgressPosted {
			c.dropped.Add(1)
			return !c.ended
		}
	}
	return c.addLocked(func(s *serving) { s.handoffEvent(e) })
}

// Outbox implements [handoff.Listener].
func (c *inbox) Outbox(ended []handoff.Record) bool {
	return c.post(func(s *serving) { s.welcomeBack(ended) })
}

// say gives an utterance to the voice model, unless the call has ended.
func (c *inbox) say(u handoff.Utterance) {
	c.mu.Lock()
	ended := c.ended
	c.mu.Unlock()
	if !ended {
		c.voice.Say(u)
	}
}

// pace posts an event to the schedule of the call.
func (c *inbox) pace(e speech.Event) { c.post(func(s *serving) { s.pace(e) }) }

// post queues do for the loop of the call. It returns false if the call has ended.
func (c *inbox) post(do func(*serving)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.addLocked(do)
}

func (c *inbox) addLocked(do func(*serving)) bool {
	if c.ended {
		return false
	}
	c.queue = append(c.queue, do)
	select {
	case c.ready <- struct{}{}:
	default: // the loop is awake already
	}
	return true
}

// take empties the inbox. The result is valid until the next take.
func (c *inbox) take() []func(*serving) {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.spare)
	list := c.queue
	c.queue, c.spare = c.spare[:0], list
	return list
}

// end closes the inbox and returns what was not taken.
func (c *inbox) end() []func(*serving) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	list := c.queue
	c.queue = nil
	return list
}
