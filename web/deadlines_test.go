package web

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/handoff"
)

// hasty are deadlines that a test sees pass. The pulse of a stream is none: what keeps it is not its pulse.
var hasty = deadlines{
	header: 150 * time.Millisecond, body: 50 * time.Millisecond, rest: 50 * time.Millisecond, answer: 200 * time.Millisecond, idle: 200 * time.Millisecond, unkeyed: time.Hour,
	event: 150 * time.Millisecond, beat: time.Hour, asks: time.Hour,
}

// serveHasty serves a world with hasty deadlines; wrap may be nil.
func serveHasty(t *testing.T, w *world, wrap http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s := newServer(t, w, func(cfg *Config) { cfg.Listen = l.Addr().String() })
	s.times = hasty
	h := s.HTTPServer()
	if wrap != nil {
		h.Handler = wrap
	}
	serveOn(t, h, l)
	return l.Addr().String()
}

// knock sends text on a connection of its own.
func knock(t *testing.T, addr, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	must(t, c.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(c, text)
	must(t, err)
	return c
}

// gone waits until the other side has closed a connection.
func gone(c net.Conn) error {
	_, err := io.Copy(io.Discard, c)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		return fmt.Errorf("still open: %w", err)
	}
	return nil // an end, or a reset
}

// TestBodiesThatNeverCome: a client that announces a body and sends none is disconnected after the deadline, at every
// route.
func TestBodiesThatNeverCome(t *testing.T) {
	addr := serveHasty(t, newWorld(), nil)
	heads := []string{
		"POST /fleet/questions/q1 HTTP/1.1\r\nAuthorization: Bearer " + ownerKey,
		"POST /fleet/questions/q1 HTTP/1.1\r\nX: no key",
		"GET /fleet/servers HTTP/1.1\r\nAuthorization: Bearer " + ownerKey,
		"GET /fleet/events HTTP/1.1\r\nAuthorization: Bearer " + ownerKey,
		"POST /nowhere HTTP/1.1\r\nAuthorization: Bearer " + ownerKey,
		"GET /page/main.js HTTP/1.1\r\nX: public",
	}
	var waiting sync.WaitGroup
	for i := range 300 {
		c := knock(t, addr, heads[i%len(heads)]+"\r\nHost: "+addr+"\r\nContent-Length: 200000\r\n\r\n")
		waiting.Go(func() {
			if err := gone(c); err != nil {
				t.Errorf("%s: %v", heads[i%len(heads)], err)
			}
		})
	}
	for _, text := range []string{"", "GET / HTTP/1.1\r\nHost: ", "GET / HTTP/1.1\r\nHost: " + addr + "\r\n\r\n"} {
		c := knock(t, addr, text) // half a head, or nothing more after an answer
		waiting.Go(func() {
			if err := gone(c); err != nil {
				t.Errorf("after %q: %v", text, err)
			}
		})
	}
	waiting.Wait()
}

// TestReaderThatDoesNotRead: a client that does not read its answer is disconnected after the deadline.
func TestReaderThatDoesNotRead(t *testing.T) {
	ended := make(chan error, 1)
	addr := serveHasty(t, newWorld(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var err error
		for piece := make([]byte, 1<<20); err == nil; { // more than any buffer on the way holds
			_, err = w.Write(piece)
		}
		ended <- err
	}))
	knock(t, addr, "GET / HTTP/1.1\r\nHost: "+addr+"\r\n\r\n")
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the answer is still being written")
	}
}

// TestStreamOutlivesDeadlines: a stream outlives every deadline, over HTTP/1 and HTTP/2.
func TestStreamOutlivesDeadlines(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			w := newWorld()
			plain := serveHasty(t, w, nil)
			there := httptest.NewUnstartedServer(nil)
			s := newServer(t, w, func(cfg *Config) { cfg.Listen = there.Listener.Addr().String() })
			s.times = hasty
			there.Config = s.HTTPServer()
			there.EnableHTTP2 = protocol == "HTTP/2.0"
			there.StartTLS()
			defer there.Close()
			r, err := http.NewRequestWithContext(t.Context(), "GET", there.URL+"/fleet/events", nil)
			must(t, err)
			r.Header.Set("Authorization", "Bearer "+ownerKey)
			client := there.Client()
			transport := client.Transport.(*http.Transport)
			transport.TLSClientConfig = &tls.Config{RootCAs: transport.TLSClientConfig.RootCAs}
			answer, err := client.Do(r)
			for end := time.Now().Add(patience); err != nil && time.Now().Before(end); { // a slow machine may miss the deadline of the handshake
				answer, err = client.Do(r)
			}
			must(t, err)
			defer answer.Body.Close()
			if answer.Proto != protocol {
				t.Fatalf("spoke %s", answer.Proto)
			}
			lines := bufio.NewScanner(answer.Body)
			for lines.Scan() && lines.Text() != "data: {}" {
			}
			for range 3 { // as long as it takes that others are cut by each of the deadlines
				must(t, gone(knock(t, plain, "POST /nowhere HTTP/1.1\r\nHost: "+plain+"\r\nContent-Length: 9\r\n\r\n")))
				w.feed("owner").Publish(handoff.PageEvent{Kind: handoff.PageServers})
				for lines.Scan() && !strings.Contains(lines.Text(), `"servers"`) {
				}
				if err := lines.Err(); err != nil {
					t.Fatalf("the stream was cut: %v", err)
				}
			}
		})
	}
}
