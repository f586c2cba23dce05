package simulator

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

func TestSessionCreatedIsComplete(t *testing.T) {
	w := newWorld(t, brainOf())
	got := w.take()
	s := one(t, got, "session.created").Get("session")
	for path, want := range map[string]string{
		"type": "realtime", "object": "realtime.session", "model": Name, "output_modalities": `["audio"]`, "tools": "[]",
		"tool_choice":        "auto",
		"audio.input.format": `{"type":"audio/pcm","rate":24000}`,
		"audio.input.turn_detection": `{"create_response":true,"interrupt_response":true,` +
			`"prefix_padding_ms":300,"silence_duration_ms":500,"threshold":0.5,"type":"server_vad"}`,
		"audio.input.transcription": "", "audio.input.noise_reduction": "",
		"audio.output.format": `{"type":"audio/pcm","rate":24000}`, "audio.output.voice": "marin", "audio.output.speed": "1",
	} {
		if v := s.Get(path); !v.Exists() || v.String() != want {
			t.Errorf("%s is %s", path, v.Raw)
		}
	}
	if s.Get("id").Str == "" || s.Get("expires_at").Int() != w.now.Add(time.Hour).Unix() {
		t.Errorf("id %s, expires_at %s", s.Get("id"), s.Get("expires_at"))
	}
}

// Each update is applied to what the ones before it left.
func TestSessionUpdatePatches(t *testing.T) {
	w := newWorld(t, brainOf())
	w.take()
	for _, c := range []struct{ update, path, want string }{
		{`{"instructions":"Be brief."}`, "instructions", "Be brief."},
		{`{"tools":[{"type":"function","name":"a","description":"A","parameters":{"type":"object"}},{"type":"function",` +
			`"name":"b"}]}`, "tools.#", "2"},
		{`{"tracing":{"workflow_name":"w"}}`, "tools.#", "2"}, // what is absent stays
		{`{"tracing":null}`, "tracing", ""},
		{`{"tools":[{"type":"function","name":"c"}]}`, "tools.#.name", `["c"]`}, // replaced, never merged
		{`{"tools":[]}`, "tools", "[]"},
		{`{"tools":[{"type":"function","name":"c"}]}`, "instructions", "Be brief."},
		{`{"tools":null}`, "tools", "[]"},
		{`{"instructions":""}`, "instructions", ""},
		{`{"audio":{"input":{"transcription":{"model":"whisper-1"}}}}`, "audio.input.transcription.model", "whisper-1"},
		{`{"audio":{"input":{"format":{"type":"audio/pcmu"}}}}`, "audio.input.format", `{"type":"audio/pcmu"}`},
		{`{"audio":{"output":{"voice":"cedar"}}}`, "audio.input.transcription.model", "whisper-1"}, // nested merge
		{`{"audio":{"input":{"turn_detection":{"type":"server_vad","silence_duration_ms":700}}}}`,
			"audio.input.turn_detection.silence_duration_ms", "700"},
		{`{"audio":{"input":{"turn_detection":{"type":"server_vad","create_response":false}}}}`,
			"audio.input.turn_detection.silence_duration_ms", "500"},
		{`{"audio":{"input":{"turn_detection":{"type":"semantic_vad"}}}}`, "audio.input.turn_detection",
			`{"create_response":true,"eagerness":"auto","interrupt_response":true,"type":"semantic_vad"}`},
		{`{"audio":{"input":{"turn_detection":null,"transcription":null}}}`, "audio.input",
			`{"format":{"type":"audio/pcmu"},"noise_reduction":null,"transcription":null,"turn_detection":null}`},
		{`{"audio":{"input":{"format":{"type":"audio/pcm"}}}}`, "audio.input.format.rate", "24000"},
		{`{"model":"gpt-realtime-2.1","id":"x"}`, "model", Name}, // a client believes to talk to another model
		{`{"max_output_tokens":100,"truncation":"disabled","reasoning":{"effort":"low"},"parallel_tool_calls":false}`,
			"reasoning.effort", "low"},
	} {
		raw := []byte(c.update)
		var m map[string]any
		if json.Unmarshal(raw, &m) != nil {
			t.Fatal(c.update)
		}
		m["type"] = "realtime"
		raw, _ = json.Marshal(map[string]any{"type": "session.update", "session": m})
		w.s.receive(w.now, raw)
		w.drain()
		got := w.take()
		if len(got) != 1 || got[0].Get("type").Str != "session.updated" {
			t.Fatalf("%s: %v %v", c.update, types(got), got)
		}
		if v := got[0].Get("session." + c.path); v.String() != c.want {
			t.Errorf("%s: %s is %s, want %s", c.update, c.path, v.Raw, c.want)
		}
	}
}

func TestSessionUpdateRefuses(t *testing.T) {
	for code, sessions := range map[string][]string{
		"missing_required_parameter": {
			`{}`, `{"voice":"marin"}`,
			`{"type":"realtime","audio":{"input":{"turn_detection":{}}}}`,
			`{"type":"realtime","tools":[{"type":"function"}]}`,
		},
		"invalid_value": {
			`{"type":"transcription"}`,
			`{"type":"realtime","audio":{"input":{"turn_detection":{"type":"psychic"}}}}`,
			`{"type":"realtime","audio":{"input":{"format":{"type":"audio/pcm","rate":16000}}}}`,
			`{"type":"realtime","audio":{"output":{"speed":9}}}`,
			`{"type":"realtime","output_modalities":["audio","text"]}`,
			`{"type":"realtime","output_modalities":[]}`,
		},
		"unknown_parameter": {
			`{"type":"realtime","voice":"marin"}`,
			`{"type":"realtime","audio":{"input":{"vad":{}}}}`,
			`{"type":"realtime","audio":{"inputs":{}}}`,
			`{"type":"realtime","audio":{"input":{"turn_detection":{"type":"server_vad","eager":1}}}}`,
		},
		"invalid_type": {
			`{"type":"realtime","audio":{"input":{"turn_detection":{"type":"server_vad","threshold":"loud"}}}}`,
			`{"type":"realtime","audio":{"input":{"format":"pcm16"}}}`,
			`{"type":"realtime","audio":[]}`,
			`{"type":"realtime","tools":"codex"}`,
			`{"type":"realtime","instructions":7}`,
		},
	} {
		for _, session := range sessions {
			w := newWorld(t, brainOf())
			before := w.take()[0].Get("session").Raw
			w.send(`{"type":"session.update","event_id":"u","session":%s}`, session)
			w.fails(code, "u")
			w.send(`{"type":"session.update","session":{"type":"realtime"}}`)
			if diff := cmp.Diff(before, one(t, w.take(), "session.updated").Get("session").Raw); diff != "" {
				t.Errorf("%s changed the session: %s", session, diff)
			}
		}
	}
}

func TestVoiceIsFixedOnceHeard(t *testing.T) {
	w := newWorld(t, steps([]Move{Say{Text: "hello"}}))
	w.send(`{"type":"response.create"}`)
	w.pass(time.Second)
	w.take()
	w.send(`{"type":"session.update","event_id":"v","session":{"type":"realtime","audio":{"output":{"voice":"cedar"}}}}`)
	w.fails("cannot_update_voice", "v")
	w.send(`{"type":"session.update","session":{"type":"realtime","audio":{"output":{"voice":"marin"}}}}`)
	one(t, w.take(), "session.updated")
}

func TestSessionExpires(t *testing.T) {
	w := newWorld(t, brainOf())
	w.take()
	w.pass(time.Hour)
	e := one(t, w.take(), "error").Get("error")
	if e.Get("code").Str != "session_expired" ||
		e.Get("message").Str != "Your session hit the maximum duration of 60 minutes." ||
		e.Get("event_id").Type != gjson.Null {
		t.Error(e.Raw)
	}
	if w.s.end == nil || w.s.end.code != closeGoingAway {
		t.Error("not closed")
	}
}
