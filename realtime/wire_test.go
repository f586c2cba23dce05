package realtime

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/outbound"
	"switchboard/realtime/rtc"
	"switchboard/realtime/rtc/rtctest"
)

// patience bounds the wait for something that must happen; only a failing test waits so long.
const patience = rtctest.Patience

// farModel is a voice model on loopback: it greets, then does what the test says.
type farModel struct {
	server *httptest.Server
	conns  chan *websocket.Conn
	header chan http.Header
	query  chan string
	refuse int          // an HTTP status instead of the upgrade
	gone   atomic.Int32 // the same, from now on
	turned atomic.Int32 // how many were turned away so
	after  string       // its Retry-After
	deny   string       // an error instead of a session, after the upgrade
	think  func()       // comes before the session; or nil
}

func newFarModel(t *testing.T) *farModel {
	m := &farModel{conns: make(chan *websocket.Conn, 8), header: make(chan http.Header, 8), query: make(chan string, 8)}
	m.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status := m.gone.Load(); status != 0 {
			m.turned.Add(1)
			http.Error(w, "gone", int(status))
			return
		}
		if m.refuse != 0 {
			if m.after != "" {
				w.Header().Set("Retry-After", m.after)
			}
			http.Error(w, "key sk-secret is wrong", m.refuse)
			return
		}
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		if m.deny != "" {
			_ = conn.WriteMessage(websocket.TextMessage, []byte(m.deny))
			_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(4000, ""))
			for err == nil { // until the far end has closed: what it did not read yet would be lost with a reset
				_, _, err = conn.ReadMessage()
			}
			_ = conn.Close()
			return
		}
		m.header <- r.Header
		m.query <- r.URL.RawQuery
		if m.think != nil {
			m.think()
		}
		_ = conn.WriteMessage(websocket.TextMessage, []byte(freshSession))
		m.conns <- conn
	}))
	t.Cleanup(m.server.Close)
	return m
}

func (m *farModel) url() string {
	return "ws" + strings.TrimPrefix(m.server.URL, "http") + "/v1/realtime?api-version=1"
}

// house is a front on loopback with a model behind it.
type house struct {
	t      *testing.T
	front  *Front
	router *listener
	model  *farModel
	edge   *httptest.Server
	grant  handoff.Grant // of who asks; set before anybody does
	stop   context.CancelFunc
	ran    chan error
}

func newHouse(t *testing.T) *house { return newHouseWith(t, func(*Config) {}) }

func newHouseWith(t *testing.T, change func(*Config)) *house {
	rtctest.NoLeaks(t)
	h := &house{t: t, grant: someone, model: newFarModel(t), router: &listener{}, ran: make(chan error, 1)}
	config := Config{ModelURL: h.model.url(), Model: "gpt-test", Key: "sk-secret", Router: h.router, Tools: ours,
		// No browser is given up on while a busy machine keeps it from answering.
		Media: rtc.Config{Connect: patience, Disconnected: patience, Failed: patience}}
	change(&config)
	var err error
	h.front, err = NewFront(config)
	if err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, h.stop = context.WithCancel(t.Context())
	go func() { h.ran <- h.front.Run(ctx) }()
	h.edge = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.front.ServeWebSocket(w, r, h.grant)
	}))
	t.Cleanup(func() {
		h.stop()
		if err := <-h.ran; err != nil {
			t.Error(err)
		}
		h.edge.Close()
	})
	return h
}

// call connects a client and returns both far ends, past the beginning of the session.
func (h *house) call(query string) (client, model *websocket.Conn) {
	h.t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{"realtime", "openai-insecure-api-key.k"}}
	client, response, err := dialer.Dial("ws"+strings.TrimPrefix(h.edge.URL, "http")+"/v1/realtime"+query,
		http.Header{safetyHeader: {"alice"}})
	if err != nil {
		h.t.Fatalf("dial: %v (%v)", err, response)
	}
	h.t.Cleanup(func() { _ = client.Close() })
	model = h.takeModel()
	expect(h.t, client, "session.created")
	expect(h.t, model, "session.update")
	expect(h.t, model, "session.update")
	return client, model
}

// expect reads the next event and checks its type.
func expect(t *testing.T, conn *websocket.Conn, want string) string {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	_, event, err := conn.ReadMessage()
	if err != nil {
		t.Fatalf("want %s: %v", want, err)
	}
	if got := gjson.GetBytes(event, "type").String(); got != want {
		t.Fatalf("got %s, want %s", event, want)
	}
	return string(event)
}

// expectClose reads the end of a connection and checks its code.
func expectClose(t *testing.T, conn *websocket.Conn, code int) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	conn.SetPingHandler(func(string) error { return nil }) // an answer would fail first, where writing has failed
	var err error
	for err == nil {
		_, _, err = conn.ReadMessage()
	}
	if !websocket.IsCloseError(err, code) {
		t.Fatalf("ended with %v, want %d", err, code)
	}
}

func send(t *testing.T, conn *websocket.Conn, event string) {
	t.Helper()
	if err := conn.WriteMessage(websocket.TextMessage, []byte(event)); err != nil {
		t.Fatal(err)
	}
}

// hangUp ends a call from the client's side and returns once its model is let go: a call whose model closes first takes
// another session.
func hangUp(client, model *websocket.Conn) {
	_ = client.Close()
	for err := error(nil); err == nil; {
		_, _, err = model.ReadMessage()
	}
	_ = model.Close()
}

func TestWebSocketCall(t *testing.T) {
	h := newHouse(t)
	h.router.on = func(v handoff.Voice, e handoff.VoiceEvent) {
		if r, ok := e.(handoff.FunctionCall); ok {
			v.Say(handoff.Utterance{ID: "a-" + r.CallID, CallID: r.CallID, Text: `{"ok":true}`, Floor: handoff.FloorAsk})
		}
	}
	client, model := h.call("?model=gpt-mine")
	if got := client.Subprotocol(); got != "realtime" {
		t.Errorf("subprotocol %q", got)
	}
	if q := <-h.model.query; q != "api-version=1&model=gpt-mine" {
		t.Errorf("model was asked for %q", q)
	}
	header := <-h.model.header
	if header.Get("Authorization") != "Bearer sk-secret" || header.Get(safetyHeader) != "alice" ||
		header.Get("OpenAI-Beta") != "" || header.Get("Origin") != "" {
		t.Errorf("headers %v", header)
	}
	big := `{"type":"input_audio_buffer.append","audio":"` + strings.Repeat("A", 2<<20) + `"}`
	send(t, client, big)
	if got := expect(t, model, "input_audio_buffer.append"); got != big {
		t.Error("audio was touched")
	}
	it := callItem("item_1", "call_1", "codex", "completed")
	for _, e := range []string{`{"type":"session.updated","session":{}}`, `{"type":"session.updated","session":{}}`,
		began("r1", ""), itemDone("r1", it), done("r1", "", "completed", it)} {
		send(t, model, e)
	}
	expect(t, client, "response.created")
	expect(t, client, "response.done")
	expect(t, model, "conversation.item.create")
	tag := tagIn(expect(t, model, "response.create"))
	send(t, model, began("r2", tag))
	send(t, model, audio("r2", time.Second))
	expect(t, client, "response.created")
	expect(t, client, "response.output_audio.delta")
	_ = client.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(patience))
	expectClose(t, client, 1000)
	expectClose(t, model, 1000)
}

// The request is over once it is answered: its goroutine and its buffers are not kept for the call.
func TestRequestEndsBeforeTheCall(t *testing.T) {
	h := newHouse(t)
	served := make(chan struct{}, 2)
	edge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.front.ServeWebSocket(w, r, h.grant)
		served <- struct{}{}
	}))
	h.edge.Close()
	h.edge = edge
	client, model := h.call("")
	take(t, served, "end of the request")
	other := h.besideIt(h.front.Calls(someone)[0].ID)
	take(t, served, "end of the request beside it")
	expect(t, other, events.TypeSessionCreated)
	for _, far := range []*websocket.Conn{client, other} {
		send(t, far, `{"type":"input_audio_buffer.clear"}`)
		expect(t, model, "input_audio_buffer.clear")
	}
}

func TestNotACall(t *testing.T) {
	h := newHouse(t)
	for path, want := range map[string]struct {
		status int
		code   handoff.Code
	}{
		"/v1/realtime?call_id=rtc_1": {404, handoff.CodeNotFound},
		"/v1/realtime?model=x":       {400, handoff.CodeMalformed},
	} {
		response, err := http.Get(h.edge.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		var e struct{ Error handoff.RecordError }
		if err := json.NewDecoder(response.Body).Decode(&e); err != nil || response.StatusCode != want.status ||
			e.Error.Code != want.code {
			t.Errorf("%s: %d %+v %v", path, response.StatusCode, e, err)
		}
		_ = response.Body.Close()
	}
}

func TestHangup(t *testing.T) {
	h := newHouse(t)
	client, model := h.call("")
	var id string
	h.front.live.mu.Lock()
	for id = range h.front.live.calls {
	}
	h.front.live.mu.Unlock()
	if !strings.HasPrefix(id, "rtc_") {
		t.Errorf("id %q", id)
	}
	if list := h.front.Calls(someone); len(list) != 1 || list[0].ID != id || list[0].Began.IsZero() {
		t.Errorf("its caller sees %+v", list)
	}
	for _, caller := range []handoff.Caller{{Principal: "other"}, {Principal: "owner", User: "bob"},
		handoff.NamelessCaller("owner", "x")} {
		if list := h.front.Calls(handoff.Grant{Caller: caller}); list == nil || len(list) != 0 {
			t.Errorf("%v sees another's call: %+v", caller, list)
		}
		if err := h.front.Hangup(handoff.Grant{Caller: caller}, id); err == nil ||
			handoff.AsError(err).Code != handoff.CodeNotFound {
			t.Errorf("%v hung up another's call: %v", caller, err)
		}
	}
	if err := h.front.Hangup(someone, id); err != nil {
		t.Error(err)
	}
	expectClose(t, client, 1000)
	expectClose(t, model, 1000)
	rtctest.Eventually(t, "the call to leave the list", func() bool { return len(h.front.Calls(someone)) == 0 })
}

// A model that is gone for good ends the call, with one error and one close.
func TestModelGoneOnTheWire(t *testing.T) {
	h := newHouse(t)
	client, model := h.call("")
	h.model.gone.Store(http.StatusUnauthorized)
	_ = model.Close()
	why := handoff.Vocabulary[handoff.CodeVoiceKey]
	if got := expect(t, client, "error"); gjson.Get(got, "error.code").String() != string(handoff.CodeVoiceKey) {
		t.Errorf("client was told %s", got)
	}
	expectClose(t, client, why.Close)
}

func TestShutdownOnTheWire(t *testing.T) {
	h := newHouse(t)
	client, model := h.call("")
	h.stop()
	expect(t, client, "error")
	expectClose(t, client, 1012)
	expectClose(t, model, 1000)
	<-h.front.stopped
	response, err := http.Get(h.edge.URL)
	if err != nil || response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a call after the end: %v %v", response, err)
	}
	_ = response.Body.Close()
}

// endOf lets a test wait for the end of the call that runs.
func (h *house) endOf() <-chan error {
	ended := make(chan error, 1)
	h.router.mu.Lock()
	defer h.router.mu.Unlock()
	h.router.on = func(_ handoff.Voice, e handoff.VoiceEvent) {
		if e, ok := e.(handoff.CallEnded); ok {
			ended <- e.Cause
		}
	}
	return ended
}

// A client that never reads: the bytes that wait are within their bound, but a write never ends, which ends the call.
func TestClientThatNeverReads(t *testing.T) {
	h := newHouse(t)
	h.front.patient = 50 * time.Millisecond
	_, model := h.call("")
	ended := h.endOf()
	event := `{"type":"response.output_audio.delta","response_id":"r1","delta":"` + strings.Repeat("A", 1<<20) + `"}`
	for range outbound.MaxBytes >> 21 { // more than the sockets of a machine hold, less than the bound
		if model.WriteMessage(websocket.TextMessage, []byte(event)) != nil {
			break // the call ended before all was written
		}
	}
	if cause := take(t, ended, "end"); cause == nil || handoff.AsError(cause).Code != handoff.CodeSlowClient {
		t.Errorf("ended with %v", cause)
	}
}

// A socket whose far end has gone takes nothing more, and does not end as too slow.
func TestSocketOfAClientThatWent(t *testing.T) {
	h := newHouse(t)
	client, _ := h.call("")
	ended := h.endOf()
	var s *socket
	h.front.live.mu.Lock()
	for _, c := range h.front.live.calls {
		s = c.legs.client.(*socket)
	}
	h.front.live.mu.Unlock()
	if s.Ended() != nil {
		t.Error("it has ended")
	}
	_ = client.NetConn().Close()
	if cause := take(t, ended, "end"); cause != nil {
		t.Errorf("ended with %v", cause)
	}
	rtctest.Eventually(t, "end of the socket", func() bool { return !s.Send([]byte(`{}`)) })
	if why := s.Ended(); why != nil {
		t.Errorf("it went because %v", why)
	}
}

// A write that takes too long counts as a slow client, and any other failure as a client that has gone.
func TestWhyAWriteFails(t *testing.T) {
	s := &socket{log: nopLog()}
	for _, err := range []error{fmt.Errorf("write: %w", os.ErrDeadlineExceeded), errRest} {
		if why := s.writeFault(err); why == nil || why.Code != handoff.CodeSlowClient {
			t.Errorf("%v: %v", err, why)
		}
	}
	for _, err := range []error{net.ErrClosed, io.ErrClosedPipe} {
		if why := s.writeFault(err); why != nil {
			t.Errorf("%v: %v", err, why)
		}
	}
}

// TestToolsOfTheSameName holds, over sockets, that a client keeps a tool with a name of ours, and that the router
// gets requests for ours under its own name.
func TestToolsOfTheSameName(t *testing.T) {
	h := newHouse(t)
	asked := make(chan handoff.FunctionCall, 4)
	h.router.on = func(_ handoff.Voice, e handoff.VoiceEvent) {
		if r, ok := e.(handoff.FunctionCall); ok {
			asked <- r
		}
	}
	client, model := h.call("")
	send(t, client, `{"type":"session.update","session":{"type":"realtime","tools":[{"type":"function","name":"codex"}]}}`)
	up := expect(t, model, "session.update")
	if names := toolNames(up, "session.tools"); names != `["codex","switchboard_`+allTools[1:]+"]" ||
		!strings.HasPrefix(gjson.Get(up, "session.instructions").String(), guide+" ") ||
		!strings.Contains(up, "switchboard_codex; codex itself is another tool") {
		t.Fatalf("the model has %s", up)
	}
	for range 3 {
		send(t, model, `{"type":"session.updated","session":`+gjson.Get(up, "session").Raw+`}`)
	}
	if seen := expect(t, client, "session.updated"); toolNames(seen, "session.tools") != `["codex"]` ||
		gjson.Get(seen, "session.instructions").String() != "be nice" {
		t.Errorf("the client sees %s", seen)
	}
	theirs, ours := callItem("i1", "c1", "codex", "completed"), callItem("i2", "c2", "switchboard_codex", "completed")
	for _, event := range []string{began("r1", ""), itemDone("r1", theirs), itemDone("r1", ours),
		done("r1", "", "completed", theirs, ours)} {
		send(t, model, event)
	}
	if r := take(t, asked, "request"); r.CallID != "c2" || r.Tool != "codex" {
		t.Errorf("asked for %+v", r)
	}
	expect(t, client, "response.created")
	if seen := expect(t, client, "response.output_item.done"); gjson.Get(seen, "item.call_id").String() != "c1" {
		t.Errorf("the client sees %s", seen)
	}
	if seen := expect(t, client, "response.done"); gjson.Get(seen, "response.output.#.call_id").String() != `["c1"]` {
		t.Errorf("the client sees %s", seen)
	}
}
