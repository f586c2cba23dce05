package web

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"switchboard/handoff"
)

// A narrowListener takes connections that hold little of what is sent and not read.
type narrowListener struct{ net.Listener }

func (l narrowListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetReadBuffer(32 << 10)
	}
	return c, err
}

// serveNarrow serves a world that takes what is left of refused bodies for as long as a test has patience.
func serveNarrow(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s := newServer(t, newWorld(), func(cfg *Config) { cfg.Listen = l.Addr().String() })
	s.times.rest = patience
	serveOn(t, s.HTTPServer(), narrowListener{l})
	return l.Addr().String()
}

// TestRefusalOfALargeBody: a client that sends its whole body before it reads gets the answer of a refusal.
func TestRefusalOfALargeBody(t *testing.T) {
	addr := serveNarrow(t)
	const size = 5 << 20
	body := strings.Repeat("x", size)
	key := "Authorization: Bearer " + ownerKey
	for head, want := range map[string]handoff.Code{
		"POST /fleet/questions/q1 HTTP/1.1\r\n" + key:                                       handoff.CodeTooLarge,
		"POST /fleet/questions/q1 HTTP/1.1\r\nAuthorization: Bearer unknown-key-0123456789": handoff.CodeUnauthorized,
		"GET /fleet/servers HTTP/1.1\r\n" + key:                                             handoff.CodeTooLarge,
		"POST /nowhere HTTP/1.1\r\n" + key:                                                  handoff.CodeNotFound,
		"POST /login HTTP/1.1\r\nOrigin: http://evil":                                       handoff.CodeForbidden,
	} {
		for _, framing := range []string{"Content-Length: 5242880\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n500000\r\n"} {
			c := knock(t, addr, head+"\r\nHost: "+addr+"\r\n"+framing)
			if _, err := io.WriteString(c, body); err != nil {
				t.Errorf("%.40q: the body was not taken: %v", head, err)
				continue
			}
			if strings.Contains(framing, "chunked") {
				_, _ = io.WriteString(c, "\r\n0\r\n\r\n")
			}
			if got, err := refusal(t, c); err != nil || got != want {
				t.Errorf("%.40q: got %s, %v, want %s", head, got, err, want)
			}
		}
	}
}

// TestRefusalBeforeTheBody: a client that sends Expect is refused at once, before it sends the body.
func TestRefusalBeforeTheBody(t *testing.T) {
	addr := serveNarrow(t)
	for head, want := range map[string]handoff.Code{
		"POST /fleet/questions/q1 HTTP/1.1\r\nAuthorization: Bearer " + ownerKey:            handoff.CodeTooLarge,
		"POST /fleet/questions/q1 HTTP/1.1\r\nAuthorization: Bearer unknown-key-0123456789": handoff.CodeUnauthorized,
	} {
		c := knock(t, addr, head+"\r\nHost: "+addr+"\r\nExpect: 100-continue\r\nContent-Length: 5242880\r\n\r\n")
		if got, err := refusal(t, c); err != nil || got != want {
			t.Errorf("%.40q: got %s, %v, want %s", head, got, err, want)
		}
	}
}

// refusal reads an answer and returns its code.
func refusal(t *testing.T, c net.Conn) (handoff.Code, error) {
	t.Helper()
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	rec := httptest.NewRecorder()
	rec.Code = answer.StatusCode
	_, err = rec.Body.ReadFrom(answer.Body)
	return codeOf(t, rec), err
}

// TestRefusalOfAnEndlessBody: an endless body of a refused request is not read for ever.
func TestRefusalOfAnEndlessBody(t *testing.T) {
	addr := serveNarrow(t)
	c := knock(t, addr, "POST /fleet/questions/q1 HTTP/1.1\r\nHost: "+addr+"\r\nTransfer-Encoding: chunked\r\n\r\n")
	piece := "100000\r\n" + strings.Repeat("x", 1<<20) + "\r\n"
	for range 64 {
		if _, err := io.WriteString(c, piece); err != nil {
			return
		}
	}
	t.Error("64 MiB were taken")
}
