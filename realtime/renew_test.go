package realtime

import (
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

const anotherSession = `{"type":"session.created","event_id":"e9","session":{"type":"realtime","id":"sess_2",` +
	`"instructions":"","tools":[],"audio":{"input":{"transcription":null}}}}`

// typedItem returns the model's event for an item that the caller typed.
func typedItem(id, text string) string {
	return `{"id":"` + id + `","type":"message","role":"user","status":"completed",` +
		`"content":[{"type":"input_text","text":"` + text + `"}]}`
}

// spokenItem returns a message of the model.
func spokenItem(id, text, status string) string {
	return `{"id":"` + id + `","type":"message","role":"assistant","status":"` + status + `",` +
		`"content":[{"type":"output_audio","transcript":"` + text + `"}]}`
}

// A lost session is replaced by another that knows the conversation, while the client sees nothing.
func TestSessionIsRenewed(t *testing.T) {
	playRenewed(t, func(s *stage, h *successors) {
		said := spokenItem("m1", "One moment.", "completed")
		request := callItem("f1", "call_1", "codex", events.StatusCompleted)
		s.fromModel(itemAdded(typedItem("u1", "run the tests")), began("r1", ""), itemDone("r1", said), itemDone("r1", request),
			done("r1", "", "completed", said, request))
		s.client.sent()
		s.router.heard()
		h.lose()
		h.begin(anotherSession)
		up := s.wantSent(s.model, "session.update conversation.item.create:message conversation.item.create:message "+
			"conversation.item.create:function_call")
		if names := toolNames(up[0], "session.tools"); names != "["+allTools+"]" ||
			gjson.Get(up[0], "session.instructions").String() != guide ||
			!gjson.Get(up[0], "session.audio.input.transcription").IsObject() {
			t.Errorf("it begins with %s", up[0])
		}
		for i, want := range []string{"u1", "m1", "f1"} {
			if id := gjson.Get(up[i+1], "item.id").String(); id != want {
				t.Errorf("item %d is %s", i, id)
			}
		}
		if kind := gjson.Get(up[2], "item.content.0.type").String(); kind != "output_text" {
			t.Errorf("what the model said is %s", kind)
		}
		h.from(`{"type":"session.updated","session":{"id":"sess_2"}}`, itemAdded(gjson.Get(up[1], "item").Raw),
			itemAdded(gjson.Get(up[2], "item").Raw), itemAdded(gjson.Get(up[3], "item").Raw))
		s.wantSent(s.client, "")

		// The answer to the request that was open goes to the session that has it now.
		s.say(handoff.Utterance{ID: "a", CallID: "call_1", Text: "{}", Floor: handoff.FloorNone})
		s.wantSent(s.model, "conversation.item.create:function_call_output")
	})
}

// The client's settings are in force in the next session, too, and its last update is still answered.
func TestSettingsOutliveTheSession(t *testing.T) {
	playRenewed(t, func(s *stage, h *successors) {
		s.fromClient(`{"type":"session.update","event_id":"c1","session":{"type":"realtime","instructions":"mine",` +
			`"audio":{"output":{"voice":"cedar"},"input":{"turn_detection":{"type":"semantic_vad"}}}}}`)
		s.fromModel(`{"type":"session.updated","session":{"id":"sess_1","instructions":"mine"}}`)
		s.fromClient(`{"type":"session.update","event_id":"c2","session":{"type":"realtime",` +
			`"tools":[{"type":"function","name":"weather"}]}}`)
		s.client.sent()
		h.lose()
		h.begin(anotherSession)
		up := s.wantSent(s.model, "session.update session.update")
		if first := gjson.Get(up[0], "session"); first.Get("instructions").String() != "mine" ||
			first.Get("audio.output.voice").String() != "cedar" ||
			first.Get("audio.input.turn_detection.type").String() != "semantic_vad" ||
			toolNames(up[0], "session.tools") != "["+allTools+"]" {
			t.Errorf("it begins with %s", up[0])
		}
		if gjson.Get(up[1], "event_id").String() != "c2" || !strings.Contains(up[1], "weather") {
			t.Errorf("then %s", up[1])
		}
		h.from(`{"type":"session.updated","session":{"id":"sess_2","instructions":"mine"}}`)
		s.wantSent(s.client, "")
		h.from(`{"type":"session.updated","session":{"id":"sess_2","instructions":"mine","tools":[{"type":"function",` +
			`"name":"weather"}]}}`)
		if got := s.wantSent(s.client, "session.updated")[0]; gjson.Get(got, "session.id").String() != "sess_1" {
			t.Errorf("the client sees %s", got)
		}
	})
}

// If the next session refuses the settings, they are tried without the voice; a second refusal ends the call.
func TestSessionThatIsRefused(t *testing.T) {
	playRenewed(t, func(s *stage, h *successors) {
		s.fromClient(`{"type":"session.update","session":{"type":"realtime","audio":{"output":{"voice":"old"}}}}`)
		s.fromModel(`{"type":"session.updated","session":{"audio":{"output":{"voice":"old"}}}}`)
		h.lose()
		h.begin(anotherSession)
		refuse := func(update string) string {
			return `{"type":"error","error":{"code":"invalid_value","event_id":` + gjson.Get(update, "event_id").Raw + `}}`
		}
		s.client.sent()
		h.from(refuse(s.wantSent(s.model, "session.update")[0]))
		up := s.wantSent(s.model, "session.update")[0]
		if gjson.Get(up, "session.audio.output.voice").Exists() || toolNames(up, "session.tools") != "["+allTools+"]" {
			t.Errorf("then %s", up)
		}
		s.wantSent(s.client, "")
		h.from(refuse(up))
		s.wantSent(s.client, "error")
	})
}

// A running response ends for the client as the model would have ended it, and our utterances in it are asked for
// again.
func TestResponseOfALostSession(t *testing.T) {
	playRenewed(t, func(s *stage, h *successors) {
		tag := s.asks("n")
		s.fromModel(began("r1", tag), `{"type":"response.output_item.added","response_id":"r1","output_index":0,"item":`+
			spokenItem("m1", "", "in_progress")+`}`, itemAdded(spokenItem("m1", "", "in_progress")),
			`{"type":"response.output_audio_transcript.delta","response_id":"r1","item_id":"m1","delta":"All tests"}`,
			audio("r1", 200*time.Millisecond))
		s.client.sent()
		h.lose()
		shown := s.wantSent(s.client, "response.output_item.done:message conversation.item.done:message response.done")
		if r := gjson.Get(shown[2], "response"); r.Get("status").String() != "incomplete" ||
			r.Get("output.0.content.0.transcript").String() != "All tests" || r.Get("metadata.sb").Exists() {
			t.Errorf("it ends with %s", shown[2])
		}
		h.begin(anotherSession)
		s.wait(time.Second)
		up := s.model.sent()
		// What sounds already is not begun again: the model is told to go on.
		if types(up) != "session.update"+strings.Repeat(" conversation.item.create:message", 3)+" response.create" ||
			!strings.Contains(up[3], "Go on where you were cut") {
			t.Fatalf("sent %s: %s", types(up), up)
		}
		s.router.heard()
		tag = tagIn(up[4])
		h.from(began("r2", tag), spoken("r2"), done("r2", tag, "completed"))
		s.wantHeard(handoff.Said{ID: "n", Text: ""}, handoff.Said{ID: "renewed-1"})
	})
}

// A caller who was about to get an answer gets it from the next session.
func TestAnswerThatWasLost(t *testing.T) {
	playRenewed(t, func(s *stage, h *successors) {
		s.fromModel(speechStarted("u1"), speechStopped("u1"))
		s.client.sent()
		h.lose()
		h.begin(anotherSession)
		s.wait(time.Second)
		if up := types(s.model.sent()); !strings.HasSuffix(up, "conversation.item.create:message response.create") {
			t.Errorf("sent %s", up)
		}
	})
}

// Speech in a lost session without a transcript yet is reported as lost: it may have been a "don't" after a yes.
func TestWordsOfALostSession(t *testing.T) {
	playRenewed(t, func(s *stage, h *successors) {
		s.fromModel(speechStarted("u1"), speechStopped("u1"), `{"type":"input_audio_buffer.committed","item_id":"u1"}`)
		s.router.heard()
		h.lose()
		lost := 0
		for _, e := range s.router.heard() {
			if heard, ok := e.(handoff.Heard); ok && heard.Lost && !heard.Began.IsZero() {
				lost++
			}
		}
		if lost != 1 {
			t.Errorf("%d words are lost", lost)
		}
		h.begin(anotherSession)
	})
}

// What the caller was saying is heard by the next session, and no approval waits for a transcript that was lost.
func TestSpeechOfALostSession(t *testing.T) {
	playRenewed(t, func(s *stage, h *successors) {
		sound := `{"type":"input_audio_buffer.append","audio":"` + strings.Repeat("A", 2560) + `"}`
		for range 50 {
			s.fromClient(sound)
			s.wait(40 * time.Millisecond)
		}
		s.fromModel(speechStarted("u1"))
		for range 10 {
			s.fromClient(sound)
			s.wait(40 * time.Millisecond)
		}
		s.client.sent()
		s.model.sent()
		h.lose()
		s.wantSent(s.client, "input_audio_buffer.speech_stopped")
		s.fromClient(sound)
		h.begin(anotherSession)
		ms := 0
		for _, event := range s.model.sent() {
			ms += events.SoundBytes(events.Sound([]byte(event), events.KeyAppend)) / pcmRate
		}
		if ms < 11*40 || ms > 40*40 {
			t.Errorf("%d ms of sound", ms)
		}
		if story := s.story(); !strings.Contains(story, "heard @") {
			t.Errorf("router heard %s", story)
		}
	})
}

// A session that says when it ends is replaced at a quiet moment before that, and the client sees nothing.
func TestPlannedRenewal(t *testing.T) {
	playRenewed(t, func(s *stage, h *successors) {
		ends := func(d time.Duration) string {
			return string(events.Set([]byte(freshSession), "session.expires_at", jsonSeconds(time.Now().Add(d))))
		}
		h.lose()
		h.begin(ends(time.Hour))
		s.model.sent()
		s.client.sent()
		s.wait(57 * time.Minute)
		if len(h.made) != 1 {
			t.Fatalf("%d sessions", len(h.made))
		}
		s.wait(50 * time.Second)
		s.fromModel(began("r1", ""))
		s.client.sent()
		s.wait(10 * time.Second)
		if len(h.made) != 2 {
			t.Fatalf("%d sessions", len(h.made))
		}
		old := h.made[0]
		h.from(ends(time.Hour)) // the response runs: it waits
		s.wantSent(h.newest().wire, "")
		s.fromModel(done("r1", "", "completed", spokenItem("m1", "Well.", "completed")))
		s.wantSent(s.client, "response.done")
		s.wait(time.Second)
		if got := types(h.newest().sent()); got != "session.update conversation.item.create:message" {
			t.Errorf("sent %s", got)
		}
		s.wantSent(s.client, "")
		if !old.closed {
			t.Error("the old session is open")
		}
		s.model = h.newest().wire
	})
}

// A session may say later that it ends at another time.
func TestSessionThatMovesItsEnd(t *testing.T) {
	playRenewed(t, func(s *stage, h *successors) {
		ends := func(created string, d time.Duration) string {
			return string(events.Set([]byte(created), "session.expires_at", jsonSeconds(time.Now().Add(d))))
		}
		const updated = `{"type":"session.updated","session":{"type":"realtime"}}`
		h.lose()
		h.begin(ends(freshSession, time.Hour))
		// One does not say when; the others mean another clock, or no time.
		s.fromModel(ends(updated, 2*time.Hour), updated, ends(updated, -time.Hour), ends(updated, time.Second))
		s.wait(time.Hour)
		if len(h.made) != 1 {
			t.Fatalf("%d sessions where the end was put off", len(h.made))
		}
		s.fromModel(ends(updated, wallLead))
		s.wait(time.Millisecond)
		if len(h.made) != 2 {
			t.Fatalf("%d sessions where the end is near", len(h.made))
		}
		old := h.made[0]
		h.from(ends(freshSession, time.Hour))
		if s.wait(time.Second); !old.closed {
			t.Error("the old session is open")
		}
		s.model = h.newest().wire
	})
}

func jsonSeconds(at time.Time) string { return string(events.Encode(at.Unix())) }

// If there is no other session in time, the call ends, once.
func TestNoSessionIsHad(t *testing.T) {
	playRenewed(t, func(s *stage, h *successors) {
		h.deny = handoff.Fault(handoff.CodeVoiceUnreachable, "model", "503")
		lost := time.Now()
		h.lose()
		s.wait(renewLimit - time.Millisecond)
		s.wantSent(s.client, "")
		s.wait(time.Second)
		s.wantSent(s.client, "error")
		heard := s.router.heard()
		end, ended := heard[len(heard)-1].(handoff.CallEnded)
		if !ended || handoff.AsError(end.Cause).Code != handoff.CodeVoiceGone {
			t.Errorf("router heard %#v", heard)
		}
		if took := time.Since(lost); took > renewLimit+time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A call whose model sessions end again and again ends, too.
func TestSessionsThatDoNotLast(t *testing.T) {
	playRenewed(t, func(s *stage, h *successors) {
		for range maxLosses {
			h.lose()
			h.begin(anotherSession)
			s.wait(time.Second)
			s.wantSent(s.client, "")
		}
		h.lose()
		s.wantSent(s.client, "error")
	})
}

// A client that asked for events of ours is told that the session was replaced; others are not (TestStreams).
func TestRenewalIsTold(t *testing.T) {
	playRenewed(t, func(s *stage, h *successors) {
		s.call.do(func() { s.call.legs.takesOurs = true })
		h.lose()
		s.wait(time.Second)
		s.wantSent(s.client, "")
		h.begin(anotherSession)
		told := s.wantSent(s.client, events.TypeRenewed)[0]
		if ms := gjson.Get(told, "took_ms").Int(); ms != 1000 {
			t.Errorf("it is told %s", told)
		}
	})
}

// The client does not see the provider's error that the session has reached its longest duration.
func TestExpiredSession(t *testing.T) {
	playRenewed(t, func(s *stage, h *successors) {
		s.fromModel(`{"type":"error","error":{"type":"invalid_request_error","code":"session_expired","message":"60 minutes"}}`)
		s.wantSent(s.client, "")
		h.begin(anotherSession)
		s.wantSent(s.model, "session.update")
	})
}

// A server that refuses kinds of items gets them as text.
func TestItemsThatAreNotTaken(t *testing.T) {
	playRenewed(t, func(s *stage, h *successors) {
		said := spokenItem("m1", "They pass.", "completed")
		s.fromModel(itemAdded(typedItem("u1", "run the tests")), began("r1", ""), itemDone("r1", said),
			done("r1", "", "completed", said))
		s.client.sent()
		h.lose()
		h.begin(anotherSession)
		up := s.wantSent(s.model, "session.update conversation.item.create:message conversation.item.create:message")
		h.from(itemAdded(gjson.Get(up[1], "item").Raw),
			`{"type":"error","error":{"code":"invalid_value","event_id":`+gjson.Get(up[2], "event_id").Raw+`}}`)
		told := s.wantSent(s.model, "conversation.item.create:message")[0]
		if text := gjson.Get(told, "item.content.0.text").String(); !strings.Contains(text, "You: They pass.") {
			t.Errorf("it was told %s", text)
		}
		h.from(itemAdded(gjson.Get(told, "item").Raw))
		s.wantSent(s.client, "")
	})
}

// What the client asked for while there was no session is asked of the next one.
func TestClientOfNoSession(t *testing.T) {
	playRenewed(t, func(s *stage, h *successors) {
		h.lose()
		s.fromClient(`{"type":"conversation.item.create","event_id":"c1","item":`+typedItem("u1", "hello")+`}`,
			`{"type":"response.create","event_id":"c2"}`, `{"type":"conversation.item.retrieve","event_id":"c3","item_id":"u1"}`)
		s.wantSent(s.client, "")
		h.begin(anotherSession)
		up := s.wantSent(s.model,
			"session.update conversation.item.create:message conversation.item.retrieve response.create")
		if gjson.Get(up[1], "event_id").String() != "c1" || gjson.Get(up[3], "event_id").String() != "c2" {
			t.Errorf("sent %s", up)
		}
		h.from(itemAdded(typedItem("u1", "hello")), began("r1", tagIn(up[3])))
		s.wantSent(s.client, "conversation.item.added:message response.created")
	})
}

// A function call that was not complete is no request: the model is asked again, and the request is run once.
func TestCallOfALostSession(t *testing.T) {
	playRenewed(t, func(s *stage, h *successors) {
		half := callItem("f1", "call_1", "codex", "in_progress")
		s.fromModel(began("r1", ""), `{"type":"response.output_item.added","response_id":"r1","output_index":0,"item":`+half+`}`,
			itemAdded(half), `{"type":"response.function_call_arguments.delta","response_id":"r1","item_id":"f1","delta":"{\"se"}`)
		s.client.sent()
		s.router.heard()
		h.lose()
		s.wantSent(s.client, "response.done")
		h.begin(anotherSession)
		s.wait(time.Second)
		up := s.model.sent()
		if types(up) != "session.update conversation.item.create:message response.create" {
			t.Fatalf("sent %s", types(up))
		}
		s.wantHeard()
		tag := tagIn(up[2])
		whole := callItem("f2", "call_2", "codex", events.StatusCompleted)
		h.from(began("r2", tag), itemDone("r2", whole), done("r2", tag, "completed", whole))
		s.wantHeard(handoff.FunctionCall{CallID: "call_2", Tool: "codex", Arguments: `{"server":"bigpc"}`})
	})
}

// Speech that began before the session was lost does not count as begun later when the next session hears it again:
// otherwise it could count as a yes to a question that the caller had not heard.
func TestSpeechThatIsHeardAgain(t *testing.T) {
	playRenewed(t, func(s *stage, h *successors) {
		sound := `{"type":"input_audio_buffer.append","audio":"` + strings.Repeat("A", 2560) + `"}`
		began := time.Now()
		for range 20 {
			s.fromClient(sound)
			s.wait(40 * time.Millisecond)
		}
		s.fromModel(speechStarted("u1"))
		h.lose()
		s.wait(10 * time.Second)
		s.router.heard()
		h.begin(anotherSession)
		h.from(`{"type":"input_audio_buffer.speech_started","item_id":"u2","audio_start_ms":40}`)
		heard := 0
		for _, e := range s.router.heard() {
			if spoke, ok := e.(handoff.Spoke); ok {
				if heard++; spoke.At.After(began.Add(time.Second)) {
					t.Errorf("it began %v after it did", spoke.At.Sub(began))
				}
			}
		}
		if heard != 1 {
			t.Errorf("heard %d times", heard)
		}
	})
}
