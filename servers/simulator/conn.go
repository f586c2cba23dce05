package simulator

import (
	"encoding/json"
	"net/http"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"switchboard/handoff"
)

// Bounds of a connection.
const (
	// maxFrame is the largest message taken; a larger one cuts the connection, as in the real one.
	maxFrame = 16 << 20
	// maxUnsent is how many messages a slow reader may be behind before its connection is cut. The real
	// one buffers without bound; a simulator must not.
	maxUnsent = 8192
	// maxUnsentBytes and maxAskedBytes bound the same in bytes, and the requests that wait for a machine.
	maxUnsentBytes = 64 << 20
	maxAskedBytes  = 64 << 20
	writeTimeout   = 10 * time.Second
)

// A conn is one client. Its handler reads, its writer writes, the machine's loop does everything else.
type conn struct {
	ws   *websocket.Conn // Set once
	out  chan []byte     // to the writer; bound maxUnsent; sent to by the loop and the handler, never closed
	off  chan struct{}   // closed by cut
	end  sync.Once
	held atomic.Int64 // bytes in out

	initialized bool     // Owned by the machine's loop
	optOut      []string // Owned by the machine's loop
	people      bool     // Owned by the machine's loop: it promised to ask a person what is a person's to decide
	slow        bool     // Owned by the machine's loop: it was cut for being slow
}

// send enqueues a message; a client that does not read is cut.
func (c *conn) send(message []byte) {
	if !c.enqueue(message) {
		c.slow = true
		c.cut()
	}
}

// enqueue gives a message to the writer, or reports that there is no room for it.
func (c *conn) enqueue(message []byte) bool {
	n := int64(len(message))
	if c.held.Add(n) <= maxUnsentBytes {
		select {
		case c.out <- message:
			return true
		default:
		}
	}
	c.held.Add(-n)
	return false
}

// cut ends the connection without a close frame, as a lost network does.
func (c *conn) cut() {
	c.end.Do(func() {
		close(c.off)
		_ = c.ws.NetConn().Close() // the reader finds out
	})
}

func (c *conn) write() {
	for {
		select {
		case <-c.off:
			return
		case message := <-c.out:
			c.held.Add(-int64(len(message)))
			_ = c.ws.SetWriteDeadline(time.Now().Add(writeTimeout))
			if err := c.ws.WriteMessage(websocket.TextMessage, message); err != nil {
				c.cut()
				return
			}
		}
	}
}

var upgrader = websocket.Upgrader{HandshakeTimeout: writeTimeout, CheckOrigin: func(*http.Request) bool { return true }}

// ServeHTTP answers as the app-server's listener does: nothing at all with an Origin header, health
// without a key, WebSocket on every other path.
func (m *machine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, browser := r.Header["Origin"]; browser {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
		return
	}
	if !websocket.IsWebSocketUpgrade(r) {
		http.Error(w, "Connection header did not include 'upgrade'", http.StatusBadRequest)
		return
	}
	up := false
	m.do(func() { up = m.running })
	if !up {
		http.Error(w, "this machine does not run", http.StatusServiceUnavailable)
		return
	}
	c := &conn{out: make(chan []byte, m.unsent), off: make(chan struct{})}
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // answered by the upgrader
	}
	c.ws = ws
	defer c.cut()
	joined := false
	m.do(func() {
		if joined = m.running; joined {
			m.conns = append(m.conns, c)
		}
	})
	if !joined {
		return
	}
	defer m.do(func() { m.leave(c) })
	stop := afterDone(r.Context(), c.cut)
	defer stop()
	var writer sync.WaitGroup
	writer.Go(c.write)
	defer writer.Wait()
	defer c.cut()
	m.read(c)
}

// A packet is any message of a client.
type packet struct {
	ID     json.RawMessage `json:"id"`
	Method *string         `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// requestID matches ids that the app-server answers: text and whole numbers.
var requestID = regexp.MustCompile(`^(-?[0-9]+|".*")$`)

// read takes messages until the connection ends. Data that is no message is dropped without an answer.
func (m *machine) read(c *conn) {
	c.ws.SetReadLimit(maxFrame)
	for {
		kind, data, err := c.ws.ReadMessage()
		if err != nil {
			return
		}
		if kind == websocket.TextMessage {
			m.take(c, data)
		}
	}
}

// take takes one message.
func (m *machine) take(c *conn, data []byte) {
	var p packet
	if handoff.TooDeep(data) || json.Unmarshal(data, &p) != nil {
		m.log.Warn("no message", zap.Int("bytes", len(data)))
		m.do(func() { m.unread++ })
		return
	}
	switch hasID := requestID.Match(p.ID); {
	case p.Method != nil && hasID:
		if !m.enqueue(asked{c, p.ID, *p.Method, p.Params}) {
			if !c.enqueue(overloaded.reply(p.ID)) {
				c.cut()
			}
		}
	case p.Method == nil && hasID:
		m.do(func() { m.answered(c, p) })
	default:
		m.log.Debug("message dropped", zap.Int("bytes", len(data)))
	}
}
