package realtime

import (
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/rtc/rtctest"
)

// until reads events up to the last wanted text and returns them all. Nothing of ours may be among them.
func until(t *testing.T, client *websocket.Conn, text string) []string {
	t.Helper()
	_ = client.SetReadDeadline(time.Now().Add(patience))
	var all []string
	for {
		_, event, err := client.ReadMessage()
		if err != nil {
			t.Fatalf("no %q: %v\n%s", text, err, strings.Join(all, "\n"))
		}
		all = append(all, string(event))
		for _, leak := range []string{`"error"`, "codex", "sb_", `"sb"`, "function_call", "list_servers"} {
			if strings.Contains(string(event), leak) {
				t.Errorf("the client saw %s in %s", leak, event)
			}
		}
		if gjson.GetBytes(event, "type").String() == "response.done" && strings.Contains(gjson.GetBytes(event, "response.output").Raw, text) {
			return all
		}
	}
}

func writes(t *testing.T, client *websocket.Conn, text string) {
	t.Helper()
	send(t, client, `{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":`+events.Quote(text)+`}]}}`)
	send(t, client, `{"type":"response.create"}`)
}

// TestSimulatedHandoff is a handoff with the simulated voice model behind a front, and a client that wants text.
func TestSimulatedHandoff(t *testing.T) {
	rtctest.NoLeaks(t)
	router := &listener{on: func(v handoff.Voice, e handoff.VoiceEvent) {
		if r, ok := e.(handoff.FunctionCall); ok {
			v.Say(handoff.Utterance{ID: "early", CallID: r.CallID, Text: `{"status":"started"}`, Floor: handoff.FloorUnlessSpoke})
			v.Say(handoff.Utterance{ID: "late", Text: "All tests pass.", Floor: handoff.FloorAsk})
		}
	}}
	front := runs(t, Config{ModelURL: "ws://" + simulates(t, testsRun()) + "/v1/realtime", Model: "simulator", Router: router, Tools: ours})
	client := connects(t, serves(t, front.ServeWebSocket))
	expect(t, client, "session.created")
	send(t, client, `{"type":"session.update","session":{"type":"realtime","output_modalities":["text"],"tools":[{"type":"function","name":"weather","parameters":{}}]}}`)
	if names := toolNames(expect(t, client, "session.updated"), "session.tools"); names != `["weather"]` {
		t.Errorf("client sees the tools %s", names)
	}
	writes(t, client, "run the tests")
	until(t, client, "One moment.")
	until(t, client, "They pass.")
	_ = client.Close()
	want := []handoff.VoiceEvent{
		handoff.Heard{Text: "run the tests", Typed: true},
		handoff.FunctionCall{Tool: "codex", Arguments: `{"server":"bigpc","prompt":"run the tests"}`},
	}
	said := map[string]int{}
	n := 0
	rtctest.Eventually(t, "both to be confirmed", func() bool {
		for _, e := range router.heard() {
			switch called := e.(type) {
			case handoff.Quiet, handoff.Hint:
				continue
			case handoff.FunctionCall:
				called.CallID = ""
				e = called
			}
			if n < 2 && timeless(e, want[n]) != want[n] {
				t.Errorf("router heard %#v, want %#v", e, want[n])
			}
			if s, ok := e.(handoff.Said); ok {
				said[s.ID]++
			}
			n++
		}
		return said["early"] > 0 && said["late"] > 0
	})
	if said["early"] != 1 || said["late"] != 1 || n < 5 {
		t.Errorf("confirmed %v", said)
	}
}
