package realtime

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/rtc/rtctest"
	"switchboard/realtime/simulator"
)

// simulated is a front with the simulated voice model behind it and a client before it that wants text.
func simulated(t *testing.T, script *simulator.Script, router *listener) *websocket.Conn {
	rtctest.NoLeaks(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	front, err := NewFront(Config{ModelURL: "ws://" + l.Addr().String() + "/v1/realtime", Model: "simulator", Router: router, Tools: ours})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 2)
	go func() { ran <- simulator.New(simulator.Config{Script: script}).Serve(ctx, l) }()
	go func() { ran <- front.Run(ctx) }()
	edge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { front.ServeWebSocket(w, r, someone) }))
	client, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(edge.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		stop()
		for range 2 {
			if err := <-ran; err != nil {
				t.Error(err)
			}
		}
		edge.Close()
	})
	expect(t, client, "session.created")
	send(t, client, `{"type":"session.update","session":{"type":"realtime","output_modalities":["text"],"tools":[{"type":"function","name":"weather","parameters":{}}]}}`)
	got := expect(t, client, "session.updated")
	if names := toolNames(got, "session.tools"); names != `["weather"]` {
		t.Errorf("client sees the tools %s", names)
	}
	return client
}

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

func TestSimulatedHandoff(t *testing.T) {
	router := &listener{on: func(v handoff.Voice, e handoff.Event) {
		if r, ok := e.(handoff.FunctionCall); ok {
			v.Say(handoff.Utterance{ID: "early", CallID: r.CallID, Text: `{"status":"started"}`, Floor: handoff.FloorUnlessSpoke})
			v.Say(handoff.Utterance{ID: "late", Text: "All tests pass.", Floor: handoff.FloorAsk})
		}
	}}
	client := simulated(t, &simulator.Script{Steps: []simulator.Step{
		{On: simulator.Text("tests"), Do: []simulator.Move{
			simulator.Say{Text: "One moment."},
			simulator.Call{Tool: "codex", Arguments: `{"server":"bigpc","prompt":"run the tests"}`, ID: "call_1", Twice: true},
		}},
		{On: simulator.Message("all tests pass"), Do: []simulator.Move{simulator.Say{Text: "They pass."}}},
	}}, router)
	writes(t, client, "run the tests")
	until(t, client, "One moment.")
	until(t, client, "They pass.")
	_ = client.Close()
	want := []handoff.Event{
		handoff.Heard{Text: "run the tests", Typed: true},
		handoff.FunctionCall{CallID: "call_1", Tool: "codex", Arguments: `{"server":"bigpc","prompt":"run the tests"}`},
	}
	said := map[string]int{}
	n := 0
	rtctest.Eventually(t, "five events", func() bool {
		for _, e := range router.heard() {
			switch e.(type) {
			case handoff.Quiet, handoff.Hint:
				continue
			}
			if n < 2 && timeless(e, want[n]) != want[n] {
				t.Errorf("router heard %#v, want %#v", e, want[n])
			}
			if s, ok := e.(handoff.Said); ok {
				said[s.ID]++
			}
			n++
		}
		return n >= 5
	})
	if said["early"] != 1 || said["late"] != 1 {
		t.Errorf("confirmed %v", said)
	}
}

func TestSimulatedSiblings(t *testing.T) {
	router := &listener{on: func(v handoff.Voice, e handoff.Event) {
		if r, ok := e.(handoff.FunctionCall); ok {
			v.Say(handoff.Utterance{ID: "a-" + r.CallID, CallID: r.CallID, Text: "{}", Floor: handoff.FloorAsk})
		}
	}}
	both := func(h simulator.Heard) bool { return len(h.Outputs) == 3 }
	client := simulated(t, &simulator.Script{Steps: []simulator.Step{
		{On: simulator.Text("everything"), Do: []simulator.Move{
			simulator.Call{Tool: "codex", Arguments: `{}`, ID: "call_1"},
			simulator.Call{Tool: "list_servers", Arguments: `{}`, ID: "call_2"},
			simulator.Call{Tool: "codex", Arguments: `{"server`, ID: "call_3", Late: true},
		}},
		{On: both, Do: []simulator.Move{simulator.Say{Text: "All three."}}},
	}}, router)
	writes(t, client, "everything")
	responses := 0
	for _, event := range until(t, client, "All three.") {
		if gjson.Get(event, "type").String() == "response.created" {
			responses++
		}
	}
	if responses != 2 {
		t.Errorf("%d responses", responses)
	}
}

func TestSimulatedSpeech(t *testing.T) {
	now := make(chan simulator.Event, 1)
	router := &listener{}
	client := simulated(t, &simulator.Script{
		Steps:       []simulator.Step{{On: simulator.Text("hello"), Do: []simulator.Move{simulator.Say{Text: "Hello to you."}}}},
		Transcripts: nil, Now: now,
	}, router)
	now <- simulator.Hear{Text: "hello there", For: 50 * time.Millisecond}
	for _, event := range until(t, client, "Hello to you.") {
		if strings.Contains(event, "input_audio_transcription") {
			t.Errorf("the client did not ask for %s", event)
		}
	}
	rtctest.Eventually(t, "words of the caller", func() bool { return len(router.heard()) > 0 }) // our transcription was on
}
