package codex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/transport"
)

// atAddress is the configuration of an app-server with an address.
func atAddress(url string) Config { return Config{Name: "bigpc", Way: &transport.WebSocket{URL: url}} }

// wsServer serves one WebSocket, answers initialize, and passes it to play.
func wsServer(t *testing.T, play func(*websocket.Conn)) (url string, headers <-chan http.Header) {
	seen := make(chan http.Header, 4)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		shake(conn)
		play(conn)
	}))
	t.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http"), seen
}

// shake answers initialize.
func shake(conn *websocket.Conn) {
	var frame sent
	if conn.ReadJSON(&frame) != nil {
		return
	}
	_ = conn.WriteMessage(websocket.TextMessage,
		fmt.Appendf(nil, `{"id":%s,"result":{"userAgent":"switchboard/0.169.0 (x)"}}`, frame.ID))
	_ = conn.ReadJSON(&frame)
}

// drain reads until the client is gone.
func drain(conn *websocket.Conn) {
	for {
		if _, _, err := conn.ReadMessage(); err != nil {
			return
		}
	}
}

func TestWebSocket(t *testing.T) {
	url, headers := wsServer(t, func(conn *websocket.Conn) {
		_ = conn.WriteMessage(websocket.BinaryMessage, []byte("ignored"))
		var frame sent
		if conn.ReadJSON(&frame) != nil {
			return
		}
		_ = conn.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"id":%s,"result":{"data":[{"id":"a"}]}}`, frame.ID))
		drain(conn)
	})
	dial := Dialer(Config{Name: "bigpc",
		Way: &transport.WebSocket{URL: url, Token: func() (string, error) { return "s3cret", nil }}})
	link, err := dial(t.Context())
	must(t, err)
	h := <-headers
	if h.Get("Authorization") != "Bearer s3cret" || len(h.Values("Origin")) != 0 ||
		len(h.Values("Sec-Websocket-Extensions")) != 0 {
		t.Errorf("headers %v", h)
	}
	if list, err := link.Catalog.List(t.Context(), 1); err != nil || len(list) != 1 || link.Version != "0.169.0" {
		t.Errorf("list %v %v", list, err)
	}
	must(t, link.Conn.Close())
	<-link.Done
}

// TestUnixSocket: a socket of this machine carries the same WebSocket.
func TestUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "sb") // a socket's path has at most 107 bytes
	must(t, err)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "codex.sock")
	listener, err := net.Listen("unix", path)
	must(t, err)
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "" {
			t.Error("an Origin was sent")
		}
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		shake(conn)
		drain(conn)
	})}
	go server.Serve(listener)
	defer server.Close()
	link, err := Dialer(Config{Name: "box", Way: &transport.Unix{Path: path}})(t.Context())
	must(t, err)
	if link.Version != "0.169.0" || link.Exclusive {
		t.Errorf("link %+v", link)
	}
	must(t, link.Conn.Close())
	<-link.Done
	_, err = Dialer(Config{Name: "box", Way: &transport.Unix{Path: path + "x"}})(t.Context())
	if err == nil || handoff.AsError(err).Code != handoff.CodeUnreachable {
		t.Errorf("nobody listens: %v", err)
	}
}

// TestWebSocketFrameLimit: frames longer than 16 MiB are left out, and the connection goes on. A list that is too long
// is requested again with fewer entries.
func TestWebSocketFrameLimit(t *testing.T) {
	limits := make(chan int, 9)
	// Both are made before anybody waits for them: that takes seconds beside a busy machine.
	tooLong, long := make([]byte, servers.MaxFrame+1), strings.Repeat("x", servers.MaxFrame)
	url, _ := wsServer(t, func(conn *websocket.Conn) {
		_ = conn.WriteMessage(websocket.TextMessage, tooLong)
		for {
			var asked sent
			if conn.ReadJSON(&asked) != nil {
				return
			}
			if asked.Method != "thread/list" {
				continue
			}
			var p threadListParams
			_ = json.Unmarshal(asked.Params, &p)
			limits <- p.Limit
			preview := "short"
			if p.Limit > 10 {
				preview = long
			}
			_ = conn.WriteMessage(websocket.TextMessage,
				fmt.Appendf(nil, `{"id":%s,"result":{"data":[{"id":%q,"preview":"%s"}]}}`, asked.ID, thread1, preview))
		}
	})
	link, err := Dialer(atAddress(url))(t.Context())
	must(t, err)
	list, err := link.Catalog.List(t.Context(), 20)
	if err != nil || len(list) != 1 || list[0].Title != "short" {
		t.Fatalf("listed %+v, %v", list, err)
	}
	if first, second := <-limits, <-limits; first != 20 || second != 2 {
		t.Errorf("asked for %d, then %d", first, second)
	}
	_ = link.Conn.Close()
	if n := link.Conn.(*connection).peer.LeftOut.Load(); n != 2 {
		t.Errorf("%d frames were left out", n)
	}
}

func TestWebSocketRefused(t *testing.T) {
	for status, code := range map[int]handoff.Code{
		http.StatusUnauthorized: handoff.CodeTokenRefused,
		http.StatusForbidden:    handoff.CodeTokenRefused,
		http.StatusNotFound:     handoff.CodeUnreachable,
		http.StatusFound:        handoff.CodeUnreachable,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "ws://192.0.2.1/")
			http.Error(w, "invalid websocket bearer token", status)
		}))
		_, err := Dialer(atAddress("ws" + strings.TrimPrefix(server.URL, "http")))(t.Context())
		server.Close()
		if err == nil || handoff.AsError(err).Code != code ||
			!strings.Contains(handoff.AsError(err).Detail, "invalid websocket bearer token") {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestWebSocketUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := l.Addr().String()
	l.Close()
	for name, way := range map[string]transport.WebSocket{
		"nobody there":     {URL: "ws://" + addr},
		"unreadable token": {URL: "ws://" + addr, Token: func() (string, error) { return "", errors.New("no such file") }},
		"not a URL":        {URL: "::"},
		"http":             {URL: "http://" + addr},
	} {
		if _, err := Dialer(Config{Way: &way})(t.Context()); err == nil ||
			handoff.AsError(err).Code != handoff.CodeUnreachable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// bubbleDial connects a WebSocket over a net.Pipe to a server that play plays after the handshake.
func bubbleDial(t *testing.T, wg *sync.WaitGroup, play func(*websocket.Conn)) (*servers.Link, error) {
	ours, theirs := net.Pipe()
	listener := &oneListener{conn: theirs, done: make(chan struct{})}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		shake(conn)
		play(conn)
	})}
	wg.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { _ = server.Close() })
	wire, err := transport.OverSocket(t.Context(), "bigpc", "ws://127.0.0.1:1", nil,
		func(context.Context, string, string) (net.Conn, error) { return ours, nil })
	if err != nil {
		return nil, err
	}
	return connect(t.Context(), withDefaults(Config{}), wire)
}

// oneListener accepts one connection.
type oneListener struct {
	conn net.Conn
	once sync.Once
	end  sync.Once
	done chan struct{}
}

func (l *oneListener) Accept() (net.Conn, error) {
	var conn net.Conn
	if l.once.Do(func() { conn = l.conn }); conn != nil {
		return conn, nil
	}
	<-l.done
	return nil, net.ErrClosed
}

func (l *oneListener) Close() error {
	l.end.Do(func() { close(l.done) })
	return nil
}

func (l *oneListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// TestPings: the answers to pings keep an idle connection alive.
func TestPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		pings := make(chan time.Time, 100)
		link, err := bubbleDial(t, &wg, func(conn *websocket.Conn) {
			answer := conn.PingHandler()
			conn.SetPingHandler(func(s string) error {
				pings <- time.Now()
				return answer(s)
			})
			drain(conn)
		})
		must(t, err)
		begin := time.Now()
		sleep(10 * servers.PingEvery)
		select {
		case <-link.Done:
			t.Fatal("lost while the server answers")
		default:
		}
		if first := <-pings; first.Sub(begin) != servers.PingEvery || len(pings) != 9 {
			t.Errorf("first ping after %v, then %d", first.Sub(begin), len(pings))
		}
		_ = link.Conn.Close()
	})
}

// TestDeadServer: a server that no longer answers pings is noticed within 25 s.
func TestDeadServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		link, err := bubbleDial(t, &wg, func(conn *websocket.Conn) {
			conn.SetPingHandler(func(string) error { return nil })
			drain(conn)
		})
		must(t, err)
		begin := time.Now()
		<-link.Done
		if took := time.Since(begin); took > 25*time.Second {
			t.Errorf("took %v", took)
		}
		_ = link.Conn.Close()
	})
}
