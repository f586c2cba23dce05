package realtime

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/realtime/floor"
)

// TestSaidInWords: what was said comes with the words that the model wrote down, also after many others;
// where it wrote none, or they are long ago, there are none.
func TestSaidInWords(t *testing.T) {
	message := func(parts string) string {
		return `{"id":"i","type":"message","role":"assistant","status":"completed","content":[` + parts + `]}`
	}
	for name, c := range map[string]struct {
		items []string
		other int // responses while it is heard
		want  string
	}{
		"spoken":        {[]string{message(`{"type":"output_audio","transcript":" Bigpc asks. "},{"type":"output_audio","transcript":"May it?"}`)}, 0, "Bigpc asks. May it?"},
		"written":       {[]string{message(`{"type":"output_text","text":"Bigpc asks."}`)}, maxSaid - 2, "Bigpc asks."},
		"two items":     {[]string{message(`{"type":"output_text","text":"One."}`), message(`{"type":"output_text","text":"Two."}`)}, 0, "One. Two."},
		"nothing":       {nil, 0, ""},
		"no transcript": {[]string{message(`{"type":"output_audio"}`)}, 0, ""},
		"forgotten":     {[]string{message(`{"type":"output_text","text":"Bigpc asks."}`)}, maxSaid, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				call := newCall(someone, ours, "rtc_test", newWire(), newWire(), nopLog())
				for _, e := range []string{freshSession, began("r0", ""), done("r0", "", "completed")} {
					call.fromModel([]byte(e))
				}
				call.saying.tell(floor.Configured{})
				call.saying.say(handoff.Utterance{ID: "n", Text: "ask", Floor: handoff.FloorAsk})
				call.fromModel([]byte(began("r1", "a1")))
				call.fromModel([]byte(audio("r1", time.Second)))
				call.fromModel([]byte(done("r1", "a1", "completed", c.items...)))
				for i := range c.other {
					id := fmt.Sprint("other", i)
					call.fromModel([]byte(began(id, "")))
					call.fromModel([]byte(done(id, "", "completed", message(`{"type":"output_text","text":"hm"}`))))
				}
				time.Sleep(time.Second)
				call.hearing.overhear(time.Now(), call.hearing.playback.drain(time.Now()))
				var said []handoff.Said
				for _, e := range call.pending {
					if s, ok := e.(handoff.Said); ok {
						said = append(said, s)
					}
				}
				if len(said) != 1 || said[0].Text != c.want {
					t.Errorf("said %+v", said)
				}
			})
		})
	}
}
