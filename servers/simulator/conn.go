package simulator

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
)

// Bounds of a connection.
const (
	// maxFrame is the largest message in bytes; a larger one cuts the connection, as in the real one.
	maxFrame = 16 << 20
	// maxUnsent is how many messages may wait for a slow reader before its connection is cut. The real one buffers
	// without bound; a simulator must not. maxUnsentBytes bounds the same in bytes.
	maxUnsent      = 8192
	maxUnsentBytes = 64 << 20
	writeTimeout   = 10 * time.Second
)

// A conn is the connection of one client.
type conn struct {
	*servers.Outbox // Set once

	m           *machine // Set once
	initialized bool     // Guarded by the machine's mu
	optOut      []string // Guarded by the machine's mu
	people      bool     // Guarded by the machine's mu: the client promised to ask a person where only one may decide
}

func newConn(m *machine, wire servers.Wire) *conn {
	return &conn{Outbox: servers.NewOutbox(wire, maxUnsent, maxUnsentBytes, m.Log), m: m}
}

// errCut ends a connection without a close frame, as the loss of a network does.
var errCut = errors.New("cut")

// send enqueues a message, and cuts a client that does not read. The caller holds mu of the machine.
func (c *conn) send(message []byte) {
	if _, err := c.Send(message); errors.Is(err, servers.ErrTooMany) {
		c.Lose(errCut)
		c.m.tooSlow++
		c.m.Log.Info("a connection that did not read was cut", zap.Uint64("cut", c.m.tooSlow))
	}
}

// A socket is the WebSocket of a client. It implements [servers.Wire].
type socket struct{ *websocket.Conn }

// Read returns the next text message.
func (s socket) Read() ([]byte, error) {
	for {
		kind, data, err := s.ReadMessage()
		if err != nil || kind == websocket.TextMessage {
			return data, err
		}
	}
}

// Write sends a message.
func (s socket) Write(message []byte) error {
	_ = s.SetWriteDeadline(time.Now().Add(writeTimeout))
	return s.WriteMessage(websocket.TextMessage, message)
}

// Close closes the underlying connection, so that no close frame is sent.
func (s socket) Close() error { return s.NetConn().Close() }

var upgrader = websocket.Upgrader{HandshakeTimeout: writeTimeout, CheckOrigin: func(*http.Request) bool { return true }}

// ServeHTTP answers as the listener of the app-server does: it refuses requests with an Origin header, and serves a
// WebSocket on every path.
func (m *machine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, browser := r.Header["Origin"]; browser {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	if !m.enter() {
		return
	}
	defer m.clients.Done()
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the upgrader has answered
	}
	ws.SetReadLimit(maxFrame)
	wire := socket{ws}
	c := newConn(m, wire)
	m.do(func() {
		if m.conns = append(m.conns, c); !m.running {
			c.Lose(errCut)
		}
	})
	defer m.do(func() { m.leave(c) })
	c.Run(func() {
		for {
			data, err := wire.Read()
			if err != nil {
				c.Lose(err)
				return
			}
			m.handleMessage(c, data)
		}
	})
}

// enter counts the handler of a connection. It returns false if the machine does not run.
func (m *machine) enter() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running {
		m.clients.Add(1)
	}
	return m.running
}

// A packet is any message from a client.
type packet struct {
	ID     json.RawMessage `json:"id"`
	Method *string         `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// requestID matches the ids that the app-server accepts: strings and whole numbers.
var requestID = regexp.MustCompile(`^(-?[0-9]+|".*")$`)

// handleMessage handles one message. Invalid data is dropped without an answer.
func (m *machine) handleMessage(c *conn, data []byte) {
	var p packet
	if handoff.TooDeep(data) || json.Unmarshal(data, &p) != nil {
		m.Log.Warn("no message", zap.Int("bytes", len(data)))
		return
	}
	switch hasID := requestID.Match(p.ID); {
	case p.Method != nil && hasID:
		m.do(func() { m.handle(request{c, p.ID, *p.Method, p.Params}) })
	case p.Method == nil && hasID:
		m.do(func() { m.handleAnswer(c, p) })
	default:
		m.Log.Debug("message dropped", zap.Int("bytes", len(data)))
	}
}
