package transport

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchboard/handoff"
)

// TestLostSendsNoMore: of a connection that was lost, nothing is delivered later: by then it may have been sent again
// on another one.
func TestLostSendsNoMore(t *testing.T) {
	ended := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ended <- echo(w, r)
	}))
	defer server.Close()
	for name, dial := range map[string]func(context.Context, string, string) (net.Conn, error){
		"TCP": new(net.Dialer).DialContext,
		"a connection over it": func(ctx context.Context, network, to string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, to)
			return over{conn}, err
		},
	} {
		wire, err := OverSocket(t.Context(), "bigpc", "ws"+strings.TrimPrefix(server.URL, "http"), nil, dial)
		must(t, err)
		must(t, wire.Write([]byte("hello")))
		if frame, err := wire.Read(); err != nil || string(frame) != "hello" {
			t.Errorf("%s: read %q %v", name, frame, err)
		}
		must(t, wire.(*socket).conn.SetReadDeadline(time.Now()))
		_, err = wire.Read()
		_ = wire.Close()
		if got := <-ended; err == nil || !errors.Is(got, syscall.ECONNRESET) {
			t.Errorf("%s: lost with %v, and the far end heard of it as %v", name, err, got)
		}
	}
}

// over is a connection over another one, as of TLS.
type over struct{ net.Conn }

func (o over) NetConn() net.Conn { return o.Conn }

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
