// Package outbound holds the events that wait to be written to one end of a call, and why that end is over. Every leg
// has one queue, over a socket or a data channel.
//
// It must not know sockets or data channels, nor what an event says.
package outbound

import (
	"sync"
	"sync/atomic"
	"time"

	"switchboard/handoff"
)

const (
	// MaxEvents bounds the events that wait to be written. When full the leg ends: text is never dropped, and a
	// client that is this far behind has lost the conversation anyway.
	MaxEvents = 1024
	// MaxBytes bounds the bytes in these events, with the same policy.
	MaxBytes = 64 << 20
	// CloseGrace bounds the time in which a leg that ends writes the rest and says why it ends.
	CloseGrace = time.Second
)

// keptSlots bounds the capacity that an empty queue keeps; a larger one is freed.
const keptSlots = 16

// A Queue holds the events that one leg has to write, in order. It is safe for concurrent use.
type Queue struct {
	// The fields that every event needs are close together, for the CPU's cache.
	mu      sync.Mutex
	over    atomic.Bool // set by End
	waiting [][]byte    // Guarded by mu: oldest first; those before taken were taken
	taken   int         // Guarded by mu
	bytes   int64       // Guarded by mu: of the events that wait

	ready   chan struct{}  // holds one token after Send
	onEnd   func()         // Set once
	once    sync.Once      // guards End
	ending  chan struct{}  // closed by End
	reason  *handoff.Error // Set once, before over
	endedAt time.Time      // Set once, before over
}

// New returns an empty queue. The first call of End calls onEnd, which must not wait; it may be nil.
func New(onEnd func()) *Queue {
	if onEnd == nil {
		onEnd = func() {}
	}
	return &Queue{onEnd: onEnd, ready: make(chan struct{}, 1), ending: make(chan struct{})}
}

// Send enqueues an event and puts a token into Ready. It never blocks, and keeps the slice. False means that the leg is
// ending: the far end is too slow, unless [Queue.Ended] says otherwise.
func (q *Queue) Send(event []byte) bool {
	if !q.Put(event) {
		return false
	}
	select {
	case q.ready <- struct{}{}:
	default: // a token is there
	}
	return true
}

// Put is Send without the token, for a leg that writes when it is flushed.
func (q *Queue) Put(event []byte) bool {
	if q.over.Load() {
		return false
	}
	if full := q.add(event); full != "" {
		q.End(handoff.Fault(handoff.CodeSlowClient, "", full))
		return false
	}
	return true
}

// add enqueues an event, or returns which bound is full.
func (q *Queue) add(event []byte) (full string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch size := int64(len(event)); {
	case q.bytes+size > MaxBytes:
		return "bytes"
	case len(q.waiting)-q.taken >= MaxEvents:
		return "events"
	default:
		if q.taken > keptSlots && 2*q.taken >= len(q.waiting) {
			n := copy(q.waiting, q.waiting[q.taken:])
			clear(q.waiting[n:])
			q.waiting, q.taken = q.waiting[:n], 0
		}
		q.waiting, q.bytes = append(q.waiting, event), q.bytes+size
		return ""
	}
}

// Ready holds a token after Send, not after Put. The receiver must then take all events with Next, also after the end.
func (q *Queue) Ready() <-chan struct{} { return q.ready }

// Next takes the oldest event; false: none waits.
func (q *Queue) Next() ([]byte, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken == len(q.waiting) {
		return nil, false
	}
	event := q.waiting[q.taken]
	q.waiting[q.taken] = nil
	q.bytes -= int64(len(event))
	if q.taken++; q.taken == len(q.waiting) {
		q.waiting, q.taken = q.waiting[:0], 0
		if cap(q.waiting) > keptSlots {
			q.waiting = nil
		}
	}
	return event, true
}

// Bytes returns how many bytes wait.
func (q *Queue) Bytes() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes
}

// End begins the end of the leg. The first reason counts; nil is a normal end.
func (q *Queue) End(reason *handoff.Error) {
	q.once.Do(func() {
		q.reason, q.endedAt = reason, time.Now()
		q.over.Store(true)
		close(q.ending)
		q.onEnd()
	})
}

// Ending is closed when the leg begins to end.
func (q *Queue) Ending() <-chan struct{} { return q.ending }

// Over reports whether the leg is ending or has ended. It is cheaper than a receive from Ending.
func (q *Queue) Over() bool { return q.over.Load() }

// Ended returns why the leg ended; nil: it ended normally, or not yet.
func (q *Queue) Ended() *handoff.Error {
	if !q.Over() {
		return nil
	}
	return q.reason
}

// EndedAt returns when the leg began to end. It must only be called after that.
func (q *Queue) EndedAt() time.Time { return q.endedAt }

// Behind reports whether the leg ends because its far end is too slow: then nothing more is written to it.
func (q *Queue) Behind() bool {
	why := q.Ended()
	return why != nil && why.Code == handoff.CodeSlowClient
}
