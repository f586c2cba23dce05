package transport

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"switchboard/handoff"
)

// TestQuickAck: connections other than TCP are returned unchanged, and TCP still reads and writes.
func TestQuickAck(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if quickAck(a) != a {
		t.Error("a pipe was wrapped")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	go func() {
		if conn, err := l.Accept(); err == nil {
			_, _ = conn.Write([]byte("hello"))
			_ = conn.Close()
		}
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	tcp := quickAck(conn)
	defer tcp.Close()
	buf := make([]byte, 16)
	if n, err := tcp.Read(buf); err != nil || string(buf[:n]) != "hello" {
		t.Errorf("read %q %v", buf[:n], err)
	}
}

// TestLongHandshake: the answer to a handshake is read up to a limit.
func TestLongHandshake(t *testing.T) {
	const most = 8 << 20
	here, there := net.Pipe()
	wrote := make(chan int, 1)
	go func() {
		defer there.Close()
		n := 0
		defer func() { wrote <- n }()
		if _, err := http.ReadRequest(bufio.NewReader(there)); err != nil {
			return
		}
		head := "HTTP/1.1 101 Switching Protocols\r\n"
		for n < most {
			m, err := there.Write([]byte(head))
			n += m
			if err != nil {
				return
			}
			head = "X-Long: " + strings.Repeat("x", 1000) + "\r\n"
		}
	}()
	dial := func(context.Context, string, string) (net.Conn, error) { return here, nil }
	_, err := OverSocket(t.Context(), "bigpc", "ws://bigpc:1", nil, dial)
	if err == nil || handoff.AsError(err).Code != handoff.CodeUnreachable {
		t.Errorf("dialled: %v", err)
	}
	if n := <-wrote; n < handoff.MaxHandshake/2 || n > handoff.MaxHandshake+4096 {
		t.Errorf("%d bytes of the answer were read", n)
	}
}

// must ends a test that cannot go on after err.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
