package web

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"go.uber.org/zap"
)

func TestListenerBounds(t *testing.T) {
	l := Limit(nil, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, zap.NewNop())
	l.most, l.mostFromOne = 6, 2
	var in []netip.Addr
	come := func(from string) bool {
		at := l.address(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from)))
		if !l.enter(at) {
			return false
		}
		in = append(in, at)
		return true
	}
	leave := func() {
		for _, at := range in {
			l.leave(at)
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
	leave()
	// This machine and a proxy are bounded in all alone.
	for _, from := range []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "10.1.1.1:1", "10.1.1.1:2", "[::1]:3"} {
		if !come(from) {
			t.Errorf("%s was refused", from)
		}
	}
	if come("127.0.0.1:9") {
		t.Error("more than the bound in all")
	}
	if got := l.refused; got != 4 {
		t.Errorf("refused %d, want 4", got)
	}
	leave()
	if l.open != 0 || len(l.from) != 0 {
		t.Errorf("left: %d open, %v", l.open, l.from)
	}
}

// What is refused is closed, and a place is free again when a connection is closed, however often.
func TestListenerCloses(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
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
