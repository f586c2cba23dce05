package workspace

import (
	"iter"
	"strings"
	"sync"
)

// maxWaiting bounds what is printed and not read yet, in bytes. What comes then is left out of what is shown.
const maxWaiting = 256 << 10

// An Output passes on what a tool prints while it works. It never makes the tool wait.
type Output struct {
	mu     sync.Mutex
	wait   *sync.Cond
	text   strings.Builder // Guarded by mu: not read yet
	closed bool            // Guarded by mu
}

// NewOutput returns one that is open.
func NewOutput() *Output {
	o := &Output{}
	o.wait = sync.NewCond(&o.mu)
	return o
}

// Write takes what was printed. It never fails.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text.Len()+len(p) <= maxWaiting && !o.closed {
		o.text.Write(p)
		o.wait.Signal()
	}
	return len(p), nil
}

// Close says that nothing more comes.
func (o *Output) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.wait.Signal()
}

// All yields what is printed until it is closed. It is read once.
func (o *Output) All() iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			o.mu.Lock()
			for o.text.Len() == 0 && !o.closed {
				o.wait.Wait()
			}
			text := o.text.String()
			o.text.Reset()
			o.mu.Unlock()
			if text == "" || !yield(strings.ToValidUTF8(text, "?")) {
				return
			}
		}
	}
}
