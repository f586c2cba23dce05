package simulator

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"
)

// Name is the model's name, whichever name a client asks for.
const Name = "simulator"

// sessionLimit is how long one connection may last, as OpenAI limits Realtime sessions.
const sessionLimit = 60 * time.Minute

// Config of a [Model]. The zero value is the model with its own brain.
type Config struct {
	Log    *zap.Logger // nil logs nothing
	Script *Script     // decides instead of the brain; must not be changed any more
	// Walls sets a new limit: the connection that receives the duration ends after it, and announces that in a
	// session.updated. It may be nil.
	Walls  <-chan time.Duration
	Manner *Manner // how fast it reacts; nil: at once. Used by one connection at a time
	Hurry  float64 // how many times faster than people it speaks, for tests; 0 means 1
	Answer Answer  // answers browsers; nil: it has no WebRTC calls
}

// A Model is a simulated voice model. It is safe for concurrent use.
type Model struct {
	log          *zap.Logger          // Set once
	walls        <-chan time.Duration // Set once
	hurry        float64              // Set once
	manner       *Manner              // Set once
	answer       Answer               // Set once; nil: it has no WebRTC calls
	script       *scripted            // Set once; nil: the brain decides
	scriptEvents <-chan Event         // Set once
	upgrader     websocket.Upgrader   // Set once
	introduced   atomic.Bool          // a caller was told that the voice is simulated

	mu    sync.Mutex
	calls map[string]*conn // Guarded by mu: open calls, by id
}

// New returns a model. It starts no goroutines.
func New(c Config) *Model {
	m := &Model{
		log: c.Log, walls: c.Walls, hurry: c.Hurry, manner: c.Manner, answer: c.Answer,
		calls: map[string]*conn{},
	}
	if m.log == nil {
		m.log = zap.NewNop()
	}
	if m.hurry <= 0 {
		m.hurry = 1
	}
	if c.Script != nil {
		m.script = &scripted{script: c.Script, used: make([]int, len(c.Script.Steps))}
		m.scriptEvents = c.Script.Now
	}
	m.upgrader = websocket.Upgrader{
		Subprotocols: []string{"realtime"}, HandshakeTimeout: 10 * time.Second,
		ReadBufferSize: 16 << 10, WriteBufferSize: 16 << 10,
		Error: func(w http.ResponseWriter, _ *http.Request, status int, reason error) {
			refuseHTTP(w, status, "invalid_request_error", reason.Error())
		},
	}
	return m
}

// handler serves GET /v1/realtime: ?model= opens a WebSocket, with a Location that names its call, and ?call_id= joins
// a call. A connection ends with its client, or with the context of its request. If the model was given an [Answer],
// POST /v1/realtime/calls begins a WebRTC call, and .../calls/{id}/hangup ends one.
func (m *Model) handler(calls context.Context, open *gate) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/realtime", m.upgrade)
	if m.answer != nil {
		mux.HandleFunc("POST /v1/realtime/calls", func(w http.ResponseWriter, r *http.Request) {
			m.offered(calls, open, w, r)
		})
		mux.HandleFunc("POST /v1/realtime/calls/{id}/hangup", m.hangUp)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuseHTTP(w, http.StatusNotFound, "invalid_request_error",
			"Invalid URL ("+r.Method+"). The simulated voice model has GET /v1/realtime?model=... and ?call_id=... alone.")
	})
	return mux
}

// shuttingDown is the answer to requests while Serve ends.
const shuttingDown = "The simulated voice model is shutting down."

func (m *Model) upgrade(w http.ResponseWriter, r *http.Request) {
	if id := r.URL.Query().Get("call_id"); id != "" {
		m.join(w, r, id)
		return
	}
	if r.URL.Query().Get("model") == "" {
		refuseHTTP(w, http.StatusBadRequest, "invalid_request_error", "You must provide a model parameter.")
		return
	}
	id := "rtc_" + rand.Text()
	ws, err := m.upgrader.Upgrade(w, r, http.Header{"Location": {"/v1/realtime/calls/" + id}})
	if err != nil { // the upgrader has answered
		m.log.Debug("voice simulator refused a connection", zap.Error(err))
		return
	}
	m.converse(r.Context(), m.overSocket(ws), id, newSettings())
}

func refuseHTTP(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(fields{"error": fields{"type": kind, "code": nil, "message": message, "param": nil}})
}

// mind returns the mind of a new connection.
func (m *Model) mind() mind {
	if m.script != nil {
		return m.script
	}
	return newBrain(&m.introduced)
}

// Serve listens until the context ends, and returns after all connections have ended. The listener is
// closed. The error is nil when the context ended it.
func (m *Model) Serve(ctx context.Context, l net.Listener) error {
	calls, cancel := context.WithCancel(ctx)
	defer cancel()
	var open gate
	inner := m.handler(calls, &open)
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return calls },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !open.enter() {
				refuseHTTP(w, http.StatusServiceUnavailable, "server_error", shuttingDown)
				return
			}
			defer open.inside.Done()
			inner.ServeHTTP(w, r)
		}),
	}
	failed := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { failed <- server.Serve(l) })
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	cancel()
	open.close()
	_ = server.Close() // does not close upgraded connections: these end by their context
	open.inside.Wait()
	wg.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// A gate admits requests until it is closed, and lets Serve wait for the last one to leave. The zero value is open.
type gate struct {
	inside sync.WaitGroup

	mu     sync.Mutex
	closed bool // Guarded by mu
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.inside.Add(1)
	}
	return !g.closed
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}
