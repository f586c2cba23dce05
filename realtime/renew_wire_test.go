package realtime

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/rtc/rtctest"
	"switchboard/realtime/simulator"
)

// A socket of the model that is closed or torn down in the middle of anything is replaced, for a client on a socket and
// for one in a browser, and neither sees more than its session going on.
func TestRenewalOnTheWire(t *testing.T) {
	h := newHouse(t)
	client, model := h.call("?model=mine")
	<-h.model.query
	_ = model.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseGoingAway, ""))
	model = rtctest.Take(t, h.model.conns, "another session")
	if query, header := <-h.model.query, <-h.model.header; !strings.Contains(query, "model=mine") ||
		header.Get(safetyHeader) != "alice" {
		t.Errorf("it was reached by %s, %v", query, header)
	}
	expect(t, model, "session.update")
	send(t, model, `{"type":"rate_limits.updated"}`)
	expect(t, client, "rate_limits.updated")
	_ = model.NetConn().Close() // without a word
	model = rtctest.Take(t, h.model.conns, "a third session")
	send(t, client, `{"type":"input_audio_buffer.commit"}`)
	for range 2 { // those that the first one has not answered
		expect(t, model, "session.update")
	}
	expect(t, model, "input_audio_buffer.commit")
	hangUp(client, model)

	b := rtctest.New(t, rtctest.Label)
	_, answer := post(t, h.desk(), "application/sdp", b.Offer())
	b.Accept(answer)
	model = rtctest.Take(t, h.model.conns, "model")
	settle(t, model)
	rtctest.Event(t, b.Messages, events.TypeSessionCreated)
	send(t, model, `{"type":"response.created","response":{"id":"r1","status":"in_progress","output":[],"metadata":null}}`)
	rtctest.Event(t, b.Messages, events.TypeCreated)
	_ = model.NetConn().Close()
	if done := rtctest.Event(t, b.Messages, events.TypeDone); done.Get("response.status").String() != "incomplete" {
		t.Errorf("it ends with %s", done)
	}
	model = rtctest.Take(t, h.model.conns, "another session")
	sound := "" // set by one of the first updates: those that the old session had not answered come one by one
	for sound == "" {
		sound = gjson.Get(expect(t, model, "session.update"), "session.audio.output.format").Raw
	}
	send(t, model, `{"type":"rate_limits.updated"}`)
	rtctest.Event(t, b.Messages, "rate_limits.updated")
	_ = model.Close()
}

// A provider that answers with an error of its own for a while is asked again until it has another session.
func TestProviderInTrouble(t *testing.T) {
	h := newHouse(t)
	client, model := h.call("")
	for n, status := range []int32{
		http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusTooManyRequests,
	} {
		h.model.gone.Store(status)
		before := h.model.turned.Load()
		if n == 0 {
			_ = model.NetConn().Close()
		}
		rtctest.Eventually(t, fmt.Sprint("a try answered with ", status), func() bool { return h.model.turned.Load() > before })
	}
	h.model.gone.Store(0)
	model = rtctest.Take(t, h.model.conns, "another session")
	expect(t, model, "session.update")
	send(t, model, `{"type":"rate_limits.updated"}`)
	expect(t, client, "rate_limits.updated")
	hangUp(client, model)
}

// A model that sends nothing is replaced long before the client gives up.
func TestBlackHole(t *testing.T) {
	h := newHouse(t)
	client, model := h.call("")
	ours := h.modelSocket()
	if ours.pingInterval != modelPing || ours.idleTimeout != modelIdle || modelIdle > 15*time.Second {
		t.Errorf("it pings every %v and waits %v", ours.pingInterval, ours.idleTimeout)
	}
	_ = client.Close()
	_ = model.Close()
}

// modelSocket is the socket of the one call's model.
func (h *house) modelSocket() *socket {
	h.t.Helper()
	h.front.live.mu.Lock()
	defer h.front.live.mu.Unlock()
	for _, c := range h.front.live.calls {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.legs.model.leg.(*socket)
	}
	h.t.Fatal("no call")
	return nil
}

// offer lets a session of the simulated model announce its end. It is offered until the newest session has taken it.
func offer(walls chan<- time.Duration, left time.Duration) {
	select {
	case walls <- left:
	default:
	}
}

// A call over several walls of the simulated model, which announces them: the model knows afterwards what was said
// before, each request has one output and is asked once, and the client sees one session without an error.
func TestWalls(t *testing.T) {
	rtctest.NoLeaks(t)
	router := &listener{on: func(v handoff.Voice, e handoff.VoiceEvent) {
		if r, ok := e.(handoff.FunctionCall); ok {
			v.Say(handoff.Utterance{ID: "a" + r.CallID[5:9], CallID: r.CallID, Floor: handoff.FloorAsk,
				Text: `{"status":"started","server":"bigpc","say":"It has started on bigpc."}`})
		}
	}}
	walls := make(chan time.Duration)
	host := simulates(t, simulator.Config{Walls: walls, Hurry: 20})
	front := runs(t, Config{ModelURL: "ws://" + host + "/v1/realtime", Model: "simulator", Router: router, Tools: ours})
	client := connects(t, serves(t, front.ServeWebSocket))
	expect(t, client, "session.created")
	send(t, client, `{"type":"session.update","session":{"type":"realtime","output_modalities":["text"]}}`)
	expect(t, client, "session.updated")
	running, ids := map[string]bool{}, map[string]bool{}
	reads := func(text string) {
		for _, event := range until(t, client, text) {
			switch r := gjson.Get(event, "response.id").String(); gjson.Get(event, "type").String() {
			case events.TypeSessionCreated:
				t.Errorf("the client saw %s", event)
			case events.TypeCreated:
				running[r] = true
			case events.TypeDone:
				if !running[r] {
					t.Errorf("%s ends", r)
				}
				delete(running, r)
			case events.TypeItemAdded:
				if id := gjson.Get(event, "item.id").String(); ids[id] {
					t.Errorf("%s comes twice", id)
				} else {
					ids[id] = true
				}
			}
		}
	}
	renewals := func() (n int) {
		front.live.mu.Lock()
		defer front.live.mu.Unlock()
		for _, c := range front.live.calls {
			c.mu.Lock()
			n += c.counts.renewals
			c.mu.Unlock()
		}
		return n
	}
	writes(t, client, "on bigpc, run the tests")
	reads("started")
	for wall := 1; wall <= 3; wall++ {
		before := renewals()
		rtctest.Eventually(t, fmt.Sprintf("wall %d", wall), func() bool { offer(walls, wallLead); return renewals() > before })
		writes(t, client, "fix it") // no machine is named: the model remembers which it was
		reads("started")
	}
	if len(running) > 0 {
		t.Errorf("without an end: %v", running)
	}
	requests := 0
	for _, e := range router.heard() {
		if r, ok := e.(handoff.FunctionCall); ok {
			requests++
			if server := gjson.Get(r.Arguments, "server").String(); r.Tool != "codex" || server != "bigpc" {
				t.Errorf("asked for %s %s", r.Tool, r.Arguments)
			}
		}
	}
	if requests != 4 {
		t.Errorf("%d requests", requests)
	}
}
