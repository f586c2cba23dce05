package events

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

func TestPeekType(t *testing.T) {
	for event, want := range map[string]string{
		`{"type":"response.done","x":1}`:                 "response.done",
		`{"type": "response.done"}`:                      "response.done",
		"{\n \"type\" : \"response.done\"}":              "response.done",
		`{"event_id":"e","type":"response.done"}`:        "response.done",
		`{"item":{"type":"message"},"type":"error"}`:     "error",
		`{"type":"response\u002edone"}`:                  "response.done",
		`{"type":7}`:                                     "7",
		`{"type":null}`:                                  "",
		`{}`:                                             "",
		`{"type":"`:                                      "",
		`{"type":`:                                       "",
		`{"type":"` + strings.Repeat("x", 200) + `"}`:    strings.Repeat("x", 200),
		`{"type":"input_audio_buffer.append","audio":0}`: TypeAppend,
	} {
		if got := PeekType([]byte(event)); got != want {
			t.Errorf("%s: %q, want %q", event, got, want)
		}
	}
}

func FuzzPeekType(f *testing.F) {
	f.Add(`{"type":"a\"b"}`)
	f.Add(`{"type": "a","type":"b"}`)
	f.Fuzz(func(t *testing.T, event string) {
		if got, want := PeekType([]byte(event)), gjson.Get(event, "type").String(); gjson.Valid(event) && got != want {
			t.Errorf("%q: %q, want %q", event, got, want)
		}
	})
}

func TestDeltaBytes(t *testing.T) {
	for event, want := range map[string]int{
		`{"type":"x","delta":"AAAA"}`:                    3,
		`{"delta": "AAA=","x":"y"}`:                      2,
		`{"delta":"AA=="}`:                               1,
		`{"delta":""}`:                                   0,
		`{"delta":null}`:                                 0,
		`{"type":"x"}`:                                   0,
		`{"delta":"AAAA`:                                 0,
		`{"delta":"A\u002BAA"}`:                          3, // as System.Text.Json writes it
		`{"delta" : "A\/A\u003d"}`:                       2,
		`{"delta":"` + strings.Repeat("A", 12800) + `"}`: 9600,
	} {
		if got := SoundBytes(Sound([]byte(event), KeyDelta)); got != want {
			t.Errorf("%.40s: %d bytes, want %d", event, got, want)
		}
	}
}

func TestPeekField(t *testing.T) {
	for event, want := range map[string]string{
		`{"type":"x","response_id":"r1","item_id":"i"}`:                    "r1",
		`{"type":"x", "response_id": "r1"}`:                                "r1",
		`{"type":"response_id","item_id":"i"}`:                             "",
		`{"response_id":"a\u0041\""}`:                                      `aA"`,
		`{"response_id":7}`:                                                "7",
		`{"delta":"` + strings.Repeat("A", 9000) + `","response_id":"r1"}`: "r1",
		`{"response_id":"`:                                                 "",
		`"response_id":"`:                                                  "",
		``:                                                                 "",
	} {
		if got := string(PeekField([]byte(event), "response_id")); got != want {
			t.Errorf("%.60s: %q, want %q", event, got, want)
		}
	}
}

func TestErrorEvent(t *testing.T) {
	got := string(Error("e1", Fault{Kind: "server_error", Message: `"no"`}))
	for path, want := range map[string]string{"type": "error", "event_id": "e1", "error.type": "server_error",
		"error.message": `"no"`, "error.code": "", "error.event_id": ""} {
		if gjson.Get(got, path).String() != want || !gjson.Get(got, path).Exists() {
			t.Errorf("%s in %s", path, got)
		}
	}
}
