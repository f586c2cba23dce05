package workspace

import (
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestOutput: the shown output has complete characters only, however they were written, and is bounded.
func TestOutput(t *testing.T) {
	o := NewOutput()
	go func() {
		defer o.Close()
		for _, b := range []byte("aé€😀\xff") {
			_, _ = o.Write([]byte{b})
		}
	}()
	if got := strings.Join(slices.Collect(o.All()), ""); got != "aé€😀?" {
		t.Errorf("shown %q", got)
	}
	o = NewOutput()
	for range 10 {
		_, _ = o.Write([]byte(strings.Repeat("x", 60<<10)))
	}
	o.Close()
	if got := strings.Join(slices.Collect(o.All()), ""); len(got) != 240<<10+len(leftOut) ||
		!strings.HasSuffix(got, "x"+leftOut) {
		t.Errorf("shown are %d bytes", len(got))
	}
	o = NewOutput()
	total := 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		for text := range o.All() {
			total += len(text)
		}
	}()
	for range 100 {
		for o.waiting() > 0 {
			runtime.Gosched()
		}
		_, _ = o.Write([]byte(strings.Repeat("x", 60<<10)))
	}
	o.Close()
	<-done
	if total > maxShown+len(leftOut) || total < maxShown/2 {
		t.Errorf("shown are %d bytes", total)
	}
}

func (o *Output) waiting() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.text)
}

func TestEnds(t *testing.T) {
	for _, n := range []int{0, 1, maxEnd, 2 * maxEnd, 2*maxEnd + 1, 10 * maxEnd} {
		for _, step := range []int{1 << 10, 3 * maxEnd} {
			e := &ends{}
			text := strings.Repeat("0123456789abcdef", n/16+1)[:n]
			for at := 0; at < n; at += step {
				_, _ = e.Write([]byte(text[at:min(at+step, n)]))
			}
			want := text
			if n > 2*maxEnd {
				want = bounded(text, 2*maxEnd)
			}
			if got := e.String(); got != want {
				t.Errorf("of %d bytes by %d there are %d, want %d", n, step, len(got), len(want))
			}
			if len(e.kept) > 3*maxEnd {
				t.Errorf("%d bytes are kept", len(e.kept))
			}
		}
	}
}
