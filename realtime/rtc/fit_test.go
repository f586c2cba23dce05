package rtc

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

func TestFit(t *testing.T) {
	long := strings.Repeat("ä", 50_000)
	message := `{"id":"i1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_audio",` +
		`"audio":"` + long + `","transcript":"All is well."}]}`
	call := `{"id":"i2","type":"function_call","call_id":"c1","name":"weather","status":"completed","arguments":"` + long +
		`"}`
	many := strings.TrimSuffix(strings.Repeat(`{"id":"i3","type":"message","content":[]},`, 3000), ",")
	for name, tc := range map[string]struct {
		event string
		want  map[string]string
	}{
		"sound goes before words": {`{"type":"response.done","event_id":"e1","response":{"id":"r1","status":"completed",` +
			`"output":[` + message + `]}}`,
			map[string]string{"event_id": "e1", "response.id": "r1", "response.status": "completed",
				"response.output.0.content.0.transcript": "All is well.", "response.output.0.content.0.audio": ""}},
		"a long text is cut": {`{"type":"conversation.item.done","item":{"id":"i1","content":[{"text":"` + long + `"}]}}`,
			map[string]string{"item.id": "i1", "item.content.0.text": strings.Repeat("ä", 8190) + "…"}},
		"half a call is not to be run": {`{"type":"response.output_item.done","response_id":"r1","item":` + call + `}`,
			map[string]string{"item.status": "incomplete", "item.arguments": "", "item.call_id": "c1"}},
		"many items": {`{"type":"response.done","response":{"id":"r1","status":"completed","output":[` + many +
			`],"usage":{"total_tokens":7}}}`,
			map[string]string{"response.id": "r1", "response.status": "completed", "response.output.#": "0",
				"response.usage.total_tokens": "7"}},
		"a number stays as it is": {`{"type":"session.updated","session":{"instructions":"` + long +
			`","expires_at":12345678901234567890}}`,
			map[string]string{"session.expires_at": "12345678901234567890"}},
	} {
		got := fit([]byte(tc.event), standardMessage)
		if len(got) != 1 || len(got[0]) > standardMessage || !gjson.ValidBytes(got[0]) ||
			peekTypeOf(got[0]) != events.PeekType([]byte(tc.event)) {
			t.Errorf("%s: %d messages", name, len(got))
			continue
		}
		for path, want := range tc.want {
			if r := gjson.GetBytes(got[0], path); r.String() != want {
				t.Errorf("%s: %s is %.60q", name, path, r.String())
			}
		}
	}
}

func peekTypeOf(event []byte) string { return gjson.GetBytes(event, "type").String() }

func TestFitKeepsWhatFits(t *testing.T) {
	for _, event := range []string{`{"type":"x"}`, ` {"b":1, "a":"` + strings.Repeat("x", standardMessage-17) + `"}`} {
		if got := fit([]byte(event), standardMessage); len(got) != 1 || string(got[0]) != event {
			t.Errorf("%.20s was touched", event)
		}
	}
	if got := fit([]byte(`{"type":"response.function_call_arguments.done","arguments":"`+strings.Repeat("x",
		standardMessage)+`"}`), standardMessage); got != nil {
		t.Errorf("half of the arguments: %.80s", got)
	}
}

// FuzzFit holds that every message fits and is JSON, that a delta loses nothing, and that the end of a
// response always comes.
func FuzzFit(f *testing.F) {
	f.Add(`"hello"`, uint16(3000), false)
	f.Add(`{"a":[{"audio":"x","arguments":"y"}],"id":"`+strings.Repeat("i", 300)+`"}`, uint16(0), true)
	f.Add(`["\u0000\ud83d\ude00","ä"]`, uint16(9), true)
	f.Fuzz(func(t *testing.T, value string, more uint16, deltas bool) {
		limit := smallestMessage + int(more)
		if !gjson.Valid(value) || handoff.TooDeep([]byte(`[[`+value)) {
			return
		}
		text := strings.ToValidUTF8(strings.Repeat(value, 1+5000/(1+len(value))), "")
		event, want := string(events.Encode(events.Object{"type": "response.done",
			"response": events.Object{"id": "r1", "status": "completed", "output": []any{json.RawMessage(value), text}}})), ""
		if deltas {
			event, want = string(events.Encode(events.Object{"type": "response.output_text.delta", "item_id": "i",
				"delta": text})), text
		}
		if !json.Valid([]byte(event)) || !utf8.ValidString(event) { // events are text
			return
		}
		var got strings.Builder
		all := fit([]byte(event), limit)
		for _, m := range all {
			if len(m) > limit || !json.Valid(m) || !utf8.Valid(m) {
				t.Fatalf("%d bytes of %d: %.80s", len(m), limit, m)
			}
			got.WriteString(gjson.GetBytes(m, "delta").String())
		}
		if deltas && got.String() != want {
			t.Fatalf("%d bytes of text became %d", len(want), len(got.String()))
		}
		if !deltas && (len(all) != 1 || gjson.GetBytes(all[0], "response.id").String() != "r1") {
			t.Fatalf("%d messages for the end", len(all))
		}
	})
}

func TestMessageSizeOfAnOffer(t *testing.T) {
	for line, want := range map[string]int{
		"": standardMessage, "a=max-message-size:100000\r\n": 100_000, "a=max-message-size:0\r\n": largestMessage,
		"a=max-message-size:1073741823\n": largestMessage, "a=max-message-size:7\r\n": smallestMessage,
		"a=max-message-size:many\r\n": standardMessage,
	} {
		if got := maxMessageOf("v=0\r\nm=application 9\r\n" + line); got != want {
			t.Errorf("%q: %d, want %d", line, got, want)
		}
	}
}
