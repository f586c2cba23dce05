package realtime

import (
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/floor"
)

func TestSessionBeginsWithOurTools(t *testing.T) {
	playFresh(t, func(s *stage) {
		s.fromModel(freshSession)
		up := s.wantSent(s.model, "session.update session.update")
		if got := gjson.Get(up[0], "session.tools.#.name").String(); got != "["+allTools+"]" {
			t.Errorf("tools %s", got)
		}
		if gjson.Get(up[0], "session.instructions").String() != guide {
			t.Error("no instructions")
		}
		if gjson.Get(up[1], "session.audio.input.transcription.model").String() == "" {
			t.Error("no transcription")
		}
		if got := s.wantSent(s.client, "session.created"); got[0] != freshSession {
			t.Errorf("client saw %s", got[0])
		}
		s.fromModel(`{"type":"session.updated","session":{}}`, `{"type":"session.updated","session":{}}`)
		s.wantSent(s.client, "")
	})
}

// What @openai/agents-realtime does: two updates right after session.created, the second with its tool.
func TestStockClient(t *testing.T) {
	play(t, func(s *stage) {
		s.fromClient(`{"type":"session.update","event_id":"one","session":{"type":"realtime","tracing":"auto"}}`,
			`{"type":"session.update","session":{"type":"realtime","instructions":"mine","tools":[{"type":"function",`+
				`"name":"weather"}],"audio":{"input":{"turn_detection":null}}}}`)
		up := s.wantSent(s.model, "session.update session.update")
		if up[0] != `{"type":"session.update","event_id":"one","session":{"type":"realtime","tracing":"auto"}}` {
			t.Errorf("first update was touched: %s", up[0])
		}
		if got := gjson.Get(up[1], "session.tools.#.name").String(); got != `["weather",`+allTools+"]" {
			t.Errorf("tools %s", got)
		}
		if got := gjson.Get(up[1], "session.audio.input.turn_detection").Raw; got != "null" {
			t.Errorf("explicit null became %q", got)
		}
		echo := `{"type":"session.updated","session":{"instructions":` + events.Quote(guide) + `,"tools":` +
			gjson.Get(up[1], "session.tools").Raw + `}}`
		s.fromModel(echo, strings.Replace(echo, events.Quote(guide), `"mine"`, 1))
		down := s.wantSent(s.client, "session.updated session.updated")
		if gjson.Get(down[0], "session.instructions").String() != "be nice" {
			t.Errorf("first echo %s", down[0])
		}
		if gjson.Get(down[1], "session.instructions").String() != "mine" ||
			gjson.Get(down[1], "session.tools").Raw != `[{"type":"function","name":"weather"}]` {
			t.Errorf("second echo %s", down[1])
		}
	})
}

// When the model begins late, the same client sends everything at once. The response must have our tools.
func TestAskBeforeTheSession(t *testing.T) {
	playFresh(t, func(s *stage) {
		s.fromClient(`{"type":"session.update","session":{"type":"realtime","instructions":"mine"}}`,
			`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text",`+
				`"text":"hi"}]}}`,
			`{"type":"response.create","event_id":"one"}`,
			`{"type":"response.create","event_id":"two","response":{"conversation":"none"}}`)
		s.wantSent(s.model, "session.update conversation.item.create:message")
		s.fromModel(freshSession)
		up := s.wantSent(s.model, "session.update session.update response.create response.create")
		if got := toolNames(up[0], "session.tools"); got != "["+allTools+"]" {
			t.Errorf("tools %s", got)
		}
		if first, second := gjson.Get(up[2], "event_id").String(), toolNames(up[3], "response.tools"); first != "one" ||
			second != "[]" {
			t.Errorf("asked %q first, and out of band with %s", up[2], second)
		}

		s.wantSent(s.client, "session.created")
	})
	playFresh(t, func(s *stage) {
		for range floor.MaxHeld {
			s.fromClient(`{"type":"response.create"}`)
		}
		s.wantSent(s.client, "")
		s.fromClient(`{"type":"response.create","event_id":"more"}`)
		if got := s.wantSent(s.client, "error"); gjson.Get(got[0], "error.event_id").String() != "more" {
			t.Errorf("told %s", got[0])
		}
	})
}

func TestRequestIsHiddenAndAnsweredOnce(t *testing.T) {
	play(t, func(s *stage) {
		it := callItem("item_1", "call_1", "codex", "completed")
		s.fromModel(began("r1", ""),
			`{"type":"response.output_item.added","response_id":"r1","item":`+callItem("item_1", "call_1", "codex",
				"in_progress")+`}`,
			itemAdded(callItem("item_1", "call_1", "codex", "in_progress")),
			`{"type":"response.function_call_arguments.delta","response_id":"r1","item_id":"item_1","call_id":"call_1",`+
				`"delta":"{"}`,
			`{"type":"response.function_call_arguments.done","response_id":"r1","item_id":"item_1","call_id":"call_1",`+
				`"arguments":"{}"}`)
		s.wantHeard() // never on arguments.done
		s.fromModel(itemDone("r1", it))
		s.wantHeard(handoff.FunctionCall{CallID: "call_1", Tool: "codex", Arguments: `{"server":"bigpc"}`})
		s.fromModel(`{"type":"conversation.item.done","previous_item_id":"u1","item":`+it+`}`,
			done("r1", "", "completed", it))
		s.wantHeard()
		down := s.wantSent(s.client, "response.created response.done")
		if gjson.Get(down[1], "response.output").Raw != "[]" ||
			gjson.Get(down[1], "response.status").String() != "completed" {
			t.Errorf("client saw %s", down[1])
		}

		s.say(handoff.Utterance{ID: "h1-a", CallID: "call_1", Text: `{"ok":true}`, Floor: handoff.FloorAsk})
		up := s.wantSent(s.model, "conversation.item.create:function_call_output response.create")
		if gjson.Get(up[0], "item.id").String() != "sb_h1-a" || gjson.Get(up[0], "item.output").String() != `{"ok":true}` {
			t.Errorf("output %s", up[0])
		}
		s.say(handoff.Utterance{ID: "h1-a", CallID: "call_1", Text: "again"})
		s.say(handoff.Utterance{ID: "h1-b", CallID: "call_1", Text: "second"})
		s.say(handoff.Utterance{ID: "h1-c", CallID: "call_9", Text: "nobody asked"})
		s.wantSent(s.model, "")

		tag := tagIn(up[1])
		s.fromModel(itemAdded(`{"id":"sb_h1-a","type":"function_call_output","call_id":"call_1"}`), began("r2", tag),
			spoken("r2"))
		s.wantHeard()
		s.fromModel(done("r2", tag, "completed"))
		s.wantHeard(handoff.Said{ID: "h1-a"})
		down = s.wantSent(s.client, "response.created response.output_audio_transcript.delta response.done")
		if strings.Contains(strings.Join(down, ""), `"sb"`) || gjson.Get(down[0], "response.metadata").Raw != "null" {
			t.Errorf("our mark shows: %s", down)
		}
	})
}

func TestNoRequest(t *testing.T) {
	for name, status := range map[string]string{"cancelled": "cancelled", "incomplete": "incomplete",
		"running": "in_progress"} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				it := callItem("item_1", "call_1", "codex", status)
				s.fromModel(began("r1", ""), itemDone("r1", it), `{"type":"conversation.item.done","item":`+it+`}`,
					done("r1", "", "cancelled", it))
				s.wantHeard()
				s.wantSent(s.client, "response.created response.done")
			})
		})
	}
	t.Run("another's tool", func(t *testing.T) {
		play(t, func(s *stage) {
			it := callItem("item_1", "call_1", "weather", "completed")
			s.fromModel(began("r1", ""), itemDone("r1", it), done("r1", "", "completed", it))
			s.wantHeard()
			s.wantSent(s.client, "response.created response.output_item.done:function_call response.done")
		})
	})
}

func TestRequestFromTheEndOfAResponse(t *testing.T) {
	play(t, func(s *stage) {
		s.fromModel(began("r1", ""), done("r1", "", "completed", callItem("item_1", "call_1", "list_servers", "")))
		s.wantHeard(handoff.FunctionCall{CallID: "call_1", Tool: "list_servers", Arguments: `{"server":"bigpc"}`})
	})
}

func TestUnlessSpoke(t *testing.T) {
	for _, c := range []struct {
		name, says, want string
	}{
		{"it said something", spoken("r1"), "conversation.item.create:function_call_output"},
		{"it said nothing", `{"type":"rate_limits.updated"}`,
			"conversation.item.create:function_call_output response.create"},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, func(s *stage) {
				it := callItem("item_1", "call_1", "codex", "completed")
				s.fromModel(began("r1", ""), c.says, itemDone("r1", it))
				s.say(handoff.Utterance{ID: "a", CallID: "call_1", Text: "1", Floor: handoff.FloorUnlessSpoke})
				s.fromModel(itemAdded(`{"id":"sb_a","type":"function_call_output","call_id":"call_1"}`),
					done("r1", "", "completed", it))
				s.wantSent(s.model, c.want)
				if strings.HasSuffix(c.want, "output") {
					s.wantHeard(handoff.FunctionCall{CallID: "call_1", Tool: "codex", Arguments: `{"server":"bigpc"}`},
						handoff.Said{ID: "a"})
				}
			})
		})
	}
}

func TestBargeIn(t *testing.T) {
	play(t, func(s *stage) {
		s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		tag := tagIn(s.wantSent(s.model, "conversation.item.create:message response.create")[1])
		s.fromModel(itemAdded(`{"id":"sb_n","type":"message"}`), began("r1", tag), audio("r1", 10*time.Second))
		s.wait(time.Second)
		s.fromModel(`{"type":"input_audio_buffer.speech_started"}`, done("r1", tag, "cancelled"))
		s.wantHeard(handoff.Said{ID: "n", At: time.Now(), Cut: true, Share: 0.1}) // they heard it until they spoke
		s.fromClient(`{"type":"conversation.item.truncate","item_id":"i","content_index":0,"audio_end_ms":10}`)
		s.say(handoff.Utterance{ID: "m", Text: "more", Floor: handoff.FloorAsk})
		s.fromModel(`{"type":"input_audio_buffer.speech_stopped"}`, began("r2", ""), done("r2", "", "completed"))
		s.wantSent(s.model, "conversation.item.truncate conversation.item.create:message response.create")
	})
}

func TestSilentUtterance(t *testing.T) {
	play(t, func(s *stage) {
		s.say(handoff.Utterance{ID: "n", Text: "a note", Floor: handoff.FloorNone})
		up := s.wantSent(s.model, "conversation.item.create:message")
		if gjson.Get(up[0], "item.role").String() != "system" ||
			gjson.Get(up[0], "item.content.0.text").String() != "a note" {
			t.Errorf("message %s", up[0])
		}
		s.wantHeard()
		s.fromModel(itemAdded(`{"id":"sb_n","type":"message"}`))
		s.wantHeard(handoff.Said{ID: "n"})
		s.say(handoff.Utterance{ID: "n", Text: "a note", Floor: handoff.FloorAsk})
		s.wantSent(s.model, "") // delivered once
		s.wantSent(s.client, "")
	})
}

func TestWelcomeWaitsForTheClientsSession(t *testing.T) {
	playFresh(t, func(s *stage) {
		s.say(handoff.Utterance{ID: "w", Text: "two things finished", Floor: handoff.FloorAsk})
		s.wantSent(s.model, "")
		s.fromModel(freshSession)
		s.fromClient(`{"type":"session.update","session":{"type":"realtime","audio":{"output":{"voice":"cedar"}}}}`)
		s.wantSent(s.model, "session.update session.update session.update")
		s.fromModel(`{"type":"session.updated","session":{}}`, `{"type":"session.updated","session":{}}`)
		s.wantSent(s.model, "")
		s.fromModel(`{"type":"session.updated","session":{}}`)
		s.wantSent(s.model, "conversation.item.create:message response.create")
	})
}

// Our speech does not ride on a response that does not read the conversation, and rides on the client's next one if the
// first only calls the client's function.
func TestRidingAlongNeedsTheConversation(t *testing.T) {
	play(t, func(s *stage) {
		s.fromClient(`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"turn_detection":null}}}}`)
		s.model.sent()
		s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		s.fromClient(`{"type":"response.create","response":{"input":[]}}`)
		tag := tagIn(s.wantSent(s.model, "response.create")[0])
		s.fromModel(began("r1", tag), spoken("r1"), done("r1", tag, "completed"))
		s.fromClient(`{"type":"response.create","response":{"tool_choice":{"type":"function","name":"weather"}}}`)
		tag = tagIn(s.wantSent(s.model, "conversation.item.create:message response.create")[1])
		it := callItem("item_1", "call_1", "weather", events.StatusCompleted)
		s.fromModel(began("r2", tag), itemDone("r2", it), done("r2", tag, "completed", it))
		s.wantHeard()
		s.fromClient(`{"type":"response.create"}`)
		tag = tagIn(s.wantSent(s.model, "response.create")[0])
		s.fromModel(began("r3", tag), spoken("r3"), done("r3", tag, "completed"))
		s.wantHeard(handoff.Said{ID: "n"})
	})
}
