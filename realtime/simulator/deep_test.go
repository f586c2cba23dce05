package simulator

import (
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// TestDeepFrames gives the simulated model JSON that nests a million deep, as an event and as the text inside of one,
// with a small stack: a recursing parser would crash the test.
func TestDeepFrames(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20))
	brackets := strings.Repeat("[", 1_000_000)
	w := newWorld(t, brainOf())
	for _, frame := range []string{
		`{"type":"x","a":` + brackets,
		`{"type":"conversation.item.create","item":{"type":"function_call","call_id":"c","name":"codex","arguments":"` +
			brackets + `"}}`,
		`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"c","output":"` + brackets +
			`"}}`,
		`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"c","output":"{\"items\":` +
			brackets + `"}}`,
		`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text",` +
			`"text":"the second one"}]}}`,
		`{"type":"response.create"}`,
	} {
		w.s.receive(w.now, []byte(frame))
		w.drain()
	}
	w.pass(time.Minute)
	refused, answered := 0, 0
	for _, e := range w.take() {
		switch e.Get("type").Str {
		case "error":
			refused++
		case "response.done":
			answered++
		}
	}
	if refused != 1 || answered != 1 {
		t.Errorf("%d frames were refused and %d responses came, want 1 and 1", refused, answered)
	}
}
