package realtime

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/realtime/rtc/rtctest"
)

// newPromptPair returns a promptConn and its far end.
func newPromptPair(t *testing.T) (*promptConn, net.Conn) {
	t.Helper()
	l := listenLocal(t)
	defer func() { _ = l.Close() }()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	narrow(t, near, far)
	c := newPromptConn(near)
	c.prompt = true
	t.Cleanup(func() { _, _ = c.Close(), far.Close() })
	return c, far
}

// narrow makes the buffers so small that a far end which does not read takes less than 1 MiB.
func narrow(t *testing.T, near, far net.Conn) {
	t.Helper()
	if c, ok := far.(*tls.Conn); ok {
		far = c.NetConn()
	}
	if err := errors.Join(near.(*net.TCPConn).SetWriteBuffer(64<<10),
		far.(*net.TCPConn).SetReadBuffer(64<<10)); err != nil {
		t.Fatal(err)
	}
}

// fill writes more than the far end takes.
func fill(t *testing.T, c *promptConn) {
	t.Helper()
	for piece := make([]byte, 1<<20); !c.pending(); {
		if n, err := c.Write(piece); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
}

// Several goroutines write while one drains: what each wrote arrives whole and in order.
func TestPromptWritesAreWhole(t *testing.T) {
	const writers, lines = 4, 500
	line := func(writer, n int) string { return fmt.Sprintf("%d %d %s\n", writer, n, strings.Repeat("A", 10000)) }
	c, far := newPromptPair(t)
	var writing sync.WaitGroup
	defer writing.Wait()
	over := make(chan struct{})
	writing.Go(func() {
		for {
			if c.drain(patience) != nil {
				return
			}
			select {
			case <-over:
				return
			default:
				time.Sleep(time.Millisecond)
			}
		}
	})
	defer close(over)
	defer func() { _ = far.Close() }() // whoever waits for it need not, if the test has failed
	for w := range writers {
		writing.Go(func() {
			for n := range lines {
				_, _ = c.Write([]byte(line(w, n)))
			}
		})
	}
	rtctest.Eventually(t, "more than the far end takes", c.pending)
	_ = far.SetReadDeadline(time.Now().Add(patience))
	reader, next := bufio.NewReader(far), [writers]int{}
	for range writers * lines {
		got, err := reader.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		w := int(got[0]-'0') % writers
		if got != line(w, next[w]) {
			t.Fatalf("%d bytes of %.20q came, and the next lines are %v", len(got), got, next)
		}
		next[w]++
	}
}

// What is kept is bounded, except that one write of any size is kept whole.
func TestRestIsBounded(t *testing.T) {
	c, _ := newPromptPair(t)
	if _, err := c.Write(make([]byte, 2*maxRest)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, errRest) {
		t.Errorf("one more: %v", err)
	}
	if err := c.drain(patience); !errors.Is(err, errRest) {
		t.Errorf("it goes on after what was lost: %v", err)
	}
}

// Draining to a far end that takes nothing ends in time; after that nothing is written, as a part is missing.
func TestDrainEnds(t *testing.T) {
	for name, drain := range map[string]func(*promptConn) error{
		"patience": func(c *promptConn) error { return c.drain(time.Millisecond) },
		"end":      func(c *promptConn) error { c.endWritesAt(time.Now()); return c.drain(patience) },
		"end that comes meanwhile": func(c *promptConn) error {
			drained := make(chan error, 1)
			go func() { drained <- c.drain(patience) }()
			for waits := false; !waits; {
				c.mu.Lock()
				waits = c.draining
				c.mu.Unlock()
			}
			c.endWritesAt(time.Now())
			return <-drained
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newPromptPair(t)
			fill(t, c)
			if err := drain(c); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("it ended with %v", err)
			}
			if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) || !c.pending() {
				t.Errorf("then: %v", err)
			}
		})
	}
}
