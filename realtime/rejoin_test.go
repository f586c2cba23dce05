package realtime

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/rtc/rtctest"
)

// comesBack is the query of a client that rejoins.
const comesBack = "?rejoin=1"

// heldHouse is a house whose calls wait for their clients, longer than any test.
func heldHouse(t *testing.T) *house { return newHouseWith(t, func(c *Config) { c.Hold = time.Hour }) }

func (h *house) awaitHeld(want bool) string {
	h.t.Helper()
	id := ""
	rtctest.Eventually(h.t, "the call to wait or to go on", func() bool {
		all := h.front.Calls(someone)
		if len(all) == 1 && all[0].Held == want {
			id = all[0].ID
		}
		return id != ""
	})
	return id
}

// dial opens a socket that may be refused.
func (h *house) dial(query string) (*websocket.Conn, *http.Response) {
	h.t.Helper()
	c, response, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(h.edge.URL, "http")+"/v1/realtime"+query, nil)
	if response == nil {
		h.t.Fatal(err)
	}
	if err == nil {
		h.t.Cleanup(func() { _ = c.Close() })
	}
	return c, response
}

// closes says goodbye with a code.
func closes(t *testing.T, c *websocket.Conn, code int) {
	t.Helper()
	if err := c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""),
		time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
}

// The call of a client that did not say that it comes back ends with the client, however it goes.
func TestStockClientIsNotHeld(t *testing.T) {
	h := heldHouse(t)
	client, model := h.call("")
	_ = client.NetConn().Close()
	expectClose(t, model, websocket.CloseNormalClosure)
}

// Nor can another leg take its place: the call could not wait for that client either.
func TestStockClientIsNotReplaced(t *testing.T) {
	h := heldHouse(t)
	desk := h.desk()
	client, socketModel := h.call("")
	socket := h.awaitHeld(false)
	if _, response := h.dial(comesBack + "&call_id=" + socket); response.StatusCode != http.StatusBadRequest {
		t.Errorf("by WebSocket: %d", response.StatusCode)
	}
	send(t, client, `{"type":"input_audio_buffer.clear"}`)
	expect(t, socketModel, "input_audio_buffer.clear")

	b, id := h.browse(desk)
	model := h.takeModel()
	settle(t, model)
	rtctest.Event(t, b.Messages, events.TypeSessionCreated)
	for range 3 {
		expect(t, model, events.TypeSessionUpdate)
	}
	if response, body := post(t, desk+"?call_id="+id, "application/sdp",
		rtctest.GoodOffer); response.StatusCode != http.StatusBadRequest {
		t.Errorf("by WebRTC: %d %s", response.StatusCode, body)
	}
	b.Speak(1, 2)
	expect(t, model, events.TypeAppend)
}

// Before the model has begun its session there is nothing to come back to.
func TestRejoinedBeforeItsSession(t *testing.T) {
	h := heldHouse(t)
	thinks := make(chan struct{})
	h.model.think = func() { <-thinks }
	client, _ := h.dial(comesBack)
	id := h.awaitHeld(false)
	again, _ := h.dial(comesBack + "&call_id=" + id)
	_ = again.SetReadDeadline(time.Now().Add(patience))
	if _, event, err := again.ReadMessage(); !websocket.IsCloseError(err, 4404) {
		t.Errorf("it is told %s, %v", event, err)
	}
	close(thinks)
	expect(t, client, events.TypeSessionCreated) // it is the client still
}

// How a socket ends reports whether its client hung up.
func TestWhichSocketsAreHeld(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *websocket.Conn){
		"without a frame": func(_ *testing.T, c *websocket.Conn) { _ = c.NetConn().Close() },
		"1001":            func(t *testing.T, c *websocket.Conn) { closes(t, c, websocket.CloseGoingAway) },
	} {
		t.Run(name, func(t *testing.T) {
			h := heldHouse(t)
			client, _ := h.call(comesBack)
			end(t, client)
			h.awaitHeld(true)
		})
	}
	for name, code := range map[string]int{"1000": websocket.CloseNormalClosure, "1005": websocket.CloseNoStatusReceived,
		"4000": 4000} {
		t.Run(name, func(t *testing.T) {
			h := heldHouse(t)
			client, model := h.call(comesBack)
			ended := h.endOf()
			closes(t, client, code)
			if cause := take(t, ended, "end"); cause != nil {
				t.Errorf("ended with %v", cause)
			}
			expectClose(t, model, websocket.CloseNormalClosure)
		})
	}
}

// A socket rejoins its call: the same session of the same model, and the same admission.
func TestSocketRejoins(t *testing.T) {
	h := heldHouse(t)
	h.grant.Limits.Calls = 1
	client, model := h.call(comesBack)
	for range 2 {
		send(t, model, `{"type":"session.updated","session":{}}`)
	}
	send(t, client, `{"type":"session.update","session":{"type":"realtime","instructions":"Be brief."}}`)
	up := expect(t, model, events.TypeSessionUpdate)
	send(t, model, `{"type":"session.updated","session":`+gjson.Get(up, "session").Raw+`}`)
	expect(t, client, events.TypeSessionUpdated)
	_ = client.NetConn().Close()
	id := h.awaitHeld(true)

	again, response := h.dial("?rejoin=1&call_id=" + id)
	if at := response.Header.Get("Location"); at != callPath+id {
		t.Errorf("it is at %q", at)
	}
	if e := expect(t, again, events.TypeSessionCreated); gjson.Get(e, "session.instructions").String() != "Be brief." ||
		gjson.Get(e, "session.tools.#").Int() != 0 {
		t.Errorf("it begins with %s", e)
	}
	if e := expect(t, model, "conversation.item.create"); !strings.Contains(e, "connection was lost") {
		t.Errorf("the model is told %s", e)
	}
	h.awaitHeld(false)
	send(t, again, `{"type":"input_audio_buffer.clear"}`)
	expect(t, model, "input_audio_buffer.clear")
	closes(t, again, websocket.CloseNormalClosure) // it is the client now
	expectClose(t, model, websocket.CloseNormalClosure)
	rtctest.Eventually(t, "the count", func() bool {
		n := h.numbers()
		return n["call_holds_total"] == 1 && n["call_rejoins_total"] == 1
	})
}

// A client that rejoins before its loss was noticed replaces the socket that seems to be connected.
func TestSocketRejoinsTooSoon(t *testing.T) {
	h := heldHouse(t)
	client, model := h.call(comesBack)
	id := h.awaitHeld(false)
	again, _ := h.dial("?rejoin=1&call_id=" + id)
	expect(t, again, events.TypeSessionCreated)
	expectClose(t, client, websocket.CloseNormalClosure)
	send(t, again, `{"type":"input_audio_buffer.clear"}`)
	expect(t, model, "conversation.item.create")
	expect(t, model, "input_audio_buffer.clear")
}

// A call can be rejoined only by callers who may join it, while it is open, and over the transport with which it began.
func TestWhoMayRejoin(t *testing.T) {
	h := heldHouse(t)
	desk := h.desk()
	client, _ := h.call(comesBack)
	_ = client.NetConn().Close()
	id := h.awaitHeld(true)
	refused := func(name string, grant handoff.Grant, query string, status int) {
		t.Helper()
		h.grant = grant
		if _, response := h.dial(query); response.StatusCode != status {
			t.Errorf("%s: %d", name, response.StatusCode)
		}
		h.grant = someone
	}
	refused("another caller", handoff.Grant{Caller: handoff.Caller{Principal: "another"}}, "?rejoin=1&call_id="+id,
		http.StatusNotFound)
	refused("another key of the caller", handoff.Grant{Caller: someone.Caller, Key: "other"}, "?rejoin=1&call_id="+id,
		http.StatusNotFound)
	refused("a client secret", handoff.Grant{Caller: someone.Caller, Secret: true}, "?rejoin=1&call_id="+id,
		http.StatusNotFound)
	refused("no such call", someone, "?rejoin=1&call_id=rtc_0", http.StatusNotFound)
	if response, body := post(t, desk+"?call_id="+id, "application/sdp",
		rtctest.GoodOffer); response.StatusCode != http.StatusBadRequest ||
		gjson.Get(body, "error.param").String() != "call_id" {
		t.Errorf("by WebRTC: %d %s", response.StatusCode, body)
	}
	if response, body := post(t, desk+"?call_id=rtc_0", "application/sdp",
		rtctest.GoodOffer); response.StatusCode != http.StatusNotFound {
		t.Errorf("no such call: %d %s", response.StatusCode, body)
	}
	h.awaitHeld(true)
}

// A client that does not rejoin begins a new call: its held call ends, and no longer counts in the quota.
func TestHeldCallGivesWay(t *testing.T) {
	h := heldHouse(t)
	h.grant.Limits.Calls = 1
	client, model := h.call(comesBack)
	ended := h.endOf()
	_ = client.NetConn().Close()
	id := h.awaitHeld(true)
	h.call("")
	if cause := take(t, ended, "end"); cause != nil {
		t.Errorf("ended with %v", cause)
	}
	expectClose(t, model, websocket.CloseNormalClosure)
	if all := h.front.Calls(someone); len(all) != 1 || all[0].ID == id {
		t.Errorf("there are %v", all)
	}
}

// The call of a caller without a name is not held: nobody could tell whose it is.
func TestNamelessCallIsNotHeld(t *testing.T) {
	h := heldHouse(t)
	h.grant.Caller = handoff.NamelessCaller("owner", "x")
	client, model := h.call(comesBack)
	_ = client.NetConn().Close()
	expectClose(t, model, websocket.CloseNormalClosure)
}

// browse connects a browser to a call that begins, or to one that it rejoins.
func (h *house) browse(url string) (b *rtctest.Browser, id string) {
	h.t.Helper()
	b = rtctest.New(h.t, rtctest.Label)
	response, answer := post(h.t, url, "application/sdp", b.Offer())
	if response.StatusCode != http.StatusCreated {
		h.t.Fatalf("%d %s", response.StatusCode, answer)
	}
	b.Accept(answer)
	return b, strings.TrimPrefix(response.Header.Get("Location"), "/v1/realtime/calls/")
}

// wantLowers checks whether the client of a call counts as one that lowers the sound.
func (h *house) wantLowers(id string, want bool) {
	h.t.Helper()
	h.front.live.mu.Lock()
	c := h.front.live.calls[id]
	h.front.live.mu.Unlock()
	c.do(func() {
		if got := c.hearing.yielding.lowers; got != want {
			h.t.Errorf("it lowers the sound: %t", got)
		}
	})
}

// A browser that lost its network comes back with a new offer: it hears again, and nothing was said meanwhile.
func TestBrowserRejoins(t *testing.T) {
	h := newHouseWith(t, func(c *Config) {
		c.Hold = time.Hour
		c.Media.Disconnected, c.Media.Failed = 2*time.Second, 2*time.Second // its silence is noticed, not a busy machine's
	})
	desk := h.desk()
	b, id := h.browse(desk + comesBack + "&lowers=1")
	model := h.takeModel()
	settle(t, model)
	rtctest.Event(t, b.Messages, events.TypeSessionCreated)
	for range 3 {
		expect(t, model, events.TypeSessionUpdate)
	}
	h.wantLowers(id, true)
	b.Unplug()
	h.awaitHeld(true)
	h.router.mu.Lock()
	voice := h.router.voice
	h.router.mu.Unlock()
	voice.Say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})

	again, same := h.browse(desk + "?call_id=" + id)
	if same != id {
		t.Errorf("it came back to %s", same)
	}
	h.wantLowers(id, false)
	if up := expect(t, model, events.TypeSessionUpdate); !gjson.Get(up, "session.audio.output.format").Exists() {
		t.Errorf("the formats: %s", up)
	}
	settle(t, model)
	rtctest.Event(t, again.Messages, events.TypeSessionCreated)
	h.awaitHeld(false)
	for _, want := range []string{"connection was lost", "done"} {
		if e := expect(t, model, "conversation.item.create"); !strings.Contains(e, want) {
			t.Errorf("the model is told %s", e)
		}
	}
	tag := tagIn(expect(t, model, "response.create"))
	send(t, model, began("r", tag))
	send(t, model, rtctest.Sound("r", "i", 60_000, 7))
	rtctest.Event(t, again.Messages, "output_audio_buffer.started")
	if p := rtctest.Take(t, again.Packets, "a frame"); p.Payload[0] != 7 {
		t.Errorf("it hears %x", p.Payload[0])
	}
	again.Speak(1, 2)
	expect(t, model, events.TypeAppend)
}

// A browser that closes its connection has hung up, as stock clients do, unless it said that it rejoins.
func TestBrowserThatCloses(t *testing.T) {
	h := heldHouse(t)
	desk := h.desk()
	b, _ := h.browse(desk)
	model := rtctest.Take(t, h.model.conns, "model")
	settle(t, model)
	rtctest.Event(t, b.Messages, events.TypeSessionCreated)
	b.HangUp()
	expectClose(t, model, websocket.CloseNormalClosure)

	b, id := h.browse(desk + comesBack)
	model = rtctest.Take(t, h.model.conns, "model")
	defer model.Close()
	settle(t, model)
	rtctest.Event(t, b.Messages, events.TypeSessionCreated)
	b.HangUp()
	h.awaitHeld(true)
	again, _ := h.browse(desk + "?call_id=" + id)
	rtctest.Event(t, again.Messages, events.TypeSessionCreated)
	h.awaitHeld(false)
	if err := h.front.Hangup(someone, id); err != nil {
		t.Error(err)
	}
	rtctest.Gone(t, again.Over, "the channel")
}

// A browser cannot read the headers of an upgrade: if it asks for our events, the first one names its call.
func TestSocketIsToldItsCall(t *testing.T) {
	h := heldHouse(t)
	client, response := h.dial(comesBack + "&events=handoff")
	model := <-h.model.conns
	if e := expect(t, client, events.TypeCall); callPath+gjson.Get(e, "call_id").String() != response.Header.Get("Location") {
		t.Errorf("told %s", e)
	}
	expect(t, client, events.TypeSessionCreated)
	closes(t, client, websocket.CloseNormalClosure)
	_ = model.Close()
}

// A browser whose network changed keeps its connection over another path: the call is not held, the model is told
// nothing, and events and voice go on. If the connection has ended the browser is told so, and comes back with a new
// one.
func TestBrowserTakesAnotherWay(t *testing.T) {
	h := heldHouse(t)
	desk := h.desk()
	b := rtctest.New(t, rtctest.Label)
	response, answer := post(t, desk+comesBack, "application/sdp", b.Offer())
	id := strings.TrimPrefix(response.Header.Get("Location"), callPath)
	b.Accept(answer)
	model := h.takeModel()
	settle(t, model)
	rtctest.Event(t, b.Messages, events.TypeSessionCreated)
	for range 3 {
		expect(t, model, events.TypeSessionUpdate)
	}
	response, again := post(t, desk+"?restart=1&call_id="+id, "application/sdp", b.Reoffer())
	if response.StatusCode != http.StatusCreated || response.Header.Get("Location") != callPath+id {
		t.Fatalf("%d %s", response.StatusCode, again)
	}
	if ufrag(answer) == ufrag(again) || ufrag(again) == "" {
		t.Error("it is the same way")
	}
	b.Accept(again)
	b.Send(`{"type":"input_audio_buffer.clear"}`)
	expect(t, model, "input_audio_buffer.clear")
	send(t, model, `{"type":"rate_limits.updated"}`)
	rtctest.Event(t, b.Messages, "rate_limits.updated")
	if n := h.numbers(); n["call_holds_total"] != 0 {
		t.Errorf("it was held %v times", n["call_holds_total"])
	}
	b.HangUp()
	h.awaitHeld(true)
	if response, body := post(t, desk+"?restart=1&call_id="+id, "application/sdp",
		rtctest.GoodOffer); response.StatusCode != http.StatusConflict {
		t.Errorf("after its end: %d %s", response.StatusCode, body)
	}
}

// ufrag returns the ICE user name in a session description.
func ufrag(sdp string) string {
	_, rest, _ := strings.Cut(sdp, "a=ice-ufrag:")
	name, _, _ := strings.Cut(rest, "\r\n")
	return name
}
