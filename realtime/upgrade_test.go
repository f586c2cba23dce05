package realtime

import (
	"bufio"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/gorilla/websocket"

	"switchboard/handoff"
)

// A hastyConn is of a client that hangs up as soon as the answer to its upgrade names the call.
type hastyConn struct {
	net.Conn
	hangUp func(id string)
}

func (c hastyConn) Write(p []byte) (int, error) {
	if _, rest, ok := strings.Cut(string(p), "Location: "+callPath); ok {
		id, _, _ := strings.Cut(rest, "\r\n")
		c.hangUp(id)
	}
	return c.Conn.Write(p)
}

type hastyUpgrade struct {
	http.ResponseWriter
	hangUp func(id string)
}

func (u hastyUpgrade) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := http.NewResponseController(u.ResponseWriter).Hijack()
	return hastyConn{conn, u.hangUp}, buffers, err
}

func TestHangupBeforeTheUpgradeIsRead(t *testing.T) {
	h := newHouse(t)
	hungUp := make(chan error, 1)
	connects(t, serves(t, func(w http.ResponseWriter, r *http.Request, g handoff.Grant) {
		h.front.ServeWebSocket(hastyUpgrade{w, func(id string) { hungUp <- h.front.Hangup(g, id) }}, r, g)
	}))
	model := h.takeModel()
	if err := <-hungUp; err != nil {
		t.Error(err)
	}
	expectClose(t, model, websocket.CloseNormalClosure)
}

// TestCallKeepsNothingOfItsRequest: what HTTP has for a request, its buffers among it, goes while the call goes on.
func TestCallKeepsNothingOfItsRequest(t *testing.T) {
	h := newHouse(t)
	requests := make(chan weak.Pointer[http.Request], 1)
	reading(connects(t, serves(t, func(w http.ResponseWriter, r *http.Request, g handoff.Grant) {
		requests <- weak.Make(r)
		h.front.ServeWebSocket(w, r, g)
	})))
	reading(h.takeModel())
	request := <-requests
	for end := time.Now().Add(patience); request.Value() != nil; time.Sleep(time.Millisecond) {
		if runtime.GC(); time.Now().After(end) {
			t.Fatal("the call keeps its request")
		}
	}
}
