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

func refusal(eventID string) string {
	id := "null"
	if eventID != "" {
		id = events.Quote(eventID)
	}
	return `{"type":"error","event_id":"e","error":{"type":"invalid_request_error",` +
		`"code":"conversation_already_has_active_response","message":"wait","param":null,"event_id":` + id + `}}`
}

func eventID(event string) string { return gjson.Get(event, "event_id").String() }

func TestClientAsksWaitTheirTurn(t *testing.T) {
	play(t, func(s *stage) {
		s.fromModel(began("r1", ""))
		s.fromClient(`{"type":"response.create","event_id":"one"}`,
			`{"type":"response.create","response":{"instructions":"two"}}`)
		s.wantSent(s.model, "")
		s.fromModel(done("r1", "", "completed"))
		first := s.wantSent(s.model, "response.create")[0]
		if eventID(first) != "one" {
			t.Errorf("first is %s", first)
		}
		s.fromModel(began("r2", tagIn(first)), done("r2", tagIn(first), "completed"))
		second := s.wantSent(s.model, "response.create")[0]
		if gjson.Get(second, "response.instructions").String() != "two" || eventID(second) == "" {
			t.Errorf("second is %s", second)
		}
	})
}

func TestRefusedAsksComeAgainUnseen(t *testing.T) {
	for _, named := range []bool{true, false} {
		play(t, func(s *stage) {
			s.fromClient(`{"type":"response.create"}`)
			first := s.wantSent(s.model, "response.create")[0]
			id := ""
			if named {
				id = eventID(first)
			}
			s.fromModel(began("vad", ""), refusal(id))
			s.wantSent(s.client, "response.created")
			s.fromModel(done("vad", "", "completed"))
			again := s.wantSent(s.model, "response.create")[0]
			if again != first {
				t.Errorf("%s became %s", first, again)
			}
			s.fromModel(began("r1", tagIn(again)))
			s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
			s.fromModel(done("r1", tagIn(again), "completed"))
			ours := s.wantSent(s.model, "conversation.item.create:message response.create")[1]
			if named {
				id = eventID(ours)
			}
			s.fromModel(began("vad2", ""), refusal(id), done("vad2", "", "completed"))
			s.wantSent(s.model, "response.create")
			if strings.Contains(types(s.client.sent()), "error") {
				t.Error("the client saw a refusal")
			}
		})
	}
}

func TestClientErrorsPassWithTheirOwnID(t *testing.T) {
	fault := func(id string) string {
		return `{"type":"error","error":{"type":"invalid_request_error","code":"invalid_value","message":"no","event_id":` +
			events.Quote(id) + `}}`
	}
	play(t, func(s *stage) {
		s.fromClient(`{"type":"response.create","event_id":"mine"}`)
		s.wantSent(s.model, "response.create")
		s.fromModel(fault("mine"))
		if got := s.wantSent(s.client, "error")[0]; got != fault("mine") {
			t.Errorf("client saw %s", got)
		}
		s.fromClient(`{"type":"response.create"}`) // the floor is free again
		adopted := eventID(s.wantSent(s.model, "response.create")[0])
		s.fromModel(fault(adopted))
		if got := s.wantSent(s.client, "error")[0]; gjson.Get(got, "error.event_id").Raw != "null" {
			t.Errorf("client saw %s", got)
		}
		s.fromClient(`{"type":"session.update","session":{"type":"realtime","speed":9}}`)
		adopted = eventID(s.wantSent(s.model, "session.update")[0])
		s.fromModel(fault(adopted))
		if got := s.wantSent(s.client, "error")[0]; gjson.Get(got, "error.event_id").Raw != "null" {
			t.Errorf("client saw %s", got)
		}
		s.fromModel(fault("unheard of"), fault(s.call.ids.Next()))
		s.wantSent(s.client, "error")
	})
}

func TestOutOfBandPassesStraight(t *testing.T) {
	play(t, func(s *stage) {
		s.fromModel(began("r1", ""))
		s.fromClient(`{"type":"response.create","response":{"conversation":"none","metadata":{"topic":"x"}}}`)
		up := s.wantSent(s.model, "response.create")[0]
		if gjson.Get(up, "response.tools").Raw != "[]" ||
			gjson.Get(up, "response.metadata").Raw != `{"topic":"x","sb":"out"}` {
			t.Errorf("sent %s", up)
		}
		s.client.sent()
		meta := `"metadata":{"topic":"x","sb":"out"}`
		s.fromModel(`{"type":"response.created","response":{"id":"o1","status":"in_progress",`+meta+`}}`,
			done("r1", "", "completed"))
		s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		s.wantSent(s.model, "conversation.item.create:message response.create") // o1 still runs
		s.fromModel(`{"type":"response.done","response":{"id":"o1","status":"completed",` + meta + `}}`)
		down := s.wantSent(s.client, "response.created response.done response.done")
		if gjson.Get(down[0], "response.metadata").Raw != `{"topic":"x"}` {
			t.Errorf("client saw %s", down[0])
		}
	})
}

// A server that keeps no metadata: the floor must neither hang nor speak twice.
func TestModelWithoutMetadata(t *testing.T) {
	play(t, func(s *stage) {
		s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		s.wantSent(s.model, "conversation.item.create:message response.create")
		s.fromModel(began("r1", ""), spoken("r1"), done("r1", "", "completed"))
		s.wait(4 * time.Second)
		s.wantHeard(handoff.Said{ID: "n"})
		s.wantSent(s.model, "")
		s.fromClient(`{"type":"response.create"}`)
		s.wantSent(s.model, "response.create")
		s.fromModel(began("r2", ""), done("r2", "", "completed"))
		s.fromClient(`{"type":"response.create"}`)
		s.wantSent(s.model, "response.create") // at once: it has learned
	})
}

func TestTooManyAsks(t *testing.T) {
	play(t, func(s *stage) {
		s.fromModel(began("r1", ""))
		s.client.sent()
		for range floor.MaxHeld {
			s.fromClient(`{"type":"response.create"}`)
		}
		s.wantSent(s.client, "")
		s.fromClient(`{"type":"response.create","event_id":"last"}`)
		if got := s.wantSent(s.client, "error")[0]; gjson.Get(got, "error.event_id").String() != "last" {
			t.Errorf("client saw %s", got)
		}
	})
}

func TestRefusedItemsAreSaidOtherwise(t *testing.T) {
	fault := func(id string) string {
		return `{"type":"error","error":{"type":"invalid_request_error","code":"item_not_found","event_id":` +
			events.Quote(id) + `}}`
	}
	play(t, func(s *stage) {
		s.requests("r1", "call_1")
		s.router.heard()
		s.say(handoff.Utterance{ID: "a", CallID: "call_1", Text: "1", Floor: handoff.FloorNone})
		s.fromModel(fault(eventID(s.wantSent(s.model, "conversation.item.create:function_call_output")[0])))
		up := s.wantSent(s.model, "conversation.item.create:message")[0]
		s.fromModel(itemAdded(`{"id":` + gjson.Get(up, "item.id").Raw + `,"type":"message"}`))
		s.wantHeard(handoff.Said{ID: "a"})
		s.say(handoff.Utterance{ID: "b", Text: "1", Floor: handoff.FloorNone})
		s.fromModel(fault(eventID(s.wantSent(s.model, "conversation.item.create:message")[0])))
		s.wantSent(s.model, "")
		s.wantHeard() // it was not said; the router keeps it
		if got := types(s.client.sent()); strings.Contains(got, "error") || strings.Contains(got, "item") {
			t.Errorf("the client saw %s", got)
		}
	})
}

// Typed words count as typed into the voice while it is heard and for a moment after it, not while the model has not
// begun to speak.
func TestTypedInto(t *testing.T) {
	play(t, func(s *stage) {
		typed := func(into bool) {
			t.Helper()
			s.router.heard()
			s.fromClient(`{"type":"conversation.item.create","item":{"type":"message","role":"user",` +
				`"content":[{"type":"input_text","text":"stop"}]}}`)
			s.wantHeard(handoff.Heard{Text: "stop", Typed: true, Into: into})
		}
		s.fromModel(began("r1", ""))
		typed(false)
		s.fromModel(audio("r1", 2*time.Second))
		typed(true)
		s.fromModel(done("r1", "", events.StatusCompleted))
		s.wait(2 * time.Second)
		typed(true)
		s.wait(2 * time.Second)
		s.fromModel(began("r2", ""))
		typed(false)
	})
}

func TestHeard(t *testing.T) {
	play(t, func(s *stage) {
		s.fromClient(`{"type":"conversation.item.create","item":{"type":"message","role":"user",`+
			`"content":[{"type":"input_text","text":"run"},{"type":"input_text","text":"the tests"}]}}`,
			`{"type":"conversation.item.create","item":{"type":"message","role":"system","content":[{"type":"input_text",`+
				`"text":"hint"}]}}`)
		s.wantHeard(handoff.Heard{Text: "run the tests", Typed: true})
		s.fromModel(`{"type":"conversation.item.input_audio_transcription.completed","item_id":"u1","transcript":" hello "}`)
		s.wantHeard(handoff.Heard{Text: "hello"})
		s.fromModel(`{"type":"conversation.item.input_audio_transcription.failed","item_id":"u1","error":{"code":"x"}}`)
		s.wantHeard(handoff.Heard{Lost: true})
		s.wantSent(s.client, "") // ours: the client did not ask for transcription
		s.fromClient(`{"type":"session.update","session":{"type":"realtime",` +
			`"audio":{"input":{"transcription":{"model":"whisper-1"}}}}}`)
		s.fromModel(`{"type":"session.updated","session":{"audio":{"input":{"transcription":{"model":"whisper-1"}}}}}`,
			`{"type":"conversation.item.input_audio_transcription.completed","item_id":"u2","transcript":"again"}`)
		down := s.wantSent(s.client, "session.updated conversation.item.input_audio_transcription.completed")
		if gjson.Get(down[0], "session.audio.input.transcription.model").String() != "whisper-1" {
			t.Errorf("client saw %s", down[0])
		}
		s.wantHeard(handoff.Heard{Text: "again"})
	})
}

func TestLeakedOutputIsDropped(t *testing.T) {
	play(t, func(s *stage) {
		s.requests("r1", "call_1")
		s.fromClient(`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"call_1",` +
			`"output":"Tool codex not found"}}`)
		s.wantSent(s.model, "")
		s.fromClient(`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"call_2",` +
			`"output":"sunny"}}`)
		s.wantSent(s.model, "conversation.item.create:function_call_output")
	})
}

func TestBadJSONIsAnsweredAndNothingIsLost(t *testing.T) {
	play(t, func(s *stage) {
		for _, bad := range []string{"", "{", "[]", "null", `"x"`, `{"type":"response.create"`,
			`{"type":"input_audio_buffer.append","audio":"`} {
			s.fromClient(bad)
			if got := s.wantSent(s.client, "error")[0]; gjson.Get(got, "error.type").String() != "invalid_request_error" {
				t.Errorf("for %q: %s", bad, got)
			}
		}
		s.fromClient(`{"type":"input_audio_buffer.append","audio":"AAAA"}`, `{"type":"made.up","x":[1.0,null]}`)
		up := s.model.sent()
		if len(up) != 2 || up[0] != `{"type":"input_audio_buffer.append","audio":"AAAA"}` ||
			up[1] != `{"type":"made.up","x":[1.0,null]}` {
			t.Errorf("sent %s", up)
		}
	})
}

// A refused change of turn detection changes nothing: we go on speaking without being asked.
func TestRefusedTurnDetection(t *testing.T) {
	play(t, func(s *stage) {
		s.fromClient(`{"type":"session.update","event_id":"bad","session":{"type":"realtime",` +
			`"audio":{"input":{"turn_detection":null}}}}`)
		s.wantSent(s.model, "session.update")
		s.fromModel(`{"type":"error","error":{"type":"invalid_request_error","code":"invalid_value","event_id":"bad"}}`)
		s.wantSent(s.client, "error")
		s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		s.wantSent(s.model, "conversation.item.create:message response.create")
	})
}

// A client that cancels gets nothing of what it asked for before, also if the ask still waits here; it sees the end of
// each response.
func TestCancelTakesBackWhatWaits(t *testing.T) {
	play(t, func(s *stage) {
		s.fromModel(began("r1", ""))
		s.fromClient(`{"type":"response.create","event_id":"one","response":{"metadata":{"mine":"1"}}}`,
			`{"type":"response.create"}`)
		s.client.sent()
		s.fromClient(`{"type":"response.cancel"}`)
		s.wantSent(s.model, "response.cancel")
		got := s.wantSent(s.client, "response.created response.done response.created response.done")
		for i, want := range []string{`{"mine":"1"}`, `{"mine":"1"}`, "null", "null"} {
			if r := gjson.Get(got[i], "response"); r.Get("metadata").Raw != want || r.Get("id").String() == "" || i%2 == 1 &&
				r.Get("status").String() != events.StatusCancelled {
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

// calledBoth plays a response with a call of our tool, which is answered, and one of the client's, which is not.
func (s *stage) calledBoth() {
	s.fromModel(began("r1", ""))
	ours := callItem("i1", "call_1", "codex", events.StatusCompleted)
	theirs := callItem("i2", "call_2", "weather", events.StatusCompleted)
	s.fromModel(itemDone("r1", ours), itemDone("r1", theirs), done("r1", "", events.StatusCompleted, ours, theirs))
	s.say(handoff.Utterance{ID: "a", CallID: "call_1", Text: "{}", Floor: handoff.FloorAsk})
	s.wantSent(s.model, "conversation.item.create:function_call_output")
}

// The client's tool and ours in one response are answered by one response.
func TestMixedResponseIsAnsweredOnce(t *testing.T) {
	play(t, func(s *stage) {
		s.calledBoth()
		s.fromClient(`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"call_2",`+
			`"output":"sunny"}}`, `{"type":"response.create"}`)
		tag := tagIn(s.wantSent(s.model, "conversation.item.create:function_call_output response.create")[1])
		s.router.heard()
		s.fromModel(began("r2", tag), spoken("r2"), done("r2", tag, events.StatusCompleted))
		s.wantHeard(handoff.Said{ID: "a"})
		s.wantSent(s.model, "")
	})
}

// An error without an event id is hidden from the client if it is about an event of ours and cannot be about one of the
// client's.
func TestErrorsWithoutAnEvent(t *testing.T) {
	fault := func(param, message string) string {
		return `{"type":"error","error":{"type":"invalid_request_error","code":"invalid_value","param":` +
			events.Quote(param) + `,"message":` + events.Quote(message) + `,"event_id":null}}`
	}
	for _, c := range []struct {
		name, param, message string
		before               string // of the client
		passes               bool
	}{
		{name: "our item", param: "item.content", message: "no"},
		{name: "our item by its id", message: "Item sb_n exists already."},
		{name: "an item of ours or the client's", param: "item.content", message: "no",
			before: `{"type":"conversation.item.create","item":{"type":"message","role":"user"}}`, passes: true},
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

// A client has a tool with the name of ours: calls of ours by its other name are hinted, run and hidden as ever. Calls
// by the name itself are the client's, and so is the history that the client restores.
func TestClash(t *testing.T) {
	for _, own := range []string{"codex", "run_on_server"} {
		t.Run(own, func(t *testing.T) {
			play(t, func(s *stage) {
				other := "switchboard_" + own
				s.fromClient(`{"type":"session.update","session":{"type":"realtime","tools":[{"type":"function","name":"` + own +
					`"}]}}`)
				s.fromModel(`{"type":"session.updated","session":{}}`)
				old := callItem("item_old", "call_old", own, events.StatusCompleted)
				s.fromClient(`{"type":"conversation.item.create","item":`+old+`}`,
					`{"type":"conversation.item.create","item":{"id":"out_old","type":"function_call_output","call_id":"call_old",`+
						`"output":"done"}}`)
				s.client.sent()
				s.fromModel(itemAdded(old))
				s.wantSent(s.client, "conversation.item.added:function_call")
				s.wantHeard()

				s.fromModel(began("r1", ""), callAdded("r1", "k1", "call_1", other), callAdded("r1", "k2", "call_2", own),
					piece("k1", `{"server":"bigpc"`), piece("k2", `{"server":"theirs"`))
				s.wantStory(`loud; hint call_1 {"server":"bigpc"`)
				s.fromModel(itemDone("r1", callItem("k1", "call_1", other, events.StatusCompleted)),
					itemDone("r1", callItem("k2", "call_2", own, events.StatusCompleted)))
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
