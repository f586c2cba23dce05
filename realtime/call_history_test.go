package realtime

import (
	"testing"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// TestRestoredHistoryIsNotRun gives a call what LiveKit gives on every reconnect: the function calls of an
// earlier session, with their outputs. They are the client's own items: seen by it, untouched, and never run.
func TestRestoredHistoryIsNotRun(t *testing.T) {
	restore := func(it string) string { return `{"type":"conversation.item.create","item":` + it + `}` }
	event := func(kind, it string) string {
		return `{"type":"conversation.item.` + kind + `","previous_item_id":null,"item":` + it + `}`
	}
	old := callItem("item_old", "call_old", "codex", events.StatusCompleted)
	nameless := `{"type":"function_call","call_id":"call_old","name":"codex","arguments":"{\"server\":\"bigpc\"}"}`
	output := `{"id":"item_out","type":"function_call_output","call_id":"call_old","output":"done"}`
	for name, put := range map[string]string{"as it was": old, "without its id": nameless} {
		t.Run(name, func(t *testing.T) {
			for when, begin := range map[string]string{"in peace": "", "in a response": began("r1", "")} {
				t.Run(when, func(t *testing.T) {
					play(t, func(s *stage) {
						if begin != "" {
							s.fromModel(begin)
							s.client.sent()
						}
						s.fromClient(restore(put), restore(output))
						got := s.wantSent(s.model,
							"conversation.item.create:function_call conversation.item.create:function_call_output")
						if got[0] != restore(put) || got[1] != restore(output) {
							t.Errorf("history was touched: %s", got)
						}
						s.fromModel(event("added", old), event("done", old), event("created", old), event("added", output),
							event("done", output))
						s.wantHeard()
						got = s.wantSent(s.client,
							"conversation.item.added:function_call conversation.item.done:function_call "+
								"conversation.item.created:function_call "+
								"conversation.item.added:function_call_output conversation.item.done:function_call_output")
						if got[0] != event("added", old) || got[1] != event("done", old) {
							t.Errorf("the client saw %s", got)
						}
						s.fromClient(`{"type":"conversation.item.delete","item_id":"item_old"}`)
						s.wantSent(s.model, "conversation.item.delete")
						s.wantSent(s.client, "")
					})
				})
			}
		})
	}
}

// TestOwnRequestBesideHistory holds that a request of the model is run and hidden also where its id was seen
// in a client's history: servers count anew in every session.
func TestOwnRequestBesideHistory(t *testing.T) {
	play(t, func(s *stage) {
		old := callItem("item_old", "call_1", "codex", events.StatusCompleted)
		s.fromClient(`{"type":"conversation.item.create","item":` + old + `}`)
		s.fromModel(itemAdded(old))
		s.client.sent()
		s.requests("r1", "call_1")
		for _, e := range s.client.sent() {
			if gjson.Get(e, "item.type").String() == events.ItemCall || len(gjson.Get(e, "response.output").Array()) > 0 {
				t.Errorf("the client saw %s", e)
			}
		}
		s.wantHeard(handoff.FunctionCall{CallID: "call_1", Tool: "codex", Arguments: `{"server":"bigpc"}`})
	})
}
