package realtime

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"switchboard/handoff"
	"switchboard/realtime/simulator"
)

// runs makes a front and has it run until the test ends.
func runs(t testing.TB, cfg Config) *Front {
	t.Helper()
	front, err := NewFront(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- front.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	return front
}

// serves gives an address at which a front answers somebody's requests until the test ends.
func serves(t testing.TB, answer func(http.ResponseWriter, *http.Request, handoff.Grant)) string {
	edge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r, someone) }))
	t.Cleanup(edge.Close)
	return edge.URL
}

// simulates runs a simulated model until the test ends, and returns its host.
func simulates(t *testing.T, cfg simulator.Config) (host string) {
	t.Helper()
	l := listenLocal(t)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- simulator.New(cfg).Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func listenLocal(t testing.TB) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func socketURL(s *httptest.Server) string { return "ws" + strings.TrimPrefix(s.URL, "http") }

// connects connects a client to the address of a front.
func connects(t testing.TB, address string) *websocket.Conn {
	t.Helper()
	client, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(address, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}
