package workspace

import (
	"iter"
	"strings"
	"sync"
	"unicode/utf8"
)

// Bounds of the shown output of one call, in bytes. The rest is left out, which the output says.
const (
	maxWaiting = 256 << 10 // written and not read yet
	maxShown   = 1 << 20   // in all
)

// leftOut replaces output that is not shown.
const leftOut = "\n[… more was printed …]\n"

// An Output passes on the output of a tool while it works. It never blocks the tool.
type Output struct {
	mu     sync.Mutex
	wait   *sync.Cond
	text   []byte // Guarded by mu, like all below: not read yet
	total  int    // bytes that were written
	full   bool   // the rest is left out
	closed bool
}

// NewOutput returns an open output.
func NewOutput() *Output {
	o := &Output{}
	o.wait = sync.NewCond(&o.mu)
	return o
}

// Write implements [io.Writer]. It never fails.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed || o.full:
		return len(p), nil
	case len(o.text)+len(p) > maxWaiting || o.total+len(p) > maxShown:
		o.full = true
		o.text = append(o.text, leftOut...)
	default:
		o.text = append(o.text, p...)
		o.total += len(p)
	}
	o.wait.Signal()
	return len(p), nil
}

// Close ends the output.
func (o *Output) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.wait.Signal()
}

// All yields the output until it is closed. It is called once.
func (o *Output) All() iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			o.mu.Lock()
			n := whole(o.text)
			for n == 0 && !o.closed {
				o.wait.Wait()
				n = whole(o.text)
			}
			if o.closed {
				n = len(o.text)
			}
			text := string(o.text[:n])
			o.text = o.text[n:]
			o.mu.Unlock()
			if text == "" || !yield(strings.ToValidUTF8(text, "?")) {
				return
			}
		}
	}
}

// whole returns the length of a text without an incomplete character at its end.
func whole(text []byte) int {
	for i := len(text) - 1; i >= 0 && i > len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				return i
			}
			break
		}
	}
	return len(text)
}
