package realtime

import (
	"testing"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/rtc/rtctest"
)

func TestCheckSession(t *testing.T) {
	for session, param := range map[string]string{
		`{}`:                    "",
		`{"type":"realtime"}`:   "",
		`{"unknown":{"a":[1]}}`: "",
		`{"type":"realtime","model":"m","instructions":"i","output_modalities":["text"],"tools":[{"type":"function",` +
			`"name":"f"},{"type":"mcp","server_label":"x"}],"tool_choice":{"type":"function","name":"f"},` +
			`"audio":{"input":{"transcription":null,"turn_detection":null},"output":{"voice":{"id":"v"},"speed":1.2}},` +
			`"max_output_tokens":"inf","prompt":null}`: "",
		``:                                       "session",
		`[]`:                                     "session",
		`"x"`:                                    "session",
		`{`:                                      "session",
		deep("{"):                                "session",
		`{"type":"transcription"}`:               "session.type",
		`{"type":4}`:                             "session.type",
		`{"model":4}`:                            "session.model",
		`{"instructions":["a"]}`:                 "session.instructions",
		`{"tools":{}}`:                           "session.tools",
		`{"tools":[{"name":"a"},"b"]}`:           "session.tools[1]",
		`{"tools":[{"type":"function"}]}`:        "session.tools[0].name",
		`{"tool_choice":true}`:                   "session.tool_choice",
		`{"audio":[]}`:                           "session.audio",
		`{"audio":{"output":"cedar"}}`:           "session.audio.output",
		`{"audio":{"output":{"voice":7}}}`:       "session.audio.output.voice",
		`{"audio":{"input":{"format":"pcm16"}}}`: "session.audio.input.format",
		`{"parallel_tool_calls":"yes"}`:          "session.parallel_tool_calls",
		`{"audio":{"input":{"turn_detection":1}}}`: "session.audio.input.turn_detection",
	} {
		got := ""
		if fault := CheckSession([]byte(session)); fault != nil {
			if got = fault.Param; fault.Code != handoff.CodeMalformed {
				t.Errorf("%s: %v", session, fault)
			}
		}
		if got != param {
			t.Errorf("%s: %q is wrong, want %q", session, got, param)
		}
	}
}

func TestOverlay(t *testing.T) {
	for _, row := range [][3]string{
		{`{"a":1}`, ``, `{"a":1}`},
		{`{}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		{`{"a":1,"b":2}`, `{"b":null,"c":1e400}`, `{"a":1,"b":null,"c":1e400}`},
		{`{"audio":{"input":{"x":1},"output":{"voice":"a"}}}`, `{"audio":{"output":{"voice":"b"}}}`,
			`{"audio":{"input":{"x":1},"output":{"voice":"b"}}}`},
		{`{"tools":[1,2]}`, `{"tools":[3]}`, `{"tools":[3]}`},
		{`{"a":{"b":1}}`, `{"a":2}`, `{"a":2}`},
		{`{"a.b":1,"*":2}`, `{"a.b":{"c?":3},"*":4}`, `{"a.b":{"c?":3},"*":4}`},
	} {
		if got := string(overlay([]byte(row[0]), []byte(row[1]))); got != row[2] {
			t.Errorf("%s under %s: %s", row[0], row[1], got)
		}
	}
}

// A socket by a client secret begins with the session that the secret is bound to, whatever the address asks for.
func TestSocketOfABoundSession(t *testing.T) {
	h := newHouse(t)
	h.grant.Session = []byte(`{"type":"realtime","model":"gpt-bound","instructions":"Be brief.",` +
		`"tools":[{"type":"function","name":"mine"}]}`)
	client := connects(t, h.edge.URL+"?model=gpt-other")
	model := h.takeModel()
	if q := <-h.model.query; q != "api-version=1&model=gpt-bound" {
		t.Errorf("model was asked for %q", q)
	}
	first := gjson.Get(expect(t, model, events.TypeSessionUpdate), "session")
	send(t, model, updated)
	expect(t, client, "session.created")
	if first.Get("instructions").String() != "Be brief." || first.Get("model").Exists() ||
		first.Get("tools.0.name").String() != "mine" || first.Get("tools.#").Int() != int64(1+len(ourTools)) {
		t.Errorf("begun with %s", first)
	}
	send(t, client, `{"type":"input_audio_buffer.clear"}`)
	for {
		_, e, err := model.ReadMessage()
		switch kind := gjson.GetBytes(e, "type").String(); {
		case err != nil:
			t.Fatal(err)
		case kind == "input_audio_buffer.clear":
			return
		case gjson.GetBytes(e, "session.instructions").Exists():
			t.Errorf("ours came over the client's: %s", e)
		}
	}
}

// A call by a client secret begins with the secret's session, and a form's over it; the model stays the secret's.
func TestOfferOfABoundSession(t *testing.T) {
	h := newHouse(t)
	h.grant.Session = []byte(`{"type":"realtime","model":"gpt-bound","instructions":"Be brief.",` +
		`"audio":{"output":{"voice":"cedar"}}}`)
	b := rtctest.New(t, rtctest.Label)
	kind, body := form(t, "session", `{"model":"gpt-form","audio":{"output":{"speed":1.5}}}`, "sdp", b.Offer())
	_, answer, model := h.postAnswered(h.desk()+"?model=gpt-other", kind, body)
	b.Accept(answer)
	if q := <-h.model.query; q != "api-version=1&model=gpt-bound" {
		t.Errorf("model was asked for %q", q)
	}
	rtctest.Event(t, b.Messages, events.TypeSessionCreated)
	for range 4 {
		if s := gjson.Get(expect(t, model, events.TypeSessionUpdate),
			"session"); s.Get("instructions").String() == "Be brief." {
			if s.Get("audio.output.voice").String() != "cedar" || s.Get("audio.output.speed").Num != 1.5 ||
				s.Get("model").Exists() {
				t.Errorf("session %s", s)
			}
			return
		}
	}
	t.Error("it was not begun with the secret's session")
}

// A form whose session cannot be one is refused before anything is begun, with its param.
func TestFormSaysWhatIsWrong(t *testing.T) {
	h := newHouse(t)
	kind, body := form(t, "session", `{"type":"transcription"}`, "sdp", rtctest.New(t, rtctest.Label).Offer())
	response, answer := post(t, h.desk(), kind, body)
	if response.StatusCode != 400 || gjson.Get(answer, "error.param").String() != "session.type" ||
		gjson.Get(answer, "error.type").String() != "invalid_request_error" {
		t.Errorf("%d %s", response.StatusCode, answer)
	}
}

func TestAudioRate(t *testing.T) {
	for format, want := range map[string]int{
		`{"type":"audio/pcm","rate":24000}`: 48, `{"type":"audio/pcm"}`: 48, `{}`: 48, `{"type":"audio/pcm","rate":0}`: 48,
		`{"type":"audio/pcm","rate":16000}`: 32, `{"type":"audio/pcmu"}`: 8, `{"type":"audio/pcma","rate":8000}`: 8,
	} {
		if got := audioRate(gjson.Parse(format)); got != want {
			t.Errorf("%s: %d, want %d", format, got, want)
		}
	}
}

func TestNewFrontChecksItsConfig(t *testing.T) {
	for _, c := range []Config{{}, {ModelURL: "http://x", Router: &listener{}}, {ModelURL: "ws://", Router: &listener{}},
		{ModelURL: "ws://x/"}, {ModelURL: ":", Router: &listener{}}} {
		if _, err := NewFront(c); err == nil {
			t.Errorf("%+v passes", c)
		}
	}
}

// TestChosenLanguage: a client chooses the language of its call as it begins it.
func TestChosenLanguage(t *testing.T) {
	h := newHouse(t)
	h.call("?model=gpt-test&language=de")
	h.router.speaks(t, "de")
	h.postAnswered(h.desk()+"?language=fr", "application/sdp", rtctest.New(t, rtctest.Label).Offer())
	h.router.speaks(t, "fr")
	h.call("")
	h.router.speaks(t, "")
}
