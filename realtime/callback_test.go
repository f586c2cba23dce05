package realtime

import (
	"testing"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// A client that cancels hears nothing of what it asked for before, also where that waits here; it sees the end of each.
func TestCancelTakesBackWhatWaits(t *testing.T) {
	play(t, func(s *stage) {
		s.fromModel(began("r1", ""))
		s.fromClient(`{"type":"response.create","event_id":"one","response":{"metadata":{"mine":"1"}}}`, `{"type":"response.create"}`)
		s.client.sent()
		s.fromClient(`{"type":"response.cancel"}`)
		s.wantSent(s.model, "response.cancel")
		got := s.wantSent(s.client, "response.created response.done response.created response.done")
		for i, want := range []string{`{"mine":"1"}`, `{"mine":"1"}`, "null", "null"} {
			if r := gjson.Get(got[i], "response"); r.Get("metadata").Raw != want || r.Get("id").String() == "" || i%2 == 1 && r.Get("status").String() != events.StatusCancelled {
				t.Errorf("%d: %s", i, got[i])
			}
		}
		s.fromModel(done("r1", "", events.StatusCancelled))
		s.wantSent(s.model, "")
		if len(s.call.saying.asks) > 0 {
			t.Error("an ask is remembered")
		}
	})
	play(t, func(s *stage) {
		s.fromModel(began("r1", ""))
		s.fromClient(`{"type":"response.create"}`, `{"type":"response.cancel","response_id":"r1"}`)
		s.wantSent(s.model, "response.cancel")
		s.fromModel(done("r1", "", events.StatusCancelled))
		s.wantSent(s.model, "response.create") // another was meant
	})
}

// The client's tool and ours in one response are answered by one response.
func TestMixedResponseIsAnsweredOnce(t *testing.T) {
	play(t, func(s *stage) {
		s.fromModel(began("r1", ""))
		ours, theirs := callItem("i1", "call_1", "codex", events.StatusCompleted), callItem("i2", "call_2", "weather", events.StatusCompleted)
		s.fromModel(itemDone("r1", ours), itemDone("r1", theirs), done("r1", "", events.StatusCompleted, ours, theirs))
		s.say(handoff.Utterance{ID: "a", CallID: "call_1", Text: "{}", Floor: handoff.FloorAsk})
		s.wantSent(s.model, "conversation.item.create:function_call_output")
		s.fromClient(`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"call_2","output":"sunny"}}`, `{"type":"response.create"}`)
		tag := tagIn(s.wantSent(s.model, "conversation.item.create:function_call_output response.create")[1])
		s.router.heard()
		s.fromModel(began("r2", tag), spoken("r2"), done("r2", tag, events.StatusCompleted))
		s.wantHeard(handoff.Said{ID: "a"})
		s.wantSent(s.model, "")
	})
}

// An error that names no event is kept from the client where it is about what is ours, and nothing of the client's
// can be meant.
func TestErrorsWithoutAnEvent(t *testing.T) {
	fault := func(param, message string) string {
		return `{"type":"error","error":{"type":"invalid_request_error","code":"invalid_value","param":` + events.Quote(param) + `,"message":` + events.Quote(message) + `,"event_id":null}}`
	}
	for _, c := range []struct {
		name, param, message string
		before               string // of the client
		passes               bool
	}{
		{name: "our item", param: "item.content", message: "no"},
		{name: "our item by its id", message: "Item sb_n exists already."},
		{name: "an item of ours or the client's", param: "item.content", message: "no", before: `{"type":"conversation.item.create","item":{"type":"message","role":"user"}}`, passes: true},
		{name: "anything", message: "The server had an error.", passes: true},
		{name: "another's field", param: "audio_end_ms", message: "no", passes: true},
	} {
		play(t, func(s *stage) {
			s.say(handoff.Utterance{ID: "n", Text: "by the way"})
			if c.before != "" {
				s.fromClient(c.before)
			}
			s.fromModel(fault(c.param, c.message))
			if got := len(s.client.sent()) > 0; got != c.passes {
				t.Errorf("%s: passes %t", c.name, got)
			}
		})
	}
	play(t, func(s *stage) {
		s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		s.fromModel(fault("response.metadata", "no"))
		s.wantSent(s.client, "")
	})
	play(t, func(s *stage) {
		s.fromClient(`{"type":"response.create","response":{"metadata":{"a":7}}}`)
		s.fromModel(fault("response.metadata", "no"))
		s.wantSent(s.client, "error")
		s.fromClient(`{"type":"response.create"}`) // the floor is free
		s.wantSent(s.model, "response.create response.create")
	})
}
