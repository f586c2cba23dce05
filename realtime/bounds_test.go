package realtime

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/rtc/rtctest"
)

// tooMuch writes an event over the limit. Its socket may be closed before all of it is written.
func tooMuch(far *websocket.Conn) {
	_ = far.WriteMessage(websocket.TextMessage, []byte(`{"type":"x","a":"`+strings.Repeat("A", maxFrame+4<<20)+`"}`))
}

// reading keeps reading a connection, so that pings are answered while a busy machine writes too much. It returns
// channels of the events and of the end.
func reading(far *websocket.Conn) (events chan string, end chan error) {
	events, end = make(chan string, 16), make(chan error, 1)
	_ = far.SetReadDeadline(time.Time{})
	go func() {
		for {
			_, event, err := far.ReadMessage()
			if err != nil {
				end <- err
				return
			}
			events <- string(event)
		}
	}()
	return events, end
}

// A frame over the limit ends its socket with 1009, also while its client still writes.
func TestFrameOverTheLimit(t *testing.T) {
	h := newHouse(t)
	for range 3 {
		client, model := h.call("")
		ended := h.endOf()
		_, gone := reading(model)
		tooMuch(client) // who never reads before it has written all gets the close frame all the same
		expectClose(t, client, websocket.CloseMessageTooBig)
		if cause := take(t, ended, "end"); cause == nil || handoff.AsError(cause).Code != handoff.CodeTooLarge {
			t.Errorf("ended with %v", cause)
		}
		if err := rtctest.Take(t, gone, "end of the model's"); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
			t.Errorf("the model's ended with %v", err)
		}
	}
}

// A frame of the model ends its session, for a client on any transport, and another session takes its place.
func TestModelFrameOverTheLimit(t *testing.T) {
	h := newHouse(t)
	client, model := h.call("")
	tooMuch(model)
	expectClose(t, model, websocket.CloseMessageTooBig)
	model = rtctest.Take(t, h.model.conns, "another session")
	send(t, model, `{"type":"rate_limits.updated"}`)
	expect(t, client, "rate_limits.updated")
	hangUp(client, model)

	b := rtctest.New(t, rtctest.Label)
	_, answer := post(t, h.desk(), "application/sdp", b.Offer())
	b.Accept(answer)
	model = rtctest.Take(t, h.model.conns, "model")
	settle(t, model)
	rtctest.Event(t, b.Messages, events.TypeSessionCreated)
	tooMuch(model)
	expectClose(t, model, websocket.CloseMessageTooBig)
	_ = model.Close()
	model = rtctest.Take(t, h.model.conns, "another session")
	send(t, model, `{"type":"rate_limits.updated"}`)
	rtctest.Event(t, b.Messages, "rate_limits.updated")
	_ = model.Close()
}

// A frame of a socket beside the client ends only that socket.
func TestFrameOverTheLimitBesideAClient(t *testing.T) {
	h := newHouse(t)
	client, model := h.call("")
	other := h.besideIt(h.front.Calls(someone)[0].ID)
	expect(t, other, events.TypeSessionCreated)
	reading(client)
	up, _ := reading(model)
	tooMuch(other)
	expectClose(t, other, websocket.CloseMessageTooBig)
	send(t, client, `{"type":"input_audio_buffer.clear"}`)
	if got := rtctest.Take(t, up, "event at the model"); !strings.Contains(got, "input_audio_buffer.clear") {
		t.Errorf("the model got %s", got)
	}
}

// A model that takes the connection and sends nothing ends the call after beginLimit.
func TestModelThatHangs(t *testing.T) {
	rtctest.NoLeaks(t)
	front := runs(t, Config{ModelURL: "ws://" + listenLocal(t).Addr().String(), Router: &listener{}})
	front.provider.dialTimeout = 50 * time.Millisecond
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	_, fault := front.provider.dialModel(r.Context(), "", r.Header)
	if fault == nil || fault.Code != handoff.CodeVoiceUnreachable {
		t.Errorf("%v, %d", fault, w.Code)
	}
}

func TestModelThatNeverBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		began := time.Now()
		if err := <-s.ended; err == nil || handoff.AsError(err).Code != handoff.CodeVoiceGone ||
			time.Since(began) != beginLimit {
			t.Errorf("ended with %v after %v", err, time.Since(began))
		}
	})
}

// The events that wait in a call are bounded in bytes, and a client whose event is refused gets an error.
func TestWaitingBytes(t *testing.T) {
	large := `"` + strings.Repeat("A", 6<<20) + `"`
	for kind, event := range map[string]string{
		"session updates": `{"type":"session.update","event_id":"e9","session":{"type":"realtime","instructions":` + large +
			`}}`,
		"asks": `{"type":"response.create","event_id":"e9","response":{"instructions":` + large + `}}`,
	} {
		t.Run(kind, func(t *testing.T) {
			play(t, func(s *stage) {
				s.fromModel(began("r0", "")) // asks wait for its end
				s.fromClient(event, event)
				s.model.sent()
				s.client.sent()
				s.fromClient(event)
				s.wantSent(s.model, "")
				got := s.wantSent(s.client, "error")[0]
				if gjson.Get(got, "error.code").String() != "rate_limit_exceeded" ||
					gjson.Get(got, "error.event_id").String() != "e9" {
					t.Errorf("refused with %s", got)
				}
				s.fromClient(`{"type":"input_audio_buffer.clear"}`)
				s.wantSent(s.model, "input_audio_buffer.clear")
			})
		})
	}
}

// Words of the caller that the router does not take are dropped; only requests that it does not take end the call.
func TestReportsAreBoundedInBytes(t *testing.T) {
	c := newCall(someone, ours, "rtc_test", newWire(), newWire(), nopLog())
	large := strings.Repeat("A", 1<<20)
	for range 20 {
		c.report(handoff.Heard{Text: large})
	}
	if c.ended || c.counts.unheard == 0 || len(c.pending) > eventBytes>>20 {
		t.Errorf("ended is %t, %d unheard, %d wait", c.ended, c.counts.unheard, len(c.pending))
	}
	for range 4 {
		c.report(handoff.FunctionCall{Arguments: large})
	}
	if c.ended {
		t.Error("words ended the call")
	}
	c.report(handoff.FunctionCall{Arguments: large})
	if !c.ended || c.cause.Code != handoff.CodeOverloaded {
		t.Errorf("ended is %t: %v", c.ended, c.cause)
	}
}

// The filter must hide requests and utterances for ever, and its bound limits what a call remembers of them: a call
// that goes on and on ends before it takes more than some megabytes.
func TestRequestsAreBounded(t *testing.T) {
	const most = 20_000
	for name, step := range map[string]func(c *Call, n int){
		"answered": func(c *Call, n int) {
			c.fromModel([]byte(done("r", "", events.StatusCompleted,
				callItem(fmt.Sprint("i", n), fmt.Sprint("k", n), "codex", events.StatusCompleted))))
			c.saying.say(handoff.Utterance{ID: fmt.Sprint("u", n), CallID: fmt.Sprint("k", n), Text: "It runs."})
		},
		"without an answer": func(c *Call, n int) {
			c.fromModel([]byte(done("r", "", events.StatusCompleted,
				callItem("", fmt.Sprint("k", n), "codex", events.StatusCompleted))))
		},
		"taken back": func(c *Call, n int) {
			id := fmt.Sprint("u", n)
			c.saying.say(handoff.Utterance{ID: id, Floor: handoff.FloorAsk, Text: "All tests pass."})
			c.saying.say(handoff.Utterance{ID: id})
			if u := c.saying.utterances[id]; u.Text != "" {
				t.Error("the words of what was taken back are kept")
			}
			c.fromModel([]byte(`{"type":"rate_limits.updated"}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, model := newWire(), newWire()
			c := newCall(someone, ours, "rtc_long", client, model, nopLog())
			c.fromModel([]byte(freshSession))
			n := 0
			for ; n < most && !c.ended; n++ {
				step(c, n)
				c.pending = nil
				client.sent()
				model.sent()
			}
			if !c.ended || n < 1000 || c.cause.Code != handoff.CodeVoiceGone {
				t.Errorf("after %d: %d requests and %d utterances are kept, ended is %t: %v", n, len(c.saying.requests),
					len(c.saying.utterances), c.ended, c.cause)
			}
		})
	}
}

// Ids longer than MaxID are not kept: an event with one counts as unreadable.
func TestLongIDs(t *testing.T) {
	long := strings.Repeat("i", events.MaxID+1)
	play(t, func(s *stage) {
		s.fromModel(began("r1", ""))
		s.wantSent(s.client, "response.created")
		for _, event := range []string{
			began(long, ""), done(long, "", events.StatusCompleted),
			itemDone("r1", callItem(long, "c1", "codex", events.StatusCompleted)),
			itemDone("r1", callItem("k1", long, "codex", events.StatusCompleted)),
			itemAdded(callItem(long, "c1", "codex", "")), itemDone(long, callItem("k1", "c1", "weather", "")),
			`{"type":"conversation.item.added","previous_item_id":"` + long + `","item":{"id":"k1","type":"message"}}`,
			done("r1", "", events.StatusCompleted, callItem("k1", long, "codex", events.StatusCompleted)),
			`{"type":"response.output_text.delta","response_id":"r1","item_id":"` + long + `","delta":"a"}`,
			`{"type":"conversation.item.added","item":{"id":["` + long + `"],"type":"message"}}`, // read as its text
			`{"type":"conversation.item.added","item":{"id":` + strings.Repeat("1", events.MaxID+1) + `,"type":"message"}}`,
		} {
			s.fromModel(event)
			if s.wantSent(s.client, ""); len(s.call.saying.requests) > 0 || s.call.filter.Full() {
				t.Fatalf("kept of %s", event)
			}
		}
		if s.call.counts.unreadable != 11 {
			t.Errorf("%d were counted", s.call.counts.unreadable)
		}
		s.fromModel(done("r1", "", events.StatusCompleted, callItem("k1", "c1", "weather", events.StatusCompleted)))
		s.wantSent(s.client, "response.done")
	})
}
