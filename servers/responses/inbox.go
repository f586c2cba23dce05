package responses

import (
	"sync"

	"switchboard/handoff"
)

// maxSteers is how many steers of one turn wait for the model. More are refused.
const maxSteers = 16

// An inbox takes what a running turn is told besides, until the turn has nothing left to do. What it took in was
// accepted: it is given to the model, or handed back when the turn is interrupted or fails. One lock decides which.
type inbox struct {
	mu     sync.Mutex
	queue  [][]handoff.Part // Guarded by mu
	closed bool             // Guarded by mu: the turn is over or about to be
}

// put accepts words for the turn.
func (b *inbox) put(input []handoff.Part) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return handoff.Fault(handoff.CodeNotPending, "", "the turn has ended")
	case len(b.queue) == maxSteers:
		return handoff.Fault(handoff.CodeOverloaded, "", "too much waits for the model already")
	}
	b.queue = append(b.queue, input)
	return nil
}

// take gives what was accepted to the turn, in order. When the turn was ended from outside, it stays where it is.
func (b *inbox) take() [][]handoff.Part {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	taken := b.queue
	b.queue = nil
	return taken
}

// restore puts back what was taken and could not be given to the model.
func (b *inbox) restore(taken [][]handoff.Part) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(taken, b.queue...)
}

// undelivered hands back what was accepted and did not reach the model, once the inbox is closed.
func (b *inbox) undelivered() [][]handoff.Part {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		return nil
	}
	left := b.queue
	b.queue = nil
	return left
}

// takeOrClose is [inbox.take] for a turn that has nothing else to do: with nothing accepted nothing will be any more.
func (b *inbox) takeOrClose() [][]handoff.Part {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	taken := b.queue
	b.queue = nil
	b.closed = len(taken) == 0
	return taken
}

// close accepts nothing more. It reports whether anything could have been accepted until now.
func (b *inbox) close() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := !b.closed
	b.closed = true
	return was
}
