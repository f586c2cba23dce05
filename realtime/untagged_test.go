package realtime

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/floor"
)

// untag plays a model that keeps no metadata, until the floor has noticed that.
func untag(s *stage) {
	s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
	s.fromModel(began("r0", ""), spoken("r0"), done("r0", "", events.StatusCompleted))
	s.wait(15 * time.Second)
	s.wantHeard(handoff.Said{ID: "n"})
	s.model.sent()
	s.client.sent()
}

// A response may bring tools of its own, one of them with a name of ours, at a model that keeps no metadata: what is
// called by that name is the client's, and ours is called by its other name.
func TestClashWithoutMetadata(t *testing.T) {
	play(t, func(s *stage) {
		untag(s)
		s.fromClient(`{"type":"response.create","event_id":"mine","response":{"tools":[{"type":"function","name":"codex"}]}}`)
		s.wantSent(s.model, "response.create")
		theirs, own := callItem("k1", "call_1", "codex", events.StatusCompleted), callItem("k2", "call_2",
			"switchboard_codex", events.StatusCompleted)
		s.fromModel(began("r1", ""), itemDone("r1", theirs), itemDone("r1", own),
			done("r1", "", events.StatusCompleted, theirs, own))
		s.wantHeard(handoff.FunctionCall{CallID: "call_2", Tool: "codex", Arguments: `{"server":"bigpc"}`})
		seen := false
		for _, e := range s.client.sent() {
			for _, it := range append(gjson.Get(e, "response.output").Array(), gjson.Get(e, "item")) {
				if it.Get("call_id").String() == "call_2" {
					t.Errorf("the client saw %s", e)
				}
				seen = seen || it.Get("call_id").String() == "call_1"
			}
		}
		if !seen {
			t.Error("the client did not see its own call")
		}
	})
}

// What a client asked for is forgotten once it was answered, also at a model that keeps no metadata: a call may be
// long.
func TestAsksWithoutMetadataAreForgotten(t *testing.T) {
	play(t, func(s *stage) {
		untag(s)
		before := len(s.call.saying.sent) + len(s.call.saying.asks)
		for i := range 1100 { // more than may be open
			s.fromClient(fmt.Sprintf(`{"type":"response.create","event_id":"e%d","response":{"tools":[{"type":"function",`+
				`"name":"weather"}]}}`, i))
			s.wantSent(s.model, "response.create")
			id := fmt.Sprint("r", i+1)
			s.fromModel(began(id, ""), done(id, "", events.StatusCompleted,
				`{"id":"m`+id+`","type":"message","content":[{"type":"output_text","text":"x"}]}`))
			s.client.sent()
		}
		if after := len(s.call.saying.sent) + len(s.call.saying.asks); after > before {
			t.Errorf("%d asks are remembered, %d before", after, before)
		}
		select {
		case <-s.ended:
			t.Fatal("the call has ended")
		default:
		}
	})
}

// The end of a response that was given up comes late: the ask that is on the wire by then is not answered by it, and
// comes again when it is refused.
func TestLateEndWithoutMetadata(t *testing.T) {
	play(t, func(s *stage) {
		untag(s)
		s.fromClient(`{"type":"response.create","event_id":"one"}`)
		s.wantSent(s.model, "response.create")
		s.fromModel(began("r1", ""))
		s.wait(2 * floor.Delay[floor.TimerRun])
		s.fromClient(`{"type":"response.create","event_id":"two"}`)
		second := s.wantSent(s.model, "response.create")[0]
		s.fromModel(done("r1", "", events.StatusCancelled), refusal("two"))
		if all := types(s.client.sent()); strings.Contains(all, "error") {
			t.Errorf("the client saw %s", all)
		}
		s.fromModel(began("vad", ""), done("vad", "", events.StatusCompleted))
		if again := s.wantSent(s.model, "response.create")[0]; again != second {
			t.Errorf("%s became %s", second, again)
		}
	})
}

// An answer without metadata to our first ask may hold no word either: what was asked for is not told by it.
func TestFunctionWithoutMetadataTellsNothing(t *testing.T) {
	play(t, func(s *stage) {
		s.asks("n")
		it := callItem("item_1", "call_1", "open_door", events.StatusCompleted)
		s.fromModel(began("r1", ""), itemDone("r1", it), done("r1", "", events.StatusCompleted, it))
		s.wait(5 * time.Second)
		s.wantSent(s.model, "response.create")
		s.router.heard()
		s.fromModel(began("r2", ""), spoken("r2"), done("r2", "", events.StatusCompleted))
		s.wantHeard(handoff.Said{ID: "n"})
	})
}
