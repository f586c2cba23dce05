package simulator

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"switchboard/handoff/tools"
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
		w := newWorld(t, newBrain(new(atomic.Bool)))
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

func FuzzSound(f *testing.F) {
	f.Add([]byte{1, 2, 3}, uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, kind uint8) {
		format := formats()[kind%3]
		samples, rest := format.decodeSamples(data)
		if size := len(coded(format, []int16{0})); len(samples)*size+len(rest) != len(data) {
			t.Errorf("%d bytes became %d samples and %d bytes", len(data), len(samples), len(rest))
		}
		var d detector
		for len(samples) > 0 {
			n, _ := d.samples(samples, format.rate(), vadSettings{level: 500, silence: 0})
			if n <= 0 || n > len(samples) {
				t.Fatalf("took %d of %d", n, len(samples))
			}
			samples = samples[n:]
		}
	})
}

// FuzzSentences says anything: work has words, and nothing that calls no tool by its name stops work in one word.
func FuzzSentences(f *testing.F) {
	for _, c := range sentencesKnown {
		f.Add(c.said)
	}
	f.Fuzz(func(t *testing.T, said string) {
		b := newBrain(new(atomic.Bool))
		b.machine = "bigpc"
		for _, m := range b.reply(Heard{Nth: 2, Texts: []string{said}, Tools: []string{tools.Codex, tools.StopWork}}) {
			c, ok := m.(Call)
			if !ok || strings.HasPrefix(strings.TrimSpace(said), c.Tool) {
				continue
			}
			if c.Tool == tools.Codex && gjson.Get(c.Arguments, "prompt").String() == "" ||
				c.Tool == tools.StopWork && len(strings.Fields(said)) < 2 {
				t.Errorf("%q became %s", said, c.Arguments)
			}
		}
	})
}
