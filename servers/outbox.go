package servers

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// PingEvery is the interval between pings on a wire that has them. Agent servers themselves send none.
const PingEvery = 12 * time.Second

var (
	// ErrTooMany says that the queue or the number of requests is at its bound.
	ErrTooMany = errors.New("too many requests in flight")
	// ErrTooLarge says that a frame to be sent is larger than [MaxFrame].
	ErrTooLarge = errors.New("frame larger than 16 MiB")
	// ErrClosed says that this end has closed the connection.
	ErrClosed = errors.New("connection closed")
)

// A NotSentError says that a frame was certainly not sent.
type NotSentError struct{ Cause error }

// Error implements error.
func (e *NotSentError) Error() string { return "not sent: " + e.Cause.Error() }

// Unwrap returns the cause: callers look for [ErrTooMany] and [ErrTooLarge].
func (e *NotSentError) Unwrap() error { return e.Cause }

// NotSent reports whether an error says that a frame was certainly not sent.
func NotSent(err error) bool {
	_, is := errors.AsType[*NotSentError](err)
	return is
}

// An UnansweredError says that a frame may have been sent and that no response came.
type UnansweredError struct{ Cause error }

// Error implements error.
func (e *UnansweredError) Error() string { return "no answer: " + e.Cause.Error() }

// Unwrap returns the cause: callers look for [ErrLongFrame].
func (e *UnansweredError) Unwrap() error { return e.Cause }

// A pinger is a wire that can send pings.
type pinger interface{ Ping() error }

// An Outbox is the lifetime of a connection and the queue of its writer: one goroutine writes the frames in order. It
// knows of each frame whether it was certainly not sent. It is safe for concurrent use.
type Outbox struct {
	Full atomic.Uint64 // frames that were refused, since the queue was full

	wire   Wire          // Set once
	log    *zap.Logger   // Set once
	frames chan *Frame   // Set once, never closed; taken by write
	done   chan struct{} // Set once, closed by Lose
	limit  int           // Set once: of queued

	mu     sync.Mutex
	queued int   // Guarded by mu: bytes of frames that wait
	cause  error // Guarded by mu: why the connection was lost
}

// A Frame is a frame in an outbox. The first change of state, by the writer or by Withdraw, decides whether it is sent.
type Frame struct {
	bytes   []byte
	state   atomic.Int32
	written chan error // capacity 1: the result of writing it
}

const (
	frameQueued int32 = iota
	frameTaken
	frameWithdrawn
)

// Withdraw withdraws a frame, and reports whether it was in time: then the frame is never sent.
func (f *Frame) Withdraw() bool { return f.state.CompareAndSwap(frameQueued, frameWithdrawn) }

// NewOutbox returns the outbox of a wire. It queues at most frames frames and limit bytes.
func NewOutbox(wire Wire, frames, limit int, log *zap.Logger) *Outbox {
	return &Outbox{wire: wire, log: log, frames: make(chan *Frame, frames), done: make(chan struct{}), limit: limit}
}

// Run runs the writer and read until the connection is lost or closed. Then it closes the wire, which ends read, and
// returns when both have ended.
func (o *Outbox) Run(read func()) {
	var wg sync.WaitGroup
	wg.Go(read)
	wg.Go(o.write)
	<-o.done
	if err := o.wire.Close(); err != nil {
		o.log.Debug("close wire", zap.Error(err))
	}
	wg.Wait()
}

// Lose ends the connection. The first cause is kept.
func (o *Outbox) Lose(cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cause == nil {
		o.cause = cause
		close(o.done)
	}
}

// Lost returns why the connection ended, or nil.
func (o *Outbox) Lost() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.cause
}

// Done is closed when the connection ends.
func (o *Outbox) Done() <-chan struct{} { return o.done }

func (o *Outbox) write() {
	var tick <-chan time.Time
	ping, canPing := o.wire.(pinger)
	if canPing {
		ticker := time.NewTicker(PingEvery)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		var err error
		select {
		case <-o.done:
			return
		case <-tick:
			err = ping.Ping()
		case f := <-o.frames:
			o.room(-len(f.bytes))
			if !f.state.CompareAndSwap(frameQueued, frameTaken) {
				continue
			}
			err = o.wire.Write(f.bytes)
			f.written <- err
		}
		if err != nil {
			o.Lose(err)
			return
		}
	}
}

// Send queues a frame. It never waits: if the queue is full, it returns [ErrTooMany].
func (o *Outbox) Send(bytes []byte) (*Frame, error) {
	if err := o.Lost(); err != nil {
		return nil, err
	}
	f := &Frame{bytes: bytes, written: make(chan error, 1)}
	if o.room(len(bytes)) {
		select {
		case o.frames <- f:
			return f, nil
		default:
			o.room(-len(bytes))
		}
	}
	o.Full.Add(1)
	return nil, ErrTooMany
}

// room adds n bytes to queued, or subtracts them, and reports whether there was room.
func (o *Outbox) room(n int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n > 0 && o.queued+n > o.limit {
		return false
	}
	o.queued += n
	return true
}

// Write sends a frame and waits until it is written. Its errors are [*NotSentError] and [*UnansweredError].
func (o *Outbox) Write(ctx context.Context, bytes []byte) error {
	f, err := o.Send(bytes)
	if err != nil {
		return &NotSentError{err}
	}
	var cause error
	select {
	case err := <-f.written:
		if err != nil {
			return &UnansweredError{err}
		}
		return nil
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-o.done:
		cause = o.Lost()
	}
	if f.Withdraw() {
		return &NotSentError{cause}
	}
	select {
	case err := <-f.written: // it was written before the connection was lost
		if err == nil {
			return nil
		}
	default:
	}
	return &UnansweredError{cause}
}
