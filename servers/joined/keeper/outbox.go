package keeper

import "sync"

// An outbox is what waits for a writer. It is safe for concurrent use.
type outbox struct {
	mu    sync.Mutex
	moved *sync.Cond
	lines [][]byte // Guarded by mu
	size  int      // Guarded by mu: bytes of lines
	over  bool     // Guarded by mu: nothing more is put in
}

func newOutbox() *outbox {
	o := &outbox{}
	o.moved = sync.NewCond(&o.mu)
	return o
}

// put adds a line. It is false when there is no room. It never waits.
func (o *outbox) put(line []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.size+len(line) > maxQueued {
		return false
	}
	if !o.over {
		o.lines, o.size = append(o.lines, line), o.size+len(line)
		o.moved.Signal()
	}
	return true
}

// end says that nothing more is put in.
func (o *outbox) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	o.moved.Signal()
}

// drain writes one line after another until the outbox has ended and is empty, or write fails.
func (o *outbox) drain(write func(line []byte) error) {
	for {
		o.mu.Lock()
		for len(o.lines) == 0 && !o.over {
			o.moved.Wait()
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
