// Package outbound holds the events that wait to be written to one end of a call, and why that end is over.
// Every leg has one queue, whatever carries its events.
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
	// MaxBytes bounds the bytes in them, with the same policy, unless a leg is given less.
	MaxBytes = 64 << 20
	// CloseGrace bounds what a leg that ends still may take to write the rest and say why.
	CloseGrace = time.Second
)

// A Queue is what one leg has to write, in order. It is safe for concurrent use.
type Queue struct {
	bound   int64          // Set once: bytes that may wait
	events  chan []byte    // never closed
	bytes   atomic.Int64   // in events
	onEnd   func()         // Set once
	once    sync.Once      // guards End
	ending  chan struct{}  // closed by End
	reason  *handoff.Error // Set once, before ending is closed
	endedAt time.Time      // Set once, before ending is closed
}

// New returns an empty queue that holds so many bytes. Whoever ends it first calls onEnd, which must not wait; nil
// for nothing.
func New(bound int64, onEnd func()) *Queue {
	if onEnd == nil {
		onEnd = func() {}
	}
	return &Queue{bound: bound, onEnd: onEnd, events: make(chan []byte, MaxEvents), ending: make(chan struct{})}
}

// Send enqueues an event; it never blocks and may keep the slice. False means that the leg is ending: the
// far end is too slow, unless [Queue.Ended] says otherwise.
func (q *Queue) Send(event []byte) bool {
	select {
	case <-q.ending:
		return false
	default:
	}
	if q.bytes.Add(int64(len(event))) > q.bound {
		q.End(handoff.Fault(handoff.CodeSlowClient, "", "bytes"))
		return false
	}
	select {
	case q.events <- event:
		return true
	default:
		q.End(handoff.Fault(handoff.CodeSlowClient, "", "events"))
		return false
	}
}

// Events yields what waits, in order, also after the end. Whoever takes one calls Took.
func (q *Queue) Events() <-chan []byte { return q.events }

// Took makes room for as much as an event that was taken.
func (q *Queue) Took(event []byte) { q.bytes.Add(-int64(len(event))) }

// Bytes returns how much waits.
func (q *Queue) Bytes() int64 { return q.bytes.Load() }

// End begins the end of the leg; the first reason counts, nil is a normal end.
func (q *Queue) End(reason *handoff.Error) {
	q.once.Do(func() {
		q.reason, q.endedAt = reason, time.Now()
		close(q.ending)
		q.onEnd()
	})
}

// Ending is closed when the leg begins to end.
func (q *Queue) Ending() <-chan struct{} { return q.ending }

// Ended returns the reason; nil: it is a normal end, or nothing has ended yet.
func (q *Queue) Ended() *handoff.Error {
	select {
	case <-q.ending:
		return q.reason
	default:
		return nil
	}
}

// EndedAt returns when the leg began to end. It must have.
func (q *Queue) EndedAt() time.Time { return q.endedAt }

// Behind tells that the leg ends because its far end is too slow: then nothing more is written to it.
func (q *Queue) Behind() bool {
	why := q.Ended()
	return why != nil && why.Code == handoff.CodeSlowClient
}
