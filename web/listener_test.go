package web

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
)

func TestListenerBounds(t *testing.T) {
	l := Limit(nil, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, zap.NewNop())
	l.most, l.mostStrangers, l.mostFromOne = 6, 5, 2
	var in []*limitedConn
	come := func(from string) bool {
		c := &limitedConn{of: l, at: l.address(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from)))}
		if !l.enter(c) {
			return false
		}
		in = append(in, c)
		return true
	}
	leave := func() {
		for _, c := range in {
			l.leave(c)
		}
		in = nil
	}
	for _, row := range []struct {
		from string
		in   bool
	}{
		{"192.0.2.1:1", true}, {"192.0.2.1:2", true}, {"192.0.2.1:3", false},
		{"[::ffff:192.0.2.1]:4", false}, // the same address
		{"192.0.2.2:1", true},
		{"[2001:db8::1]:1", true}, {"[2001:db8::2]:1", true}, {"[2001:db8::3]:1", false}, // one network
	} {
		if got := come(row.from); got != row.in {
			t.Errorf("%s let in: %v, want %v", row.from, got, row.in)
		}
	}
	// Who has come with a key is no stranger any more: there is room for another, of the same address too.
	if come("192.0.2.3:1") {
		t.Error("more strangers than may be")
	}
	l.markKnown(in[0])
	l.markKnown(in[0])
	if !come("192.0.2.1:3") || come("192.0.2.1:4") {
		t.Error("who has a key counts as a stranger, or no longer at all")
	}
	leave()
	if l.open != 0 || l.strangers != 0 || len(l.from) != 0 {
		t.Errorf("left: %d open, %d strangers, %v", l.open, l.strangers, l.from)
	}
	// This machine and a proxy are bounded in all alone.
	for _, from := range []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "10.1.1.1:1", "10.1.1.1:2", "[::1]:3"} {
		if !come(from) {
			t.Errorf("%s was refused", from)
		}
	}
	if come("127.0.0.1:9") {
		t.Error("more than the bound in all")
	}
}

// TestListenerCloses: a refused connection is closed, and a closed connection is no longer counted, even if it is
// closed twice.
func TestListenerCloses(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l := Limit(inner, nil, zap.NewNop())
	l.most = 1
	accepted := make(chan net.Conn)
	ended := make(chan error, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- c
		}
	}()
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", inner.Addr().String())
		must(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	dial()
	first := <-accepted
	if _, err := dial().Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the second one: %v", err)
	}
	if _, ok := first.(syscall.Conn); !ok {
		t.Error("nobody can write to it without waiting")
	}
	_, _ = first.Close(), first.Close()
	dial()
	_ = (<-accepted).Close()
	if l.open != 0 || l.refused != 1 {
		t.Errorf("%d open, %d refused", l.open, l.refused)
	}
	_ = l.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the end: %v", err)
	}
}

// TestListenerMakesRoom: a full listener closes the connection that has waited longest for a request, of the same
// address if that has too many.
func TestListenerMakesRoom(t *testing.T) {
	addr, l := serveLimited(t, 3, time.Hour)
	ask := func(c net.Conn) error {
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: "+addr+"\r\n\r\n"); err != nil {
			return err
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	idle := make([]net.Conn, 3)
	for i := range idle {
		idle[i] = knock(t, addr, "")
		l.until(t, func() bool { return len(l.waiting) == i+1 })
		came := time.Now()
		must(t, ask(idle[i]))
		// An answer may be read before its connection waits again.
		l.until(t, func() bool { return slices.ContainsFunc(slices.Collect(maps.Values(l.waiting)), came.Before) })
	}
	late := knock(t, addr, "")
	if err := ask(late); err != nil {
		t.Fatalf("nobody gets in: %v", err)
	}
	if err := gone(idle[0]); err != nil {
		t.Errorf("the oldest: %v", err)
	}
	for i, c := range idle[1:] {
		if err := ask(c); err != nil {
			t.Errorf("the one that came as %d: %v", i+2, err)
		}
	}
	l.until(t, func() bool { return len(l.waiting) == 3 && l.open == 3 && l.evicted == 1 && l.refused == 0 })
}

// TestStrangersMakeRoom: a stranger who sends a request byte by byte, or does not read its answer, holds no place
// against one who comes later. Who has shown a key is not sent away for one who has not.
func TestStrangersMakeRoom(t *testing.T) {
	addr, l := serveLimited(t, 4, time.Hour)
	ask := func(c net.Conn, key string) error {
		if _, err := io.WriteString(c, "GET /fleet/servers HTTP/1.1\r\nHost: "+addr+"\r\n"+key+"\r\n"); err != nil {
			return err
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		return errors.Join(err, resp.Body.Close())
	}
	const key = "Authorization: Bearer " + ownerKey + "\r\n"
	keyed := knock(t, addr, "")
	must(t, ask(keyed, key))
	slow := make([]net.Conn, 3)
	for i := range slow {
		slow[i] = knock(t, addr, "GET / HTTP/1.1\r\nHost: "+addr+"\r\nX-Slow: ")
		l.until(t, func() bool { return l.open == i+2 })
	}
	for i := range 3 {
		if err := ask(knock(t, addr, ""), ""); err != nil {
			t.Fatalf("newcomer %d: %v", i, err)
		}
	}
	for i, c := range slow {
		if err := gone(c); err != nil {
			t.Errorf("the slow one that came as %d: %v", i, err)
		}
	}
	if err := ask(keyed, key); err != nil {
		t.Errorf("who has a key was sent away: %v", err)
	}
}

// TestStrangersWaitLess: an idle connection that has had no key is closed soon; one that has had a key is not.
func TestStrangersWaitLess(t *testing.T) {
	addr, l := serveLimited(t, maxStrangers, 50*time.Millisecond)
	keyed := knock(t, addr, "GET /fleet/servers HTTP/1.1\r\nHost: "+addr+"\r\nAuthorization: Bearer "+ownerKey+"\r\n\r\n")
	l.until(t, func() bool { return len(l.waiting) == 1 })
	must(t, gone(knock(t, addr, "GET /healthz HTTP/1.1\r\nHost: "+addr+"\r\n\r\n")))
	l.until(t, func() bool { return l.open == 1 })
	_, err := io.WriteString(keyed, "GET /healthz HTTP/1.1\r\nHost: "+addr+"\r\nConnection: close\r\n\r\n")
	must(t, err)
	if said, _ := io.ReadAll(keyed); strings.Count(string(said), " 200 ") != 2 {
		t.Errorf("with a key: %s", said)
	}
	l.until(t, func() bool { return l.open == 0 && len(l.waiting) == 0 })
}

// serveLimited serves a world on a listener with bounds.
func serveLimited(t *testing.T, most int, unkeyed time.Duration) (addr string, l *Listener) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l = Limit(inner, nil, zap.NewNop())
	l.most = most
	s := newServer(t, newWorld(), func(cfg *Config) { cfg.Listen = inner.Addr().String() })
	s.times.unkeyed = unkeyed
	serveOn(t, s.HTTPServer(), l)
	return inner.Addr().String(), l
}

// until waits for a state of the listener.
func (l *Listener) until(t *testing.T, is func() bool) {
	t.Helper()
	waitFor(t, func() bool { l.mu.Lock(); defer l.mu.Unlock(); return is() })
}
