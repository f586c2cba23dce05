package peers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// tell answers with a description of the request as it arrived.
func tell(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Add("Told", "once")
	w.WriteHeader(http.StatusTeapot)
	_, _ = fmt.Fprintf(w, "%s %s host=%s tls=%t remote=%t key=%s for=%s hop=%q body=%s", r.Method, r.URL.RequestURI(), r.Host,
		r.TLS != nil, r.RemoteAddr == r.Header.Get("From"), r.Header.Get("Authorization"), r.Header.Get("X-Forwarded-For"),
		r.Header.Values(hopHeader), body)
}

// TestForward: a request is served at its caller's home as it came: the bytes are the same whether it was forwarded or
// not.
func TestForward(t *testing.T) {
	o := newTown()
	a, b := o.join(t, "a", tell), o.join(t, "b", tell)
	o.change(func() { o.homes["alice"], o.homes["bob"] = "a", "b" })
	for _, r := range []struct{ name, method, path, body string }{
		{"read", http.MethodGet, "/fleet/servers?q=a;b&x=%2F", ""},
		{"escaped", http.MethodGet, "/fleet/sessions/big%2Fpc/t1", ""},
		{"write", http.MethodPost, "/fleet/handoffs", `{"prompt":"run the tests"}`},
		{"long", http.MethodPost, "/v1/responses", strings.Repeat("words ", 100_000)},
		{"empty", http.MethodPost, "/fleet/handoffs/h1/stop", ""},
		{"drop", http.MethodDelete, "/fleet/sticky/bigpc", ""},
	} {
		t.Run(r.name, func(t *testing.T) {
			headers := []string{"Authorization", "Bearer key", "X-Forwarded-For", "192.0.2.1"}
			direct, wantBody := a.ask(t, "alice", r.method, r.path, r.body, headers...)
			answer, body := a.ask(t, "bob", r.method, r.path, r.body, headers...)
			if direct.Header.Get("Served-By") != "a" || answer.Header.Get("Served-By") != "b" {
				t.Fatalf("served by %v and %v", direct.Header, answer.Header)
			}
			if answer.StatusCode != http.StatusTeapot || body != wantBody || !strings.Contains(body, r.path) {
				t.Errorf("%d %.300s, and here it is %d %.300s", answer.StatusCode, body, direct.StatusCode, wantBody)
			}
			if edge, told := answer.Header.Values("Edge"), answer.Header.Values("Told"); len(edge) != 1 || edge[0] != "b" || len(told) != 1 {
				t.Errorf("headers of two answers: %v", answer.Header)
			}
		})
	}
	if n := b.count("taken_total", "served"); n != 6 || a.count("forwarded_total", "served") != n || a.count("open", "") != 0 {
		t.Errorf("%v were taken, %v forwarded", n, a.count("forwarded_total", "served"))
	}
	if n := a.count("dials_total", ""); n != 1 {
		t.Errorf("%v connections for one after another", n)
	}
}

// TestHopTellsWhence: the instance that serves a request knows the address and the security of the client's connection.
func TestHopTellsWhence(t *testing.T) {
	for _, h := range []hop{
		{by: "a", secure: true, remote: "192.0.2.1:5000"}, {by: "a", remote: "[2001:db8::1]:5000"}, {by: "a"},
		{by: "a", line: true},
	} {
		if got, err := parseHop([]string{h.String()}); err != nil || got != h {
			t.Errorf("%v: %v %v", h, got, err)
		}
	}
	for _, values := range [][]string{nil, {""}, {"a http 192.0.2.1:1", "a http 192.0.2.1:1"}, {"a ftp 192.0.2.1:1"}, {"a http bigpc:1"}, {"a"}} {
		if got, err := parseHop(values); err == nil {
			t.Errorf("%q is %v", values, got)
		}
	}
}

// TestForwardStreamsEvents: an event reaches the client before the next one is made.
func TestForwardStreamsEvents(t *testing.T) {
	o := newTown()
	heard := make(chan struct{})
	left := make(chan struct{})
	a := o.join(t, "a", tell)
	o.join(t, "b", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for n := range 3 {
			_, _ = fmt.Fprintf(w, "data: %d\n\n", n)
			_ = http.NewResponseController(w).Flush()
			<-heard
		}
		<-r.Context().Done()
		close(left)
	})
	o.change(func() { o.homes["bob"] = "b" })
	ctx, leave := context.WithTimeout(t.Context(), patient)
	defer leave()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+"/fleet/events", nil)
	must(t, err)
	r.Header.Set("Caller", "bob")
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for n := range 3 {
		for lines.Scan() && lines.Text() == "" {
		}
		if want := fmt.Sprintf("data: %d", n); lines.Text() != want {
			t.Fatalf("%q, want %q", lines.Text(), want)
		}
		heard <- struct{}{}
	}
	leave() // the instance that serves it hears of that
	<-left
}

// echo sends back each message, and closes with the code that a message names.
func echo(w http.ResponseWriter, r *http.Request) {
	upgrader := websocket.Upgrader{Subprotocols: []string{"realtime"}}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	for {
		kind, data, err := conn.ReadMessage()
		if err != nil {
			return
		}
		if string(data) == "bye" {
			_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(4503, "voice_gone"))
			continue // until the client closes too
		}
		if conn.WriteMessage(kind, data) != nil {
			return
		}
	}
}

// dial opens a WebSocket as a caller.
func (i *instance) dial(t testing.TB, caller string) *websocket.Conn {
	t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{"realtime", "openai-insecure-api-key.k"}}
	conn, answer, err := dialer.Dial("ws"+strings.TrimPrefix(i.base, "http")+"/v1/realtime", http.Header{"Caller": {caller}})
	must(t, err)
	defer answer.Body.Close()
	t.Cleanup(func() { _ = conn.Close() })
	if conn.Subprotocol() != "realtime" || answer.Header.Get("Sec-WebSocket-Protocol") != "realtime" {
		t.Errorf("subprotocol %q", conn.Subprotocol())
	}
	return conn
}

// TestForwardCarriesSockets: a WebSocket is forwarded in both directions, with its close code.
func TestForwardCarriesSockets(t *testing.T) {
	o := newTown()
	a, b := o.join(t, "a", echo), o.join(t, "b", echo)
	o.change(func() { o.homes["bob"] = "b" })
	conn := a.dial(t, "bob")
	for _, text := range []string{"hello", strings.Repeat("sound", 50_000)} {
		must(t, conn.WriteMessage(websocket.BinaryMessage, []byte(text)))
		if _, data, err := conn.ReadMessage(); err != nil || string(data) != text {
			t.Fatalf("%d bytes came back: %v", len(data), err)
		}
	}
	if got := b.servedHere(); len(got) != 1 || a.count("open", "") != 1 {
		t.Errorf("served there: %v; open here: %v", got, a.count("open", ""))
	}
	must(t, conn.WriteMessage(websocket.TextMessage, []byte("bye")))
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, 4503) {
		t.Errorf("it closed with %v", err)
	}
	until(t, func() bool { return a.count("forwarded_total", "served") == 1 && a.count("open", "") == 0 })
}

// TestForwardCarriesTheClientsClose: the close code of a client reaches the instance that serves it.
func TestForwardCarriesTheClientsClose(t *testing.T) {
	o := newTown()
	closed := make(chan error, 1)
	a := o.join(t, "a", echo)
	o.join(t, "b", func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{Subprotocols: []string{"realtime"}}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			closed <- err
			return
		}
		defer conn.Close()
		_, _, err = conn.ReadMessage()
		closed <- err
	})
	o.change(func() { o.homes["bob"] = "b" })
	conn := a.dial(t, "bob")
	must(t, conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(4001, "later")))
	if err := <-closed; !websocket.IsCloseError(err, 4001) {
		t.Errorf("the other end saw %v", err)
	}
}

// TestNamelessGoByTheIdsThatTheyName: a request of a nameless caller goes to the instance that made the id in it, if
// that is known; otherwise it stays here.
func TestNamelessGoByTheIdsThatTheyName(t *testing.T) {
	o := newTown()
	a := o.join(t, "a1", tell)
	o.join(t, "b1", tell)
	for _, r := range []struct{ path, session, want string }{
		{"/v1/responses", "", "a1"},
		{"/calls/rtc_b1_0011", "", "b1"},
		{"/calls/rtc_a1_0011", "", "a1"},
		{"/calls/rtc_u1_0011", "", "a1"}, // of a provider
		{"/calls/rtc_xb1_0011", "", "a1"},
		{"/calls/rtc_b1", "", "a1"},
		{"/v1/realtime?call_id=rtc_b1_77", "", "b1"},
		{"/mcp", "b1_SESSION", "b1"},
		{"/mcp", "SESSION", "a1"},
	} {
		answer, _ := a.ask(t, "", http.MethodGet, r.path, "", "Mcp-Session-Id", r.session)
		if got := answer.Header.Get("Served-By"); got != r.want {
			t.Errorf("%s %s: served by %s, want %s", r.path, r.session, got, r.want)
		}
	}
	o.change(func() { o.stale = []string{"b1", "b1"} }) // as while this one drains
	answer, _ := a.ask(t, "", http.MethodDelete, "/calls/rtc_a1_0011", "")
	if got := answer.Header.Get("Served-By"); got != "a1" || a.count("again_total", "not_mine") > 0 {
		t.Errorf("of a call that is here: served by %s, after it was refused elsewhere", got)
	}
}

// TestForwardEndsWithItsClient: when a client leaves while it waits, its request ends at the other instance, too, and
// does not count as lost.
func TestForwardEndsWithItsClient(t *testing.T) {
	o := newTown()
	began, ended := make(chan struct{}), make(chan struct{})
	a := o.join(t, "a", tell)
	o.join(t, "b", func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		close(ended)
	})
	o.change(func() { o.homes["bob"] = "b" })
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.base, "http://"))
	must(t, err)
	_, err = io.WriteString(conn, "GET /slow HTTP/1.1\r\nHost: x\r\nCaller: bob\r\n\r\n")
	must(t, err)
	<-began
	must(t, conn.Close())
	<-ended
	until(t, func() bool { return a.count("open", "") == 0 })
	if lost, silent := a.count("forwarded_total", "lost"), a.count("forwarded_total", "silent"); lost+silent > 0 {
		t.Errorf("lost %v, silent %v", lost, silent)
	}
}

// TestBusy: an instance is busy as long as another one serves a request whose client would notice its end; a stream
// that clients repeat by themselves does not count. The header that closes the connection is kept when another instance
// answers.
func TestBusy(t *testing.T) {
	o := newTown()
	goOn := make(chan struct{})
	a := o.join(t, "a", tell)
	o.join(t, "b", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		}
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-goOn
	})
	o.change(func() { o.homes["bob"] = "b" })
	for _, tt := range []struct {
		method, path string
		busy         bool
	}{{http.MethodGet, "/stream", false}, {http.MethodPost, "/stream", true}, {http.MethodGet, "/", true}} {
		r, err := http.NewRequestWithContext(t.Context(), tt.method, a.base+tt.path, nil)
		must(t, err)
		r.Header.Set("Caller", "bob")
		r.Header.Set("Closes", "true")
		answer, err := http.DefaultClient.Do(r)
		must(t, err)
		if got := a.Busy(); got != tt.busy || !answer.Close {
			t.Errorf("%s %s: busy is %v; the connection closes: %v", tt.method, tt.path, got, answer.Close)
		}
		goOn <- struct{}{}
		_, err = io.Copy(io.Discard, answer.Body)
		must(t, errors.Join(err, answer.Body.Close()))
		until(t, func() bool { return !a.Busy() })
	}
}
