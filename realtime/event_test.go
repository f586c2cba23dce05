package realtime

import (
	"strings"
	"testing"
	"time"

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
		`{"type":"input_audio_buffer.append","audio":0}`: typeAppend,
	} {
		if got := peekType([]byte(event)); got != want {
			t.Errorf("%s: %q, want %q", event, got, want)
		}
	}
}

func FuzzPeekType(f *testing.F) {
	f.Add(`{"type":"a\"b"}`)
	f.Add(`{"type": "a","type":"b"}`)
	f.Fuzz(func(t *testing.T, event string) {
		if got, want := peekType([]byte(event)), gjson.Get(event, "type").String(); gjson.Valid(event) && got != want {
			t.Errorf("%q: %q, want %q", event, got, want)
		}
	})
}

func TestDeltaBytes(t *testing.T) {
	for event, want := range map[string]int{
		`{"type":"x","delta":"AAAA"}`:    3,
		`{"delta": "AAA=","x":"y"}`:      2,
		`{"delta":"AA=="}`:               1,
		`{"delta":""}`:                   0,
		`{"delta":null}`:                 0,
		`{"type":"x"}`:                   0,
		`{"delta":"AAAA`:                 0,
		audio("r", 200*time.Millisecond): 9600,
	} {
		if got := soundBytes([]byte(event), keyDelta); got != want {
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
		if got := string(peekField([]byte(event), "response_id")); got != want {
			t.Errorf("%.60s: %q, want %q", event, got, want)
		}
	}
}

func TestPlayback(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	var p playback
	if p.on(start) {
		t.Error("it plays before a sound")
	}
	p.add(at(0), 48*100, pcmRate)
	p.add(at(10), 8*100, g711Rate) // it comes faster than it sounds
	if !p.on(at(199)) || p.on(at(200)) {
		t.Errorf("until %v", p.until.Sub(start))
	}
	p.add(at(500), 8*100, g711Rate)
	if !p.on(at(599)) || p.on(at(600)) {
		t.Errorf("until %v", p.until.Sub(start))
	}
	p.clear()
	if p.on(at(510)) {
		t.Error("it plays on after an interruption")
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

func TestErrorEvent(t *testing.T) {
	got := string(errorEvent("e1", clientFault{kind: "server_error", message: `"no"`}))
	for path, want := range map[string]string{"type": "error", "event_id": "e1", "error.type": "server_error", "error.message": `"no"`, "error.code": "", "error.event_id": ""} {
		if gjson.Get(got, path).String() != want || !gjson.Get(got, path).Exists() {
			t.Errorf("%s in %s", path, got)
		}
	}
}
