package realtime

import (
	"testing"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// A client has a tool with a name of ours: what the model writes to ours under its other name is hinted, run and
// hidden as ever, what it calls by the name itself is the client's, and so is the history that the client restores.
func TestClash(t *testing.T) {
	for _, own := range []string{"codex", "run_on_server"} {
		t.Run(own, func(t *testing.T) {
			play(t, func(s *stage) {
				other := "switchboard_" + own
				s.fromClient(`{"type":"session.update","session":{"type":"realtime","tools":[{"type":"function","name":"` + own + `"}]}}`)
				s.fromModel(`{"type":"session.updated","session":{}}`)
				old := callItem("item_old", "call_old", own, events.StatusCompleted)
				s.fromClient(`{"type":"conversation.item.create","item":`+old+`}`,
					`{"type":"conversation.item.create","item":{"id":"out_old","type":"function_call_output","call_id":"call_old","output":"done"}}`)
				s.client.sent()
				s.fromModel(itemAdded(old))
				s.wantSent(s.client, "conversation.item.added:function_call")
				s.wantHeard()

				s.fromModel(began("r1", ""), callAdded("r1", "k1", "call_1", other), callAdded("r1", "k2", "call_2", own),
					piece("k1", `{"server":"bigpc"`), piece("k2", `{"server":"theirs"`))
				s.wantStory(`loud; hint call_1 {"server":"bigpc"`)
				s.fromModel(itemDone("r1", callItem("k1", "call_1", other, events.StatusCompleted)), itemDone("r1", callItem("k2", "call_2", own, events.StatusCompleted)))
				s.wantHeard(handoff.FunctionCall{CallID: "call_1", Tool: own, Arguments: `{"server":"bigpc"}`})
				s.say(handoff.Utterance{ID: "a", CallID: "call_1", Text: "{}"})
				for _, event := range s.client.sent() {
					if it := events.ReadItem(gjson.Get(event, "item")); it.CallID == "call_1" || it.Name == other {
						t.Errorf("the client saw %s", event)
					}
				}
			})
		})
	}
}
