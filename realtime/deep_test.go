package realtime

import (
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// deepChild marks the process that reads what may end it.
const deepChild = "SWITCHBOARD_TEST_DEEP"

// deep is JSON that nests as deep as a hostile peer likes, behind a head of fields.
func deep(head string) string { return head + `"a":` + strings.Repeat("[", 1_000_000) }

// TestDeepFrames gives every door of a call JSON that nests a million deep, in a process of its own with a
// small stack: what recurses ends it.
func TestDeepFrames(t *testing.T) {
	if os.Getenv(deepChild) == "" {
		child := exec.Command(os.Args[0], "-test.run=^TestDeepFrames$")
		child.Env = append(os.Environ(), deepChild+"=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out[:min(len(out), 2000)])
		}
		return
	}
	debug.SetMaxStack(1 << 20)
	t.Run("client", testDeepClient)
	t.Run("model", testDeepModel)
	t.Run("offer", func(t *testing.T) {
		fault := CheckSession([]byte(deep("{")))
		if fault == nil || fault.Code != handoff.CodeMalformed {
			t.Errorf("got %v", fault)
		}
	})
}

// testDeepClient also holds that the refusal names the event, and that nothing else is lost.
func testDeepClient(t *testing.T) {
	play(t, func(s *stage) {
		for _, head := range []string{
			`{"type":"x","event_id":"e7",`, `{"event_id":"e7","type":"session.update",`, `{"type":"response.create","event_id":"e7",`,
			`{"type":"conversation.item.create","event_id":"e7",`, `{"type":"input_audio_buffer.append","event_id":"e7","audio":"AAAA",`,
		} {
			s.fromClient(deep(head))
			got := s.wantSent(s.client, "error")[0]
			if gjson.Get(got, "error.type").String() != "invalid_request_error" || gjson.Get(got, "error.event_id").String() != "e7" {
				t.Errorf("refused with %s", got)
			}
		}
		s.fromClient(deep("{"))
		if got := s.wantSent(s.client, "error")[0]; gjson.Get(got, "error.event_id").Type != gjson.Null {
			t.Errorf("refused with %s", got)
		}
		s.wantSent(s.model, "")
		s.fromClient(`{"type":"input_audio_buffer.clear"}`)
		s.wantSent(s.model, "input_audio_buffer.clear")
	})
}

func testDeepModel(t *testing.T) {
	play(t, func(s *stage) {
		for _, kind := range []string{"x", events.TypeSessionUpdated, events.TypeDone, events.TypeAudioDelta, events.TypeError, events.TypeItemDone} {
			s.fromModel(deep(`{"type":"` + kind + `",`))
		}
		s.wantSent(s.client, "")
		if s.call.counts.unreadable != 6 {
			t.Errorf("%d frames were counted", s.call.counts.unreadable)
		}
		s.fromModel(`{"type":"rate_limits.updated"}`)
		s.wantSent(s.client, "rate_limits.updated")
	})
}
