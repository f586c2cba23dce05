package responses

import (
	"context"
	"slices"
	"sync"

	"switchboard/handoff"
	"switchboard/handoff/threads"
)

// An inbox takes the steers of a running turn until the turn has nothing left to do. A steer that it accepted is in the
// store: it is given to the model, or handed back when the turn ends before that.
type inbox struct {
	storing chan struct{} // Set once; a lock that is held while a steer is written to the store
	newest  int           // the number of the newest steer; owned by the holder of storing

	mu     sync.Mutex
	queue  []steer // Guarded by mu: the model has not got them
	closed bool    // Guarded by mu: the turn is over or about to be
}

// A steer is words for a turn that runs.
type steer struct {
	n     int
	input []handoff.Part
}

func newInbox() inbox { return inbox{storing: make(chan struct{}, 1)} }

// put accepts words for the turn once they are written down, one after the other.
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
	case unsure(err): // it may be in the store, so it is taken
		err = handoff.Because(handoff.CodeUnknownStart, handoff.AsError(err).Subject, err)
	case handoff.AsError(err).Code == handoff.CodeTakenOver:
		return errTurnOver()
	default:
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, s) // also when it was closed meanwhile: then it is handed back
	return err
}

func errTurnOver() error { return handoff.Fault(handoff.CodeNotPending, "", "the turn has ended") }

// words returns the text that is kept of a steer until the model has it.
func (s steer) words() string { return handoff.Clip(handoff.InputText(s.input), threads.MaxWords) }

// waiting returns what the model has not got, in order.
func (b *inbox) waiting() []steer {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.queue)
}

// heard forgets the first steers of [inbox.waiting]: the model has them.
func (b *inbox) heard(given int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = b.queue[given:]
}

// closeIfEmpty is for a turn that has nothing else to do: with nothing accepted, nothing will be any more.
func (b *inbox) closeIfEmpty() bool {
	b.storing <- struct{}{}
	defer func() { <-b.storing }()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = b.closed || len(b.queue) == 0
	return len(b.queue) == 0
}

// undelivered closes the inbox, and returns the words that were accepted and that the model never got.
func (b *inbox) undelivered() []string {
	b.close(func() {})
	b.storing <- struct{}{} // a steer that is being written down now is still accepted
	defer func() { <-b.storing }()
	var left []string
	for _, s := range b.waiting() {
		left = append(left, s.words())
	}
	return left
}

// close accepts nothing more, and stops the turn. It reports whether anything could have been accepted until now.
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
