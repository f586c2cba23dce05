package simulator

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"switchboard/handoff"
)

// Name is the model's name, whichever name a client asks for.
const Name = "simulator"

// sessionLimit is how long one connection may last, as OpenAI limits Realtime sessions.
const sessionLimit = 60 * time.Minute

// maxOffer bounds an offer with the session that comes along, in bytes.
const maxOffer = 256 << 10

// Config of a [Model]. The zero value is the model with its own brain.
type Config struct {
	Log *zap.Logger // nil logs nothing
	// Script decides instead of the brain, for all connections; see [Repeat]. It drives the same engine, so the events
	// are those of the brain's.
	Script func(Heard) []Move
	// Words are, in order, those of the speech that voice detection notices or that is committed. Later speech has no
	// words.
	Words  <-chan string
	Events <-chan Event // happen at once, in the connection that receives them first; may be nil
	// Walls sets a new limit: the connection that receives the duration ends after it, and announces that in a
	// session.updated. It may be nil.
	Walls  <-chan time.Duration
	Manner *Manner // how fast it reacts; nil: at once. Used by one connection at a time
	Hurry  float64 // how many times faster than people it speaks, for tests; 0 means 1
	Answer Answer  // answers browsers; nil: it has no WebRTC calls
}

// A Browser is the far end of a WebRTC call: it gives and takes events of the protocol, with its sound among them, as a
// WebSocket would.
type Browser interface {
	// Run passes the events of the browser to take, in order, until the browser has gone or Close is called. When the
	// sound of a response was played, it also passes output_audio_buffer.stopped or cleared, with only a response_id.
	Run(take func(event []byte))
	// Send enqueues an event; false: the browser is too slow, or has gone. An output_audio_buffer.clear stops the
	// browser's sound.
	Send(event []byte) bool
	// Close ends the call once everything was sent, and returns when Run has.
	Close()
}

// An Answer answers an SDP offer. The caller must call the browser's Run. An error is the answer to the offer.
type Answer func(ctx context.Context, offer string) (answer string, b Browser, err *handoff.Error)

// A Model is a simulated voice model. It is safe for concurrent use.
type Model struct {
	Config                        // Set once
	upgrader   websocket.Upgrader // Set once
	introduced atomic.Bool        // a caller was told that the voice is simulated
	inside     sync.WaitGroup     // requests and calls that Serve waits for

	mu     sync.Mutex
	closed bool             // Guarded by mu: Serve ends, and nobody enters any more
	calls  map[string]*conn // Guarded by mu: open calls, by id
}

// New returns a model, to be served once. It starts no goroutines.
func New(c Config) *Model {
	m := &Model{Config: c, calls: map[string]*conn{}}
	if m.Log == nil {
		m.Log = zap.NewNop()
	}
	if m.Hurry <= 0 {
		m.Hurry = 1
	}
	m.upgrader = websocket.Upgrader{
		Subprotocols: []string{"realtime"}, HandshakeTimeout: 10 * time.Second,
		ReadBufferSize: 16 << 10, WriteBufferSize: 16 << 10,
		Error: func(w http.ResponseWriter, _ *http.Request, status int, reason error) {
			refuseHTTP(w, status, reason.Error())
		},
	}
	return m
}

// Serve listens until the context ends, and returns after all connections have ended. The listener is
// closed. The error is nil when the context ended it.
func (m *Model) Serve(ctx context.Context, l net.Listener) error {
	calls, cancel := context.WithCancel(ctx)
	defer cancel()
	inner := m.handler(calls)
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return calls },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !m.enter(w) {
				return
			}
			defer m.inside.Done()
			inner.ServeHTTP(w, r)
		}),
	}
	var closing sync.WaitGroup
	closing.Go(func() {
		<-calls.Done()
		_ = server.Close() // does not close upgraded connections: these end by their context
	})
	err := server.Serve(l)
	cancel()
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	closing.Wait()
	m.inside.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// enter counts a request or a call as inside. While Serve ends it refuses, and answers.
func (m *Model) enter(w http.ResponseWriter) bool {
	m.mu.Lock()
	entered := !m.closed
	if entered {
		m.inside.Add(1)
	}
	m.mu.Unlock()
	if !entered {
		refuseHTTP(w, http.StatusServiceUnavailable, "The simulated voice model is shutting down.")
	}
	return entered
}

// handler serves GET /v1/realtime: ?model= opens a WebSocket, with a Location that names its call, and ?call_id= joins
// a call. A connection ends with its client, or with the context of its request. If the model was given an [Answer],
// POST /v1/realtime/calls begins a WebRTC call, and .../calls/{id}/hangup ends one.
func (m *Model) handler(calls context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/realtime", m.upgrade)
	if m.Answer != nil {
		mux.HandleFunc("POST /v1/realtime/calls", func(w http.ResponseWriter, r *http.Request) {
			m.offered(calls, w, r)
		})
		mux.HandleFunc("POST /v1/realtime/calls/{id}/hangup", m.hangUp)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuseHTTP(w, http.StatusNotFound,
			"Invalid URL ("+r.Method+"). The simulated voice model has GET /v1/realtime?model=... and ?call_id=... "+
				"alone.")
	})
	return mux
}

func (m *Model) upgrade(w http.ResponseWriter, r *http.Request) {
	if id := r.URL.Query().Get("call_id"); id != "" {
		m.join(w, r, id)
		return
	}
	if r.URL.Query().Get("model") == "" {
		refuseHTTP(w, http.StatusBadRequest, noModel)
		return
	}
	id := "rtc_" + rand.Text()
	ws, err := m.upgrader.Upgrade(w, r, http.Header{"Location": {"/v1/realtime/calls/" + id}})
	if err != nil { // the upgrader has answered
		m.Log.Debug("voice simulator refused a connection", zap.Error(err))
		return
	}
	m.converse(r.Context(), newConn(newSocket(ws)), id, newSettings())
}

const noModel = "You must provide a model parameter."

func refuseHTTP(w http.ResponseWriter, status int, message string) {
	kind := "invalid_request_error"
	if status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(fields{"error": fields{"type": kind, "code": nil, "message": message, "param": nil}})
}

// decider returns what decides in a new connection.
func (m *Model) decider() func(Heard) []Move {
	if m.Script != nil {
		return m.Script
	}
	return newBrain(&m.introduced).reply
}

// keep adds a call, so that it can be joined; a nil call removes it.
func (m *Model) keep(id string, c *conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls[id] = c; c == nil {
		delete(m.calls, id)
	}
}

// find returns an open call. If there is none it answers the request and returns nil.
func (m *Model) find(w http.ResponseWriter, id string) *conn {
	m.mu.Lock()
	c := m.calls[id]
	m.mu.Unlock()
	if c == nil {
		refuseHTTP(w, http.StatusNotFound, "No session found for the provided call_id")
	}
	return c
}

// offered serves POST /v1/realtime/calls: an SDP offer, raw or in a form with a session. The call outlives the request,
// and ends with the context calls.
func (m *Model) offered(calls context.Context, w http.ResponseWriter, r *http.Request) {
	offer, session, err := readOffer(http.MaxBytesReader(w, r.Body, maxOffer), r.Header.Get("Content-Type"))
	first := newSettings()
	switch {
	case err != nil:
		refuseHTTP(w, http.StatusBadRequest, "The offer cannot be read: "+err.Error())
		return
	case gjson.Get(session, "model").String() == "" && r.URL.Query().Get("model") == "":
		refuseHTTP(w, http.StatusBadRequest, noModel)
		return
	case session != "":
		var f *fault
		if first, f = first.patch([]byte(session), false); f != nil {
			refuseHTTP(w, http.StatusBadRequest, f.message)
			return
		}
	}
	if !m.enter(w) {
		return
	}
	answer, far, fault := m.Answer(r.Context(), offer)
	if fault != nil {
		m.inside.Done()
		refuseHTTP(w, http.StatusBadRequest, fault.Error())
		return
	}
	id, c := "rtc_"+rand.Text(), newConn(browser{far})
	m.keep(id, c) // before anybody knows the id
	go func() {   // Serve waits for it
		defer m.inside.Done()
		m.converse(calls, c, id, first)
	}()
	w.Header().Set("Content-Type", "application/sdp")
	w.Header().Set("Location", "/v1/realtime/calls/"+id)
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, answer)
}

// readOffer reads the offer, and the session in its form; "": there is none.
func readOffer(body io.Reader, kind string) (offer, session string, err error) {
	kind, params, err := mime.ParseMediaType(kind)
	if err != nil || kind != "multipart/form-data" {
		raw, err := io.ReadAll(body)
		return string(raw), "", err
	}
	form, err := multipart.NewReader(body, params["boundary"]).ReadForm(maxOffer)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = form.RemoveAll() }()
	part := func(name string) string { return append(form.Value[name], "")[0] }
	session = part("session")
	if session != "" && (!readable(session) || !gjson.Parse(session).IsObject()) {
		return "", "", handoff.Fault(handoff.CodeMalformed, "the session is not a JSON object", "")
	}
	return part("sdp"), session, nil
}

// hangUp serves POST /v1/realtime/calls/{id}/hangup.
func (m *Model) hangUp(w http.ResponseWriter, r *http.Request) {
	if c := m.find(w, r.PathValue("id")); c != nil {
		c.do(func(s *session) { s.close(Close{Code: websocket.CloseNormalClosure, Reason: "hung up"}) })
	}
}
