package realtime

import (
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/rtc/rtctest"
)

// besideIt opens one more socket on a call.
func (h *house) besideIt(id string) *websocket.Conn {
	h.t.Helper()
	c, response, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(h.edge.URL,
		"http")+"/v1/realtime?call_id="+id, nil)
	if err != nil {
		h.t.Fatalf("%v (%v)", err, response)
	}
	h.t.Cleanup(func() { _ = c.Close() })
	return c
}

// A socket beside the client sees what the client sees, nothing of ours, and acts as the client does.
func TestSocketBesideAClient(t *testing.T) {
	h := newHouse(t)
	client, model := h.call("")
	id := h.front.Calls(someone)[0].ID
	other := h.besideIt(id)
	created := expect(t, other, events.TypeSessionCreated)
	if s := gjson.Get(created, "session"); s.Get("id").String() != "sess_1" ||
		s.Get("instructions").String() != "be nice" || s.Get("tools.#").Int() != 0 {
		t.Errorf("it begins with %s", s)
	}
	it := callItem("item_1", "call_1", "codex", "completed")
	for _, e := range []string{`{"type":"session.updated","session":{}}`, `{"type":"session.updated","session":{}}`,
		began("r1", ""), itemDone("r1", it), done("r1", "", "completed", it)} {
		send(t, model, e)
	}
	for _, far := range []*websocket.Conn{client, other} {
		expect(t, far, events.TypeCreated)
		if e := expect(t, far, events.TypeDone); gjson.Get(e, "response.output.#").Int() != 0 {
			t.Errorf("our call is seen: %s", e)
		}
	}
	send(t, other, `{"type":"session.update","event_id":"mine","session":{"type":"realtime","instructions":"Be brief.",`+
		`"tools":[{"type":"function","name":"theirs"}]}}`)
	up := expect(t, model, events.TypeSessionUpdate)
	if gjson.Get(up, "session.tools.#").Int() != int64(1+len(ourTools)) ||
		gjson.Get(up, "session.instructions").String() != "Be brief." {
		t.Errorf("the model gets %s", up)
	}
	send(t, model, `{"type":"session.updated","session":`+gjson.Get(up, "session").Raw+`}`)
	for _, far := range []*websocket.Conn{client, other} {
		if e := expect(t, far, events.TypeSessionUpdated); gjson.Get(e, "session.tools.#").Int() != 1 {
			t.Errorf("our tools are seen: %s", e)
		}
	}
	h.wantNumbers(t, map[string]float64{"call_sockets_open": 1, "call_sockets_total": 1, "call_sockets_slow_total": 0})
	_ = other.Close() // the call goes on
	rtctest.Eventually(t, "the socket to be counted out", func() bool { return h.numbers()["call_sockets_open"] == 0 })
	late := h.besideIt(id)
	if e := expect(t, late, events.TypeSessionCreated); gjson.Get(e, "session.instructions").String() != "Be brief." ||
		gjson.Get(e, "session.tools.#").Int() != 1 {
		t.Errorf("who comes late begins with %s", e)
	}
	send(t, client, `{"type":"input_audio_buffer.clear"}`)
	expect(t, model, "input_audio_buffer.clear")
	_ = client.Close()
	expectClose(t, late, websocket.CloseNormalClosure)
}

// Only callers who may end a call may join it, and only maxBeside sockets.
func TestWhoMayStandBeside(t *testing.T) {
	h := newHouse(t)
	h.call("")
	id := h.front.Calls(someone)[0].ID
	for range maxBeside {
		h.besideIt(id)
	}
	ask := func(id string) (int, handoff.Problem) {
		response, err := upgrade(t, h.edge.URL+"/v1/realtime?call_id="+id)
		return answered(t, response, err)
	}
	if status, p := ask(id); status != 429 || p.Param == nil || *p.Param != "call_id" {
		t.Errorf("one more: %d %+v", status, p)
	}
	key := h.grant.Key
	h.grant.Key = "another of the same principal"
	if status, p := ask(id); status != 404 {
		t.Errorf("with another key: %d %+v", status, p)
	}
	h.grant.Key = key
	h.grant.Caller.Principal = "other"
	for _, id := range []string{id, "rtc_none", ""} {
		if status, p := ask(id); status != 404 || p.Code != handoff.CodeNotFound || p.Param == nil || *p.Param != "call_id" {
			t.Errorf("%q of another: %d %+v", id, status, p)
		}
	}
}

// The error about an event goes to the socket that sent it: some clients end with any error that they get.
func TestFaultsAreToldToWhoMadeThem(t *testing.T) {
	h := newHouse(t)
	client, _ := h.call("")
	other := h.besideIt(h.front.Calls(someone)[0].ID)
	expect(t, other, events.TypeSessionCreated)
	for name, from := range map[string]struct{ maker, spared *websocket.Conn }{"the socket beside": {other, client},
		"the client": {client, other}} {
		send(t, from.maker, `{"type":"session.update","event_id":"`+name+`","session":{"type":"transcription"}}`)
		if e := expect(t, from.maker, events.TypeError); gjson.Get(e, "error.event_id").String() != name {
			t.Errorf("%s is told %s", name, e)
		}
	}
	// What each made is answered in order: nothing else came before it.
	for _, far := range []*websocket.Conn{client, other} {
		send(t, far, `7`)
		if e := expect(t, far, events.TypeError); gjson.Get(e, "error.code").String() != "invalid_json" {
			t.Errorf("it was told of another's fault: %s", e)
		}
	}
}

// A backend beside a browser stops the sound that the browser's leg plays; and it gets none of the model's answers to
// the leg's own truncations.
func TestSocketBesideABrowserSilencesIt(t *testing.T) {
	playBrowser(t, func(s *stage) {
		other := newWire()
		s.call.do(func() { s.call.legs.welcome(other) })
		s.client.sent()
		other.sent()
		s.feed(func(event []byte) { s.call.do(func() { s.call.fromBeside(other, event) }) },
			[]string{`{"type":"output_audio_buffer.clear","event_id":"mine"}`})
		s.wantSent(s.model, "")
		s.wantSent(s.client, "output_audio_buffer.clear")
		s.fromModel(`{"type":"error","error":{"type":"invalid_request_error","code":"item_not_found",` +
			`"event_id":"sb_rtc_cut_1"}}`)
		s.wantSent(s.client, "error")
		s.wantSent(other, "")
	})
}

// Beside a call that the provider carries, the provider stops the sound.
func TestSocketBesideAnAttachedCallSilencesIt(t *testing.T) {
	playBrowser(t, func(s *stage) {
		other := newWire()
		s.call.do(func() { s.call.attach(&attached{}); s.call.legs.welcome(other) })
		s.client.sent()
		s.feed(func(event []byte) { s.call.do(func() { s.call.fromBeside(other, event) }) },
			[]string{`{"type":"output_audio_buffer.clear","event_id":"mine"}`})
		s.wantSent(s.model, "output_audio_buffer.clear")
		s.wantSent(s.client, "")
	})
}

// Beside a browser, a backend controls the call, but it can neither set the audio formats nor report what was heard.
func TestSocketBesideABrowser(t *testing.T) {
	h := newHouse(t)
	b := rtctest.New(t, rtctest.Label)
	response, answer := post(t, h.desk(), "application/sdp", b.Offer())
	if response.StatusCode != 201 {
		t.Fatalf("%d %s", response.StatusCode, answer)
	}
	b.Accept(answer)
	model := h.takeModel()
	rtctest.Event(t, b.Messages, events.TypeSessionCreated)
	other := h.besideIt(strings.TrimPrefix(response.Header.Get("Location"), "/v1/realtime/calls/"))
	expect(t, other, events.TypeSessionCreated)
	send(t, other, `{"type":"`+events.TypePlayed+`","response_id":"r1"}`)
	send(t, other, `{"type":"session.update","session":{"type":"realtime","instructions":"Be brief.",`+
		`"audio":{"input":{"format":{"type":"audio/pcm","rate":24000}},"output":{"format":{"type":"audio/pcm",`+
		`"rate":24000},"voice":"cedar"}}}}`)
	for range 5 {
		up := expect(t, model, events.TypeSessionUpdate) // never what it said was played
		if s := gjson.Get(up, "session"); s.Get("instructions").String() == "Be brief." {
			if s.Get("audio.input.format").Exists() || s.Get("audio.output.format").Exists() ||
				s.Get("audio.output.voice").String() != "cedar" {
				t.Errorf("the sound was set: %s", up)
			}
			return
		}
	}
	t.Error("its update never came")
}
