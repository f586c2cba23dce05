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

// The caller begins to speak while our response.create is on the wire: the response is cancelled, nothing
// of it is heard, and it is asked for again.
func TestOurResponseIsNotHeardOverTheCaller(t *testing.T) {
	play(t, func(s *stage) {
		tag := s.asks("n")
		s.fromModel(speechStarted("u1"), began("r1", tag))
		if up := s.wantSent(s.model, "response.cancel")[0]; gjson.Get(up, "response_id").String() != "r1" {
			t.Errorf("sent %s", up)
		}
		s.client.sent()
		s.fromModel(audio("r1", time.Second), done("r1", tag, "cancelled"),
			`{"type":"error","error":{"code":"response_cancel_not_active","event_id":`+events.Quote(s.call.ids.Next())+`}}`)
		s.wantSent(s.client, "response.done")
		s.fromModel(speechStopped("u1"), began("r2", ""), done("r2", "", "completed"))
		s.wantSent(s.model, "response.create")
		s.wantStory("loud; spoke@0")
	})
}

// A response with nothing in it has told nothing, whatever its status.
func TestEmptyResponseSaysNothing(t *testing.T) {
	for _, status := range []string{"completed", "incomplete", "failed"} {
		play(t, func(s *stage) {
			tag := s.asks("n")
			s.fromModel(began("r1", tag), done("r1", tag, status))
			s.wait(floor.Delay[floor.TimerRest])
			s.wantSent(s.model, "response.create")
			s.wantStory("loud; quiet; loud")
		})
	}
}

// A model that chooses to be silent has read the utterance, but the caller heard nothing: if it was a question, no yes
// may count as its answer.
func TestChosenSilenceIsNotHeard(t *testing.T) {
	play(t, func(s *stage) {
		tag := s.asks("n")
		it := callItem("item_1", "call_1", "remain_silent", events.StatusCompleted)
		s.fromModel(began("r1", tag), itemDone("r1", it), done("r1", tag, "completed", it))
		s.wantStory("loud; request call_1; unsaid n@?; quiet")
	})
}

// A model that, asked for an outcome, only calls a function of the client has not told the outcome. The client's next
// ask tells it. If that does not come, the outcome is asked for without tools, so that the function is not called
// again.
func TestClientsFunctionTellsNothing(t *testing.T) {
	calls := func(s *stage) {
		tag := s.asks("n")
		it := callItem("item_1", "call_1", "open_door", events.StatusCompleted)
		s.fromModel(began("r1", tag), itemDone("r1", it), done("r1", tag, "completed", it))
		s.wantSent(s.model, "")
		s.wantStory("loud; quiet")
	}
	output := `{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"call_1","output":"open"}}`
	play(t, func(s *stage) {
		calls(s)
		s.fromClient(output, `{"type":"response.create"}`)
		tag := tagIn(s.wantSent(s.model, "conversation.item.create:function_call_output response.create")[1])
		s.fromModel(began("r2", tag), spoken("r2"), done("r2", tag, "completed"))
		s.wantStory("loud; said n@0; quiet")
	})
	for _, answers := range [][]string{nil, {output}} { // it answers its function, or not even that
		play(t, func(s *stage) {
			calls(s)
			s.fromClient(answers...)
			s.model.sent()
			s.wait(10 * time.Second)
			again := s.wantSent(s.model, "response.create")[0]
			if gjson.Get(again, "response.tool_choice").String() != "none" {
				t.Errorf("asked %s", again)
			}
			s.fromModel(began("r2", tagIn(again)), spoken("r2"), done("r2", tagIn(again), "completed"))
			s.wantStory("loud; said n@10000; quiet")
		})
	}
}

// When an outcome of which nothing was heard is asked for again, tools that the provider runs itself, or functions that
// were called as the caller began to speak, are not called again either.
func TestAsksOnceMoreWithoutTools(t *testing.T) {
	for name, script := range map[string]func(*stage, string){
		"of the provider": func(s *stage, tag string) {
			it := `{"id":"item_1","type":"mcp_call","server_label":"home","name":"open_door","arguments":"{}","output":"open"}`
			s.fromModel(began("r1", tag), itemDone("r1", it), done("r1", tag, "completed", it))
		},
		"as the caller speaks": func(s *stage, tag string) {
			it := callItem("item_1", "call_1", "open_door", events.StatusCompleted)
			s.fromModel(speechStarted("u1"), began("r1", tag), itemDone("r1", it), done("r1", tag, "completed", it),
				`{"type":"input_audio_buffer.speech_stopped","item_id":"u1"}`)
		},
	} {
		play(t, func(s *stage) {
			script(s, s.asks("n"))
			s.model.sent()
			s.router.heard()
			s.wait(3 * time.Second)
			again := s.wantSent(s.model, "response.create")[0]
			if gjson.Get(again, "response.tool_choice").String() != "none" {
				t.Errorf("%s: asked %s", name, again)
			}
		})
	}
}

// What the content filter cut off was not heard to its end: a yes to it would be no evidence.
func TestIncompleteIsCut(t *testing.T) {
	play(t, func(s *stage) {
		tag := s.asks("n")
		s.fromModel(began("r1", tag), audio("r1", time.Second), done("r1", tag, "incomplete"))
		s.wait(time.Second)
		s.wantStory("loud; cut n@1000; quiet")
	})
}

// If a response with several utterances is cut, it is not known which of them were heard.
func TestCutAmongSeveral(t *testing.T) {
	play(t, func(s *stage) {
		s.fromModel(began("r0", ""))
		s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		s.say(handoff.Utterance{ID: "m", Text: "done", Floor: handoff.FloorAsk})
		s.fromModel(done("r0", "", "completed"))
		tag := tagIn(s.model.sent()[2])
		s.fromModel(began("r1", tag), audio("r1", 9*time.Second), done("r1", tag, "completed"))
		s.wait(time.Second)
		s.router.heard()
		s.fromModel(speechStarted("u1"))
		for _, e := range s.router.heard() {
			if said, ok := e.(handoff.Said); ok && (!said.Cut || !said.At.IsZero()) {
				t.Errorf("%+v", said)
			}
		}
	})
}

// A request says since when the caller has waited.
func TestRequestTellsWhenItWasAsked(t *testing.T) {
	play(t, func(s *stage) {
		s.fromModel(speechStarted("u1"))
		s.wait(time.Second)
		s.fromModel(speechStopped("u1"), transcribed("u1", "go on"))
		s.wait(time.Second)
		s.requests("r1", "call_1")
		s.wantHeard(handoff.Heard{Text: "go on"}, handoff.FunctionCall{CallID: "call_1", Tool: "codex", Arguments: `{"server":"bigpc"}`,
			Asked: s.began.Add(time.Second), Began: s.began})
	})
}

// Half a word counts as nothing heard.
func TestCutBeforeTheEndOfAWord(t *testing.T) {
	play(t, func(s *stage) {
		tag := s.asks("n")
		s.fromModel(began("r1", tag), audio("r1", 5*time.Second), done("r1", tag, "completed"))
		s.wait(aWord - time.Millisecond)
		s.fromModel(speechStarted("u1"), speechStopped("u1"))
		s.wait(floor.Delay[floor.TimerVAD])
		s.wantSent(s.model, "response.create")
		s.wantStory("loud; spoke@499")
	})
}

// Speech whose end never comes: the client committed, or sends no sound any more.
func TestSpeechWithoutAnEnd(t *testing.T) {
	const appended = `{"type":"input_audio_buffer.append","audio":"AAAA"}`
	play(t, func(s *stage) {
		s.fromModel(speechStarted("u1"), `{"type":"input_audio_buffer.committed","item_id":"u1"}`)
		s.wait(floor.Delay[floor.TimerVAD])
		s.wantStory("spoke@0; loud; quiet")
		s.fromModel(speechStarted("u2"))
		for range 8 {
			s.fromClient(appended)
			s.wait(time.Second)
		}
		s.wantStory("spoke@1000; loud")
		s.wait(floor.Delay[floor.TimerSpeech])
		s.wantStory("quiet")
	})
}

// A response whose end never comes holds the floor only as long as events of it come, on either kind of leg.
func TestResponseWithoutAnEnd(t *testing.T) {
	stuck := func(s *stage) {
		s.fromModel(began("r1", ""), audio("r1", time.Second))
		s.wait(floor.Delay[floor.TimerRun] - time.Second)
		s.fromModel(spoken("r1"))
		s.wait(floor.Delay[floor.TimerRun] - time.Second)
		s.wantStory("loud")
		s.wait(time.Second)
		s.wantStory("quiet")
		s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		s.wantSent(s.model, "conversation.item.create:message response.create")
	}
	play(t, stuck)
	playBrowser(t, func(s *stage) {
		stuck(s)
	})
}

// An answer that the model refused, as it forgot the request, is sent as a message: the response that was already asked
// for does not tell it.
func TestRewordedAnswerIsAskedForAgain(t *testing.T) {
	play(t, func(s *stage) {
		s.requests("r1", "call_1")
		s.router.heard()
		s.say(handoff.Utterance{ID: "a", CallID: "call_1", Text: "1", Floor: handoff.FloorAsk})
		up := s.wantSent(s.model, "conversation.item.create:function_call_output response.create")
		s.fromModel(`{"type":"error","error":{"code":"item_not_found","event_id":` + events.Quote(eventID(up[0])) + `}}`)
		s.wantSent(s.model, "conversation.item.create:message")
		s.fromModel(began("r2", tagIn(up[1])), spoken("r2"), done("r2", tagIn(up[1]), "completed"))
		s.wantHeard()
		tag := tagIn(s.wantSent(s.model, "response.create")[0])
		s.fromModel(began("r3", tag), spoken("r3"), done("r3", tag, "completed"))
		s.wantHeard(handoff.Said{ID: "a"})
	})
}

// An outcome is put into the conversation only with its ask: otherwise the response to the caller's words would tell
// it, and ours would tell it again.
func TestOutcomeComesWithItsAsk(t *testing.T) {
	play(t, func(s *stage) {
		s.fromModel(speechStarted("u1"))
		s.say(handoff.Utterance{ID: "n", Text: "a note", Floor: handoff.FloorNone})
		s.say(handoff.Utterance{ID: "m", Text: "done", Floor: handoff.FloorAsk})
		if up := s.wantSent(s.model, "conversation.item.create:message"); !strings.Contains(up[0], "a note") {
			t.Errorf("sent %s", up)
		}
		s.fromModel(speechStopped("u1"), began("r1", ""), audio("r1", time.Second), done("r1", "", "completed"))
		s.wantSent(s.model, "")
		s.wait(time.Second)
		s.wantSent(s.model, "conversation.item.create:message response.create")
	})
}

// An answer that another response told before it was asked for is confirmed, with the words of that response, when the
// model has nothing to add. Asked again and again, the model would say nothing, and a minute later tell it once more.
func TestAnswerToldBeside(t *testing.T) {
	for _, c := range []struct {
		name, story string
		acked       bool
	}{
		{"the model had it", "loud; request call_1; said a@1000; quiet", true},
		{"it had it only later", "loud; request call_1; quiet; loud", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, func(s *stage) {
				it := callItem("i1", "call_1", "codex", events.StatusCompleted)
				s.fromModel(began("r1", ""), itemDone("r1", it))
				s.say(handoff.Utterance{ID: "a", CallID: "call_1", Text: "{}", Floor: handoff.FloorAsk})
				s.fromClient(`{"type":"response.create"}`)
				s.wantSent(s.model, "conversation.item.create:function_call_output")
				if c.acked {
					s.fromModel(itemAdded(`{"id":"sb_a","type":"function_call_output"}`))
				}
				s.fromModel(done("r1", "", events.StatusCompleted, it))
				tag := tagIn(s.wantSent(s.model, "response.create")[0])
				s.fromModel(began("r2", tag), audio("r2", time.Second), done("r2", tag, events.StatusCompleted))
				s.wait(time.Second)
				tag = tagIn(s.wantSent(s.model, "response.create")[0])
				s.fromModel(began("r3", tag), done("r3", tag, events.StatusCompleted))
				s.wait(floor.Delay[floor.TimerRest])
				s.wantStory(c.story)
			})
		})
	}
}

// An utterance that is taken back before it was said is not said; one that is being said is confirmed all the same.
func TestTakenBack(t *testing.T) {
	play(t, func(s *stage) {
		s.fromModel(speechStarted("u1"))
		s.say(handoff.Utterance{ID: "n", Text: "may it?", Floor: handoff.FloorAsk})
		s.say(handoff.Utterance{ID: "n"})
		s.fromModel(speechStopped("u1"))
		s.wait(floor.Delay[floor.TimerVAD])
		s.wantSent(s.model, "")
		tag := s.asks("m")
		s.say(handoff.Utterance{ID: "m"})
		s.say(handoff.Utterance{ID: "nobody"})
		s.fromModel(began("r1", tag), spoken("r1"), done("r1", tag, "completed"))
		s.wantHeard(handoff.Said{ID: "m"})
	})
}
