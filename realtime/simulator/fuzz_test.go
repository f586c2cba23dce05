package simulator

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// FuzzFrames gives a session any frames, one a line, with time passing between them. Whatever comes, it
// answers in valid JSON, one response runs at a time, and every response that began ends.
func FuzzFrames(f *testing.F) {
	for _, frames := range []string{
		`{"type":"response.create"}` + "\n" + `{"type":"response.create"}` + "\n" + `{"type":"response.cancel"}`,
		`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"format":{"type":"audio/pcmu"},` +
			`"turn_detection":null}}}}` + "\n" +
			`{"type":"input_audio_buffer.append","audio":"` + strings.Repeat("AAAA", 400) + `"}` + "\n" +
			`{"type":"input_audio_buffer.commit"}`,
		`{"type":"input_audio_buffer.append","audio":"` + strings.Repeat("AECA", 8000) + `"}`,
		`{"type":"conversation.item.create","item":{"id":"a","type":"message","role":"user",` +
			`"content":[{"type":"input_text","text":"fix it on bigpc"}]}}` + "\n" + `{"type":"response.create"}`,
		`{"type":"session.update","session":{"type":"realtime","tools":[{"type":"function","name":"codex"}],` +
			`"tool_choice":"none"}}` + "\n" +
			`{"type":"response.create","response":{"conversation":"none","input":[{"type":"item_reference","id":"a"}],` +
			`"metadata":{"a":"b"}}}`,
		`{"type":"conversation.item.truncate","item_id":"a","content_index":0,"audio_end_ms":-1}` + "\n" +
			`{"type":"conversation.item.delete","item_id":"a"}`,
		`{"type":"session.update","session":{"type":"realtime","audio":{"output":{"voice":{"id":"v"},"speed":0.25}},` +
			`"output_modalities":["text"]}}`,
	} {
		f.Add(frames)
	}
	f.Fuzz(func(t *testing.T, frames string) {
		w := newWorld(t, brainOf())
		for i, frame := range strings.SplitN(frames, "\n", 50) {
			w.s.receive(w.now, []byte(frame))
			w.drain()
			if i%3 == 2 {
				w.pass(time.Second)
			}
		}
		w.pass(59 * time.Minute)
		running := 0
		for _, e := range w.take() {
			if !json.Valid([]byte(e.Raw)) || e.Get("type").Str == "" || e.Get("event_id").Str == "" {
				t.Fatalf("sent %s", e.Raw)
			}
			if e.Get("response.conversation_id").Type == gjson.Null {
				continue
			}
			switch e.Get("type").Str {
			case "response.created":
				running++
			case "response.done":
				running--
			}
			if running < 0 || running > 1 {
				t.Fatalf("%d responses run", running)
			}
		}
		if running != 0 {
			t.Fatal("a response never ends")
		}
	})
}
