package keeper

import "sync"

// An outbox is the queue of a writer, at most maxQueued bytes. It is safe for concurrent use.
type outbox struct {
	mu      sync.Mutex
	changed *sync.Cond
	lines   [][]byte // Guarded by mu
	size    int      // Guarded by mu: bytes of lines
	ended   bool     // Guarded by mu: lines are no longer added
}

func newOutbox() *outbox {
	o := &outbox{}
	o.changed = sync.NewCond(&o.mu)
	return o
}

// put adds a line, and reports whether there was room. It never waits. A line put after end is dropped.
func (o *outbox) put(line []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.size+len(line) > maxQueued {
		return false
	}
	if !o.ended {
		o.lines, o.size = append(o.lines, line), o.size+len(line)
		o.changed.Signal()
	}
	return true
}

// end ends the outbox: no more lines are added, and drain returns once it has written the rest.
func (o *outbox) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.changed.Signal()
}

// drain writes one line after another until the outbox has ended and is empty, or write fails.
func (o *outbox) drain(write func(line []byte) error) {
	for {
		o.mu.Lock()
		for len(o.lines) == 0 && !o.ended {
			o.changed.Wait()
		}
		if len(o.lines) == 0 {
			o.mu.Unlock()
			return
		}
		line := o.lines[0]
		o.lines, o.size = o.lines[1:], o.size-len(line)
		o.mu.Unlock()
		if write(line) != nil {
			o.end()
			return
		}
	}
}
