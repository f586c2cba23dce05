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
	return `{"type":"error","event_id":"e","error":{"type":"invalid_request_error","code":"conversation_already_has_active_response","message":"wait","param":null,"event_id":` + id + `}}`
}

func eventID(event string) string { return gjson.Get(event, "event_id").String() }

func TestClientAsksWaitTheirTurn(t *testing.T) {
	play(t, func(s *stage) {
		s.fromModel(began("r1", ""))
		s.fromClient(`{"type":"response.create","event_id":"one"}`, `{"type":"response.create","response":{"instructions":"two"}}`)
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
		return `{"type":"error","error":{"type":"invalid_request_error","code":"invalid_value","message":"no","event_id":` + events.Quote(id) + `}}`
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
		if gjson.Get(up, "response.tools").Raw != "[]" || gjson.Get(up, "response.metadata").Raw != `{"topic":"x","sb":"out"}` {
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
		return `{"type":"error","error":{"type":"invalid_request_error","code":"item_not_found","event_id":` + events.Quote(id) + `}}`
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

func TestHeard(t *testing.T) {
	play(t, func(s *stage) {
		s.fromClient(`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"run"},{"type":"input_text","text":"the tests"}]}}`,
			`{"type":"conversation.item.create","item":{"type":"message","role":"system","content":[{"type":"input_text","text":"hint"}]}}`)
		s.wantHeard(handoff.Heard{Text: "run the tests", Typed: true})
		s.fromModel(`{"type":"conversation.item.input_audio_transcription.completed","item_id":"u1","transcript":" hello "}`)
		s.wantHeard(handoff.Heard{Text: "hello"})
		s.wantSent(s.client, "") // ours: the client did not ask for transcription
		s.fromClient(`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"transcription":{"model":"whisper-1"}}}}}`)
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
		s.fromClient(`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"call_1","output":"Tool codex not found"}}`)
		s.wantSent(s.model, "")
		s.fromClient(`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"call_2","output":"sunny"}}`)
		s.wantSent(s.model, "conversation.item.create:function_call_output")
	})
}

func TestBadJSONIsAnsweredAndNothingIsLost(t *testing.T) {
	play(t, func(s *stage) {
		for _, bad := range []string{"", "{", "[]", "null", `"x"`, `{"type":"response.create"`, `{"type":"input_audio_buffer.append","audio":"`} {
			s.fromClient(bad)
			if got := s.wantSent(s.client, "error")[0]; gjson.Get(got, "error.type").String() != "invalid_request_error" {
				t.Errorf("for %q: %s", bad, got)
			}
		}
		s.fromClient(`{"type":"input_audio_buffer.append","audio":"AAAA"}`, `{"type":"made.up","x":[1.0,null]}`)
		up := s.model.sent()
		if len(up) != 2 || up[0] != `{"type":"input_audio_buffer.append","audio":"AAAA"}` || up[1] != `{"type":"made.up","x":[1.0,null]}` {
			t.Errorf("sent %s", up)
		}
	})
}

// A refused change of turn detection changes nothing: we go on speaking without being asked.
func TestRefusedTurnDetection(t *testing.T) {
	play(t, func(s *stage) {
		s.fromClient(`{"type":"session.update","event_id":"bad","session":{"type":"realtime","audio":{"input":{"turn_detection":null}}}}`)
		s.wantSent(s.model, "session.update")
		s.fromModel(`{"type":"error","error":{"type":"invalid_request_error","code":"invalid_value","event_id":"bad"}}`)
		s.wantSent(s.client, "error")
		s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		s.wantSent(s.model, "conversation.item.create:message response.create")
	})
}
