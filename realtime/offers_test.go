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
	"switchboard/realtime/rtc"
	"switchboard/realtime/rtc/rtctest"
)

// desk returns the address at which a house takes offers.
func (h *house) desk() string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		h.front.ServeCalls(w, r, h.grant)
	}))
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

// takeModel waits for the model's end of a call. It is closed with the test, and then no other session takes its place.
func (h *house) takeModel() *websocket.Conn {
	h.t.Helper()
	model := take(h.t, h.model.conns, "model")
	h.t.Cleanup(func() {
		h.model.gone.Store(http.StatusUnauthorized)
		_ = model.Close()
	})
	return model
}

// postAnswered posts an offer with a session, which the model confirms, and returns the model beside the answer.
func (h *house) postAnswered(url, kind, body string) (*http.Response, string, *websocket.Conn) {
	h.t.Helper()
	models := make(chan *websocket.Conn, 1)
	go func() {
		model := h.takeModel()
		settle(h.t, model)
		send(h.t, model, updated)
		models <- model
	}()
	response, answer := post(h.t, url, kind, body)
	if response.StatusCode != 201 {
		h.t.Fatalf("%d %s", response.StatusCode, answer)
	}
	return response, answer, <-models
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

// settle confirms the leg's update of the formats, and all other updates.
func settle(t *testing.T, model *websocket.Conn) {
	t.Helper()
	for range 3 {
		send(t, model, `{"type":"session.updated","session":{"audio":{"input":{"format":{"type":"audio/pcmu"}},`+
			`"output":{"format":{"type":"audio/pcmu"}}}}}`)
	}
}

// TestWebRTCCall is one call from the offer to the hang-up, with sound and events both ways.
func TestWebRTCCall(t *testing.T) {
	h := newHouse(t)
	b := rtctest.New(t, rtctest.Label)
	response, answer := post(t, h.desk()+"?model=gpt-mine", "application/sdp", b.Offer())
	path, id, _ := strings.Cut(response.Header.Get("Location"), "/calls/")
	if response.StatusCode != 201 || response.Header.Get("Content-Type") != "application/sdp" || path != "/v1/realtime" ||
		!strings.HasPrefix(id, "rtc_") {
		t.Fatalf("%d %v %s", response.StatusCode, response.Header, answer)
	}
	b.Accept(answer)
	model := h.takeModel()
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
	rtctest.Event(t, b.Messages, events.TypeSessionCreated)

	b.Speak(1, 2)
	heard, _ := base64.StdEncoding.DecodeString(gjson.Get(expect(t, model, events.TypeAppend), "audio").String())
	if want := append(bytes.Repeat([]byte{1}, rtctest.FrameBytes),
		bytes.Repeat([]byte{2}, rtctest.FrameBytes)...); !bytes.Equal(heard, want) {
		t.Errorf("the model heard %d bytes", len(heard))
	}
	send(t, model, began("r", ""))
	send(t, model, strings.Replace(rtctest.Sound("r", "i", 60_000, 7), `"output_index":0,`, "", 1))
	rtctest.Event(t, b.Messages, "output_audio_buffer.started")
	if p := rtctest.Take(t, b.Packets, "a frame"); len(p.Payload) != rtctest.FrameBytes || p.Payload[0] != 7 {
		t.Errorf("the browser heard %d bytes", len(p.Payload))
	}
	send(t, model, `{"type":"input_audio_buffer.speech_started"}`)
	pastSound(t, model, events.TypeItemTruncate)
	rtctest.Event(t, b.Messages, "output_audio_buffer.cleared")

	if err := h.front.Hangup(handoff.Grant{Caller: handoff.Caller{Principal: "another"}},
		id); handoff.AsError(err).Code != handoff.CodeNotFound {
		t.Errorf("another's hang-up: %v", err)
	}
	if err := h.front.Hangup(someone, id); err != nil {
		t.Error(err)
	}
	expectClose(t, model, websocket.CloseNormalClosure)
	rtctest.Gone(t, b.Over, "the channel")
}

// pastSound reads the next event that is not sound: after a while, silence is sent for a caller who sends nothing.
func pastSound(t *testing.T, model *websocket.Conn, want string) {
	t.Helper()
	for {
		_ = model.SetReadDeadline(time.Now().Add(patience))
		_, event, err := model.ReadMessage()
		if err != nil {
			t.Fatalf("want %s: %v", want, err)
		}
		switch got := gjson.GetBytes(event, "type").String(); got {
		case want:
			return
		case events.TypeAppend:
		default:
			t.Fatalf("got %s, want %s", event, want)
		}
	}
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
	h.front.ServeCalls(client, httptest.NewRequest("POST", "/v1/realtime/calls", strings.NewReader(rtctest.GoodOffer)),
		someone)
	if client.Code != 201 || client.err != nil {
		t.Errorf("%d, %v", client.Code, client.err)
	}
	model := h.takeModel()
	expectClose(t, model, websocket.CloseNormalClosure)
}

// TestSaidOverWebRTC: an utterance is confirmed once its last packet was sent, and as cut when the page cleared it.
func TestSaidOverWebRTC(t *testing.T) {
	h := newHouse(t)
	said := make(chan handoff.Said, 2)
	h.router.on = func(v handoff.Voice, e handoff.VoiceEvent) {
		switch e := e.(type) {
		case handoff.Quiet:
			v.Say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk}) // again and again, and said once
		case handoff.Said:
			said <- e
			v.Say(handoff.Utterance{ID: "m", Text: "more", Floor: handoff.FloorAsk})
		}
	}
	b := rtctest.New(t, rtctest.Label)
	_, answer := post(t, h.desk(), "application/sdp", b.Offer())
	b.Accept(answer)
	model := h.takeModel()
	ask := func() string {
		for {
			_ = model.SetReadDeadline(time.Now().Add(rtctest.Patience))
			_, e, err := model.ReadMessage()
			if err != nil {
				t.Fatal(err)
			}
			if events.PeekType(e) == events.TypeSessionUpdate {
				send(t, model, `{"type":"session.updated","session":{"audio":{"input":{"format":{"type":"audio/pcmu"}},`+
					`"output":{"format":{"type":"audio/pcmu"}}}}}`)
			}
			if tag := tagIn(string(e)); tag != "" {
				return tag
			}
		}
	}
	speak := func(response, tag string, ms int) {
		send(t, model, began(response, tag))
		send(t, model, rtctest.Sound(response, "i", ms, 7))
		send(t, model, done(response, tag, "completed"))
	}
	speak("r1", ask(), 300)
	rtctest.Event(t, b.Messages, "output_audio_buffer.started")
	rtctest.Event(t, b.Messages, "output_audio_buffer.stopped")
	if s := rtctest.Take(t, said, "confirmation"); s.Cut || s.ID != "n" || s.At.IsZero() {
		t.Errorf("said %+v", s)
	}
	speak("r2", ask(), 60_000)
	rtctest.Event(t, b.Messages, "output_audio_buffer.started")
	// Silence kept the browser's buffer warm in between; the first response was 15 frames.
	for n := 15 + 2*aWord/(20*time.Millisecond); n > 0; {
		if p := rtctest.Take(t, b.Packets, "a frame"); p.Payload[0] == 7 {
			n--
		}
	}
	b.Send(`{"type":"output_audio_buffer.clear"}`)
	if s := rtctest.Take(t, said, "confirmation"); !s.Cut || s.ID != "m" || s.At.IsZero() {
		t.Errorf("said %+v", s)
	}
}

func TestWebRTCCallWithASession(t *testing.T) {
	h := newHouse(t)
	b := rtctest.New(t, rtctest.Label)
	kind, body := form(t, "session", `{"model":"gpt-mine","audio":{"output":{"voice":"cedar"}}}`, "sdp", b.Offer(), "more",
		"ignored")
	_, answer, model := h.postAnswered(h.desk(), kind, body)
	b.Accept(answer)
	if q := <-h.model.query; q != "api-version=1&model=gpt-mine" {
		t.Errorf("model was asked for %q", q)
	}
	rtctest.Event(t, b.Messages, events.TypeSessionCreated)
	for range 4 {
		s := gjson.Get(expect(t, model, events.TypeSessionUpdate), "session")
		if s.Get("audio.output.voice").Exists() {
			if s.Get("type").String() != "realtime" || s.Get("model").Exists() ||
				s.Get("audio.input.format.type").String() != events.PCMU || s.Get("audio.output.voice").String() != "cedar" {
				t.Errorf("session %s", s)
			}
			h.stop() // Switchboard shuts down: the page is told why
			if e := rtctest.Event(t, b.Messages,
				events.TypeError); e.Get("error.code").String() != string(handoff.CodeShutdown) {
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
		"text":        {"text/plain", rtctest.GoodOffer},
		"odd kind":    {"application/sdp;;", rtctest.GoodOffer},
		"no boundary": {"multipart/form-data", rtctest.GoodOffer},
		"cut form":    {"multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"sdp\"\r\n\r\nv=0"},
		"no ICE":      {"application/sdp", "v=0\r\no=- 1 2 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\nm=audio 9 RTP/AVP 0\r\n"},
	}
	for _, o := range rtctest.Offers() {
		if o.Code != "" {
			requests[o.Name] = request{"application/sdp", o.SDP}
		}
	}
	add := func(name string, parts ...string) {
		kind, body := form(t, parts...)
		requests[name] = request{kind, body}
	}
	add("form without offer", "session", "{}")
	add("session is not JSON", "sdp", rtctest.GoodOffer, "session", "{")
	add("session is a list", "sdp", rtctest.GoodOffer, "session", "[]")
	add("session too long", "sdp", rtctest.GoodOffer, "session",
		`{"instructions":"`+strings.Repeat("x", maxOfferSession)+`"}`)
	add("offer too long", "sdp", rtctest.GoodOffer+strings.Repeat("a=x\r\n", rtc.MaxSDP/5))
	add("form too long", "x", strings.Repeat("x", rtc.MaxSDP*2+maxOfferSession), "sdp", rtctest.GoodOffer)
	add("many parts", "a", "", "b", "", "c", "", "d", "", "e", "", "f", "", "g", "", "h", "", "sdp", rtctest.GoodOffer)
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
		if long := strings.Contains(name, "long") || strings.Contains(name, "many") ||
			name == "huge"; long != (response.StatusCode == 413) {
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
	response, body := post(t, url, "application/sdp", rtctest.New(t, rtctest.Label).Offer())
	if response.StatusCode != 502 || gjson.Get(body, "error.code").String() != string(handoff.CodeVoiceUnreachable) ||
		strings.Contains(body, "sk-") {
		t.Errorf("%d %s", response.StatusCode, body)
	}
	h.model.server.Close()
	if response, body := post(t, url, "application/sdp", rtctest.GoodOffer); response.StatusCode != 502 {
		t.Errorf("%d %s", response.StatusCode, body)
	}
	h.stop()
	if response, body := post(t, url, "application/sdp", rtctest.GoodOffer); response.StatusCode != 503 &&
		response.StatusCode != 502 {
		t.Errorf("%d %s", response.StatusCode, body)
	}
}

// TestOfferOfAClientThatLeft: nothing is left of a call whose client never read its answer.
func TestOfferOfAClientThatLeft(t *testing.T) {
	h := newHouse(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/realtime/calls", strings.NewReader(rtctest.GoodOffer))
	served := make(chan struct{})
	go func() {
		defer close(served)
		h.front.ServeCalls(w, r, someone)
	}()
	rtctest.Gone(t, served, "the request")
	if w.Code < 500 {
		t.Errorf("%d", w.Code)
	}
}

// TestCallOfAClientThatNeverCame: the model's socket is closed when no browser connects. The time for that begins with
// the answer, however long the model takes to begin its session.
func TestCallOfAClientThatNeverCame(t *testing.T) {
	rtctest.NoLeaks(t)
	far := newFarModel(t)
	// else ICE fails first
	config := rtc.Config{Connect: 100 * time.Millisecond, Disconnected: time.Hour, Failed: time.Hour}
	far.think = func() { time.Sleep(2 * config.Connect) }
	h := &house{t: t, front: runs(t, Config{ModelURL: far.url(), Router: &listener{}, Media: config}), model: far}
	if response, body := post(t, h.desk(), "application/sdp", rtctest.GoodOffer); response.StatusCode != 201 {
		t.Fatalf("%d %s", response.StatusCode, body)
	}
	model := rtctest.Take(t, far.conns, "model")
	defer model.Close()
	expectClose(t, model, websocket.CloseNormalClosure)
}

// TestModelWithoutCommonSound: a call whose formats cannot be converted ends with one error.
func TestModelWithoutCommonSound(t *testing.T) {
	h := newHouse(t)
	b := rtctest.New(t, rtctest.Label)
	_, answer := post(t, h.desk(), "application/sdp", b.Offer())
	b.Accept(answer)
	model := h.takeModel()
	ended := h.endOf()
	<-b.Open
	for range 3 {
		send(t, model, `{"type":"session.updated","session":{"audio":{"output":{"format":{"type":"audio/opus"}}}}}`)
	}
	if e := rtctest.Event(t, b.Messages,
		events.TypeError); e.Get("error.code").String() != string(handoff.CodeSoundFormat) {
		t.Errorf("told %s", e)
	}
	if cause := rtctest.Take(t, ended, "end"); cause == nil || handoff.AsError(cause).Code != handoff.CodeSoundFormat {
		t.Errorf("ended with %v", cause)
	}
	rtctest.Gone(t, b.Over, "the channel")
}

// TestModelThatRefusesOurFormat is a refusal on the wire: the browser hears the sound, and no error.
func TestModelThatRefusesOurFormat(t *testing.T) {
	h := newHouse(t)
	b := rtctest.New(t, rtctest.Label)
	_, answer := post(t, h.desk(), "application/sdp", b.Offer())
	b.Accept(answer)
	model := h.takeModel()
	for range 3 {
		update := gjson.Parse(expect(t, model, events.TypeSessionUpdate))
		if update.Get("session.audio.output.format").Exists() {
			send(t, model, `{"type":"error","error":{"type":"invalid_request_error","code":"invalid_value","message":"no",`+
				`"event_id":`+update.Get("event_id").Raw+`}}`)
			continue
		}
		send(t, model, `{"type":"session.updated","session":{"type":"realtime"}}`)
	}
	<-b.Open
	send(t, model, began("r", ""))
	send(t, model, rtctest.Sound("r", "i", 3000, 0)) // as PCM half a second of silence, as µ-law the loudest there is
	for range 20 {
		if p := rtctest.Take(t, b.Packets, "a frame"); p.Payload[0] != 0xff {
			t.Fatalf("the browser hears %x", p.Payload[0])
		}
	}
	send(t, model, `{"type":"the.end"}`)
	for kind := ""; kind != "the.end"; {
		if kind = events.PeekType(rtctest.Take(t, b.Messages, "the end")); kind == events.TypeError {
			t.Error("the refusal reached the client")
		}
	}
}
