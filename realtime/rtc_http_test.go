package realtime

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// desk is the address at which a house takes offers.
func (h *house) desk() string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.front.ServeCalls(w, r, someone) }))
	h.t.Cleanup(s.Close)
	return s.URL + "/v1/realtime/calls"
}

func post(t *testing.T, url, kind, body string) (*http.Response, string) {
	t.Helper()
	response, err := http.Post(url, kind, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(answer)
}

// form is a multipart body of parts name, content.
func form(t *testing.T, parts ...string) (kind, body string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		if err := w.WriteField(parts[i], parts[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), b.String()
}

// settle confirms the formats that the leg asked for, and what else was updated.
func settle(t *testing.T, model *websocket.Conn) {
	t.Helper()
	for range 3 {
		send(t, model, `{"type":"session.updated","session":{"audio":{"input":{"format":{"type":"audio/pcmu"}},"output":{"format":{"type":"audio/pcmu"}}}}}`)
	}
}

// TestWebRTCCall is one call from the offer to the hang-up, with sound and events both ways.
func TestWebRTCCall(t *testing.T) {
	h := newHouse(t)
	b := newBrowser(t, channelLabel)
	response, answer := post(t, h.desk()+"?model=gpt-mine", "application/sdp", b.offer())
	path, id, _ := strings.Cut(response.Header.Get("Location"), "/calls/")
	if response.StatusCode != 201 || response.Header.Get("Content-Type") != "application/sdp" || path != "/v1/realtime" || !strings.HasPrefix(id, "rtc_") {
		t.Fatalf("%d %v %s", response.StatusCode, response.Header, answer)
	}
	b.accept(answer)
	model := take(t, h.model.conns, "model")
	defer model.Close()
	if q := <-h.model.query; q != "api-version=1&model=gpt-mine" {
		t.Errorf("model was asked for %q", q)
	}
	// The formats and our own two updates come in any order: the call takes from both sides at once.
	formats := 0
	for range 3 {
		if gjson.Get(expect(t, model, events.TypeSessionUpdate), "session.audio.output.format.type").String() == events.PCMU {
			formats++
		}
	}
	settle(t, model)
	if formats != 1 {
		t.Errorf("formats were set %d times", formats)
	}
	event(t, b.messages, events.TypeSessionCreated)

	b.speak(1, 2)
	heard, _ := base64.StdEncoding.DecodeString(gjson.Get(expect(t, model, events.TypeAppend), "audio").String())
	if want := append(bytes.Repeat([]byte{1}, frameBytes), bytes.Repeat([]byte{2}, frameBytes)...); !bytes.Equal(heard, want) {
		t.Errorf("the model heard %d bytes", len(heard))
	}
	send(t, model, began("r", ""))
	send(t, model, strings.Replace(sounds("r", "i", 60_000, 7), `"output_index":0,`, "", 1))
	event(t, b.messages, typeBufferStarted)
	if p := take(t, b.packets, "a frame"); len(p.Payload) != frameBytes || p.Payload[0] != 7 {
		t.Errorf("the browser heard %d bytes", len(p.Payload))
	}
	send(t, model, spokenTo)
	expect(t, model, events.TypeItemTruncate)
	event(t, b.messages, typeBufferCleared)

	if err := h.front.Hangup(handoff.Grant{Caller: handoff.Caller{Principal: "another"}}, id); handoff.AsError(err).Code != handoff.CodeNotFound {
		t.Errorf("another's hang-up: %v", err)
	}
	if err := h.front.Hangup(someone, id); err != nil {
		t.Error(err)
	}
	expectClose(t, model, websocket.CloseNormalClosure)
	gone(t, b.over, "the channel")
}

// hasty is a client that hangs up as soon as it knows its call's id.
type hasty struct {
	*httptest.ResponseRecorder
	front *Front
	err   error
}

func (h *hasty) WriteHeader(status int) {
	_, id, _ := strings.Cut(h.Header().Get("Location"), "/calls/")
	h.err = h.front.Hangup(someone, id)
	h.ResponseRecorder.WriteHeader(status)
}

func TestHangupBeforeTheAnswerIsRead(t *testing.T) {
	h := newHouse(t)
	client := &hasty{ResponseRecorder: httptest.NewRecorder(), front: h.front}
	h.front.ServeCalls(client, httptest.NewRequest("POST", "/v1/realtime/calls", strings.NewReader(goodOffer)), someone)
	if client.Code != 201 || client.err != nil {
		t.Errorf("%d, %v", client.Code, client.err)
	}
	model := take(t, h.model.conns, "model")
	defer model.Close()
	expectClose(t, model, websocket.CloseNormalClosure)
}

// TestSaidOverWebRTC holds that what was asked for is confirmed once its last packet was sent, and not as
// said to the end when the page cleared it.
func TestSaidOverWebRTC(t *testing.T) {
	h := newHouse(t)
	said := make(chan handoff.Said, 2)
	h.router.on = func(v handoff.Voice, e handoff.Event) {
		switch e := e.(type) {
		case handoff.Quiet:
			v.Say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk}) // again and again, and said once
		case handoff.Said:
			said <- e
			v.Say(handoff.Utterance{ID: "m", Text: "more", Floor: handoff.FloorAsk})
		}
	}
	b := newBrowser(t, channelLabel)
	_, answer := post(t, h.desk(), "application/sdp", b.offer())
	b.accept(answer)
	model := take(t, h.model.conns, "model")
	defer model.Close()
	ask := func() string {
		for {
			_ = model.SetReadDeadline(time.Now().Add(patience))
			_, e, err := model.ReadMessage()
			if err != nil {
				t.Fatal(err)
			}
			if events.PeekType(e) == events.TypeSessionUpdate {
				send(t, model, asPCMU)
			}
			if tag := tagIn(string(e)); tag != "" {
				return tag
			}
		}
	}
	speak := func(response, tag string, ms int) {
		send(t, model, began(response, tag))
		send(t, model, sounds(response, "i", ms, 7))
		send(t, model, done(response, tag, "completed"))
	}
	speak("r1", ask(), 300)
	event(t, b.messages, typeBufferStarted)
	event(t, b.messages, typeBufferStopped)
	if s := take(t, said, "confirmation"); s.Cut || s.ID != "n" || s.At.IsZero() {
		t.Errorf("said %+v", s)
	}
	speak("r2", ask(), 60_000)
	event(t, b.messages, typeBufferStarted)
	// Silence kept the browser's buffer warm in between; the first response was 15 frames.
	for n := 15 + 2*aWord/frameTime; n > 0; {
		if p := take(t, b.packets, "a frame"); p.Payload[0] == 7 {
			n--
		}
	}
	b.must(b.channel.SendText(`{"type":"output_audio_buffer.clear"}`))
	if s := take(t, said, "confirmation"); !s.Cut || s.ID != "m" || s.At.IsZero() {
		t.Errorf("said %+v", s)
	}
}

func TestWebRTCCallWithASession(t *testing.T) {
	h := newHouse(t)
	b := newBrowser(t, channelLabel)
	kind, body := form(t, "session", `{"model":"gpt-mine","audio":{"output":{"voice":"cedar"}}}`, "sdp", b.offer(), "more", "ignored")
	response, answer := post(t, h.desk(), kind, body)
	if response.StatusCode != 201 {
		t.Fatalf("%d %s", response.StatusCode, answer)
	}
	b.accept(answer)
	model := take(t, h.model.conns, "model")
	defer model.Close()
	if q := <-h.model.query; q != "api-version=1&model=gpt-mine" {
		t.Errorf("model was asked for %q", q)
	}
	event(t, b.messages, events.TypeSessionCreated)
	settle(t, model)
	for range 4 {
		s := gjson.Get(expect(t, model, events.TypeSessionUpdate), "session")
		if s.Get("audio.output.voice").Exists() {
			if s.Get("type").String() != "realtime" || s.Get("model").Exists() || s.Get("audio.input.format.type").String() != events.PCMU || s.Get("audio.output.voice").String() != "cedar" {
				t.Errorf("session %s", s)
			}
			h.stop() // Switchboard shuts down: the page is told why
			if e := event(t, b.messages, events.TypeError); e.Get("error.code").String() != string(handoff.CodeShutdown) {
				t.Errorf("got %s", e)
			}
			return
		}
	}
	t.Error("the session was not set")
}

func TestBadOffers(t *testing.T) {
	h := newHouse(t)
	url := h.desk()
	type request struct{ kind, body string }
	requests := map[string]request{
		"JSON":        {"application/json", `{"sdp":"v=0"}`},
		"text":        {"text/plain", goodOffer},
		"odd kind":    {"application/sdp;;", goodOffer},
		"no boundary": {"multipart/form-data", goodOffer},
		"cut form":    {"multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"sdp\"\r\n\r\nv=0"},
		"no ICE":      {"application/sdp", "v=0\r\no=- 1 2 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\nm=audio 9 RTP/AVP 0\r\n"},
	}
	for _, o := range offers {
		if o.code != "" {
			requests[o.name] = request{"application/sdp", o.sdp}
		}
	}
	add := func(name string, parts ...string) {
		kind, body := form(t, parts...)
		requests[name] = request{kind, body}
	}
	add("form without offer", "session", "{}")
	add("session is not JSON", "sdp", goodOffer, "session", "{")
	add("session is a list", "sdp", goodOffer, "session", "[]")
	add("session too long", "sdp", goodOffer, "session", `{"instructions":"`+strings.Repeat("x", maxOfferSession)+`"}`)
	add("offer too long", "sdp", goodOffer+strings.Repeat("a=x\r\n", maxSDP/5))
	add("form too long", "x", strings.Repeat("x", maxSDP*2+maxOfferSession), "sdp", goodOffer)
	add("many parts", "a", "", "b", "", "c", "", "d", "", "e", "", "f", "", "g", "", "h", "", "sdp", goodOffer)
	for name, r := range requests {
		response, body := post(t, url, r.kind, r.body)
		var e struct{ Error handoff.RecordError }
		if err := json.Unmarshal([]byte(body), &e); err != nil {
			t.Errorf("%s: %d %s", name, response.StatusCode, body)
			continue
		}
		want := map[handoff.Code]int{handoff.CodeMalformed: 400, handoff.CodeTooLarge: 413}[e.Error.Code]
		if want == 0 || response.StatusCode != want || e.Error.Message == "" || e.Error.Next == "" {
			t.Errorf("%s: %d %s", name, response.StatusCode, body)
		}
		if long := strings.Contains(name, "long") || strings.Contains(name, "many") || name == "huge"; long != (response.StatusCode == 413) {
			t.Errorf("%s: %d %s", name, response.StatusCode, body)
		}
	}
	select {
	case <-h.model.conns:
		t.Error("the model was called for a bad offer")
	default:
	}
}

func TestOfferWithoutAModel(t *testing.T) {
	h := newHouse(t)
	url := h.desk()
	h.model.refuse = http.StatusInternalServerError
	response, body := post(t, url, "application/sdp", newBrowser(t, channelLabel).offer())
	if response.StatusCode != 502 || gjson.Get(body, "error.code").String() != string(handoff.CodeVoiceUnreachable) || strings.Contains(body, "sk-") {
		t.Errorf("%d %s", response.StatusCode, body)
	}
	h.model.server.Close()
	if response, body := post(t, url, "application/sdp", goodOffer); response.StatusCode != 502 {
		t.Errorf("%d %s", response.StatusCode, body)
	}
	h.stop()
	if response, body := post(t, url, "application/sdp", goodOffer); response.StatusCode != 503 && response.StatusCode != 502 {
		t.Errorf("%d %s", response.StatusCode, body)
	}
}

// TestOfferOfAClientThatLeft holds that nothing lives on after a client that never read its answer.
func TestOfferOfAClientThatLeft(t *testing.T) {
	h := newHouse(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/realtime/calls", strings.NewReader(goodOffer))
	served := make(chan struct{})
	go func() {
		defer close(served)
		h.front.ServeCalls(w, r, someone)
	}()
	gone(t, served, "the request")
	if w.Code < 500 {
		t.Errorf("%d", w.Code)
	}
}

// TestCallOfAClientThatNeverCame holds that the model is let go when no browser connects.
func TestCallOfAClientThatNeverCame(t *testing.T) {
	noLeaks(t)
	far := newFarModel(t)
	config := impatient
	config.Connect = 100 * time.Millisecond
	front, err := NewFront(Config{ModelURL: far.url(), Router: &listener{}, Media: config})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, front: front, model: far}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- front.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-ran
	})
	if response, body := post(t, h.desk(), "application/sdp", goodOffer); response.StatusCode != 201 {
		t.Fatalf("%d %s", response.StatusCode, body)
	}
	model := take(t, far.conns, "model")
	defer model.Close()
	expectClose(t, model, websocket.CloseNormalClosure)
}
