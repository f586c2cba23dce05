package responses

import (
	"context"
	"slices"
	"sync"

	"switchboard/handoff"
	"switchboard/handoff/threads"
)

// An inbox accepts steers for a running turn until the turn has nothing left to do. An accepted steer is in the store:
// either the model gets it, or the end of the turn returns it.
type inbox struct {
	storing chan struct{} // Set once; capacity 1: a lock that is held during a write to the store
	newest  int           // number of the newest steer; owned by the holder of storing

	mu     sync.Mutex
	queue  []steer // Guarded by mu: those that the model has not got
	closed bool    // Guarded by mu: no steer is accepted any more
}

// A steer is further words for a running turn.
type steer struct {
	n     int
	input []handoff.Part
}

func newInbox() inbox { return inbox{storing: make(chan struct{}, 1)} }

// put accepts words for the turn after write has stored them. One steer is written at a time.
func (b *inbox) put(ctx context.Context, input []handoff.Part, write func(threads.Steer) error) error {
	select {
	case b.storing <- struct{}{}:
		defer func() { <-b.storing }()
	case <-ctx.Done():
		return handoff.Fault(handoff.CodeOverloaded, "", "other words are being written down")
	}
	b.mu.Lock()
	closed := b.closed
	b.mu.Unlock()
	if closed {
		return errTurnOver()
	}
	b.newest++
	s := steer{b.newest, input}
	err := write(threads.Steer{N: s.n, Words: s.words()})
	switch {
	case err == nil:
	case unsure(err): // it may be in the store, so it counts as accepted
		err = handoff.Because(handoff.CodeUnknownStart, handoff.AsError(err).Subject, err)
	case handoff.AsError(err).Code == handoff.CodeTakenOver:
		return errTurnOver()
	default:
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, s) // even if closed meanwhile: undelivered returns it
	return err
}

// errTurnOver is the error of a steer after the turn.
func errTurnOver() error { return handoff.Fault(handoff.CodeNotPending, "", "the turn has ended") }

// words returns the text of a steer as it is stored.
func (s steer) words() string { return handoff.Clip(handoff.InputText(s.input), threads.MaxWords) }

// waiting returns the steers that the model has not got, in order.
func (b *inbox) waiting() []steer {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.queue)
}

// heard removes the first n steers of [inbox.waiting]: the model has got them.
func (b *inbox) heard(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = b.queue[n:]
}

// closeIfEmpty closes the inbox unless a steer waits, and reports whether none waits. A turn that has nothing else to
// do calls it.
func (b *inbox) closeIfEmpty() bool {
	b.storing <- struct{}{}
	defer func() { <-b.storing }()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = b.closed || len(b.queue) == 0
	return len(b.queue) == 0
}

// undelivered closes the inbox, and returns the accepted words that the model never got.
func (b *inbox) undelivered() []string {
	b.close(func() {})
	b.storing <- struct{}{} // wait for a steer that is being written: it counts as accepted
	defer func() { <-b.storing }()
	var left []string
	for _, s := range b.waiting() {
		left = append(left, s.words())
	}
	return left
}

// close closes the inbox and calls stop. It does nothing and returns false if the inbox is closed already.
func (b *inbox) close(stop func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.closed = true
	stop()
	return true
}
