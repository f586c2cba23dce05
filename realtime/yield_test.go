package realtime

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/floor"
)

const speechOver = `{"type":"input_audio_buffer.speech_stopped","item_id":"u1"}`

// worded returns the transcript event of what the caller said.
func worded(words string) string {
	return `{"type":"conversation.item.input_audio_transcription.completed","item_id":"u1","transcript":` + events.Quote(words) + `}`
}

// A yieldCase is what a caller says into an outcome, r1, that began to sound a second ago and goes on for four.
type yieldCase struct {
	name string
	made bool // the model has made the response to its end
	run  func(*stage)
	sent string // to the model
	want string // what the router is told of the outcome in the end

	again string // sent to the model once it has stopped
}

var (
	yieldMurmurs = func(s *stage) {
		s.fromModel(speechStarted("u1"))
		s.wait(800 * time.Millisecond)
		s.fromModel(speechOver)
		s.wait(300 * time.Millisecond)
		s.fromModel(worded("mm-hmm"))
	}
	yieldSpeaks = func(s *stage) {
		s.fromModel(speechStarted("u1"))
		s.wait(yieldAfter)
	}
	yieldWord = func(s *stage) {
		s.fromModel(speechStarted("u1"))
		s.wait(600 * time.Millisecond)
		s.fromModel(speechOver)
		s.wait(300 * time.Millisecond)
		s.fromModel(worded("stop"))
	}
	yieldAnswered = func(s *stage) { // a short sentence, which the model answers before its words are known
		s.fromModel(speechStarted("u1"))
		s.wait(600 * time.Millisecond)
		s.fromModel(speechOver, began("r2", ""))
		s.wait(300 * time.Millisecond)
		s.fromModel(worded("why?"))
	}
	yieldActs = func(s *stage) {
		s.fromModel(speechStarted("u1"))
		s.wait(600 * time.Millisecond)
		s.fromModel(speechOver)
		s.requests("r2", "call_1")
		s.wait(300 * time.Millisecond)
		s.fromModel(worded("fix it"))
	}
)

// patient is a session whose model does not stop when the caller speaks.
var patient = strings.Replace(freshSession, `"create_response":true`, `"create_response":true,"interrupt_response":false`, 1)

// TestYieldsOverWebSocket: a page on a WebSocket plays on while the caller murmurs, and is told to stop when they speak
// for longer, or with other words. The model is asked for an answer if it gives none by itself.
func TestYieldsOverWebSocket(t *testing.T) {
	for _, c := range []yieldCase{
		{"a murmur", true, yieldMurmurs, "", "said n@4000", ""},
		{"a murmur while it is made", false, yieldMurmurs, "", "said n@4000", ""},
		{"speech that goes on", true, yieldSpeaks, "", "cut n@1900", ""},
		{"speech that goes on while it is made", false, yieldSpeaks, "response.cancel", "cut n@1900", ""},
		{"a word", true, yieldWord, "", "cut n@1900", ""},
		{"a word while it is made", false, yieldWord, "response.cancel response.create", "cut n@1900", ""},
		{"a word that is answered", true, yieldAnswered, "", "cut n@1900", ""},
		{"words that become work", true, yieldActs, "", "cut n@1900", ""},
		{"words that cannot be known", true, func(s *stage) {
			s.fromModel(speechStarted("u1"), speechOver)
			s.wait(900 * time.Millisecond)
			s.fromModel(`{"type":"conversation.item.input_audio_transcription.failed","item_id":"u1"}`)
		}, "", "cut n@1900", ""},
		{"words of what was said before", true, func(s *stage) {
			s.fromModel(speechStarted("u1"), strings.Replace(worded("run the tests"), "u1", "u0", 1), speechOver, worded("mm-hmm"))
		}, "", "said n@4000", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				s.call.hearing.backchannel = func(words string) bool { return words == "mm-hmm" }
				s.call.legs.takesOurs, s.call.hearing.yielding.lowers = true, true
				s.open(patient)
				tag := s.asks("n")
				s.fromModel(began("r1", tag), audio("r1", 4*time.Second))
				if c.made {
					s.fromModel(done("r1", tag, "completed"))
				}
				s.wait(time.Second)
				s.client.sent()
				c.run(s)
				told := types(s.client.sent())
				s.fromModel(audio("r1", 0))
				if !c.made {
					s.fromModel(done("r1", tag, map[bool]string{true: "cancelled", false: "completed"}[c.sent != ""]))
				}
				s.wait(3 * time.Second)
				s.wantYield(c)
				if cut := strings.Contains(c.want, "cut"); strings.Contains(told, "handoff.cut") != cut {
					t.Errorf("the page is told %s", told)
				}
				s.close()
			})
		})
	}
}

// wantYield checks what the model was sent, without the answers to its calls, and what was reported of the outcome.
func (s *stage) wantYield(c yieldCase) {
	s.t.Helper()
	if got := types(s.model.sent()); got != c.sent {
		s.t.Errorf("the model is sent %q, not %q", got, c.sent)
	}
	if got := s.story(); !strings.Contains(got, c.want) {
		s.t.Errorf("%s has no %s", got, c.want)
	}
}

// TestYieldsAtAProvider: the same if the provider plays the sound. The model is told how much was heard. If it began to
// answer meanwhile, the sound of that is cut, too, and the answer is asked for again, unless it began work.
func TestYieldsAtAProvider(t *testing.T) {
	const cut = "output_audio_buffer.clear conversation.item.truncate"
	for _, c := range []yieldCase{
		{"a murmur", true, yieldMurmurs, "", "said n@", ""},
		{"speech that goes on", true, yieldSpeaks, cut, "cut n@1900", ""},
		{"speech that goes on while it is made", false, yieldSpeaks, "response.cancel " + cut, "cut n@1900", ""},
		{"a word", true, yieldWord, cut, "cut n@1900", ""},
		{"a word while it is made", false, yieldWord, "response.cancel " + cut, "cut n@1900", "response.create"},
		{"a word that is answered", true, yieldAnswered, "response.cancel " + cut, "cut n@1900", "response.create"},
		{"words that become work", true, yieldActs, cut, "cut n@1900", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			playAttached(t, func(s *stage) {
				s.call.hearing.backchannel = func(words string) bool { return words == "mm-hmm" }
				s.call.hearing.yielding.lowers = true
				s.fromModel(`{"type":"session.updated","session":{"type":"realtime","audio":{"input":{"turn_detection":` +
					`{"type":"server_vad","interrupt_response":false}}}}}`)
				s.model.sent()
				s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
				tag := tagIn(s.wantSent(s.model, "conversation.item.create:message response.create")[1])
				s.began = time.Now()
				s.fromModel(began("r1", tag), spoken("r1"), `{"type":"output_audio_buffer.started","response_id":"r1"}`)
				if c.made {
					s.fromModel(done("r1", tag, "completed"))
				}
				s.wait(time.Second)
				c.run(s)
				sent := s.model.sent()
				if got := types(sent); got != c.sent {
					t.Errorf("the provider is sent %q, not %q", got, c.sent)
				}
				for _, event := range sent {
					if strings.Contains(event, "truncate") && !strings.Contains(event, `"audio_end_ms":1900`) {
						t.Errorf("truncated by %s", event)
					}
				}
				what := "stopped"
				if c.sent != "" {
					what = "cleared"
				}
				s.fromModel(`{"type":"output_audio_buffer.` + what + `","response_id":"r1"}`)
				if !c.made {
					s.fromModel(done("r1", tag, "cancelled"))
				} else if strings.HasPrefix(c.sent, "response.cancel") {
					s.fromModel(done("r2", "", "cancelled"))
				}
				s.wantSent(s.model, c.again)
				s.wait(floor.Delay[floor.TimerVAD])
				if got := s.story(); !strings.Contains(got, c.want) {
					t.Errorf("%s has no %s", got, c.want)
				}
			})
		})
	}
}

// TestYieldsAtOnce: a response that begins while the caller speaks is stopped at once. Clients that lower no sound, and
// sessions without interruption, behave as ever.
func TestYieldsAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		lowers, patient, sounds bool
		want                    string
	}{
		"not yet heard":          {true, true, false, "response.cancel"},
		"heard":                  {true, true, true, ""},
		"the model stops itself": {true, false, false, ""},
		"lowers nothing":         {false, true, false, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t)
			s.call.legs.takesOurs, s.call.hearing.yielding.lowers = true, c.lowers
			s.open(map[bool]string{true: patient, false: freshSession}[c.patient])
			s.fromModel(began("r1", ""))
			if c.sounds {
				s.fromModel(audio("r1", time.Second))
			}
			s.fromModel(speechStarted("u1"))
			if got := types(s.model.sent()); got != c.want {
				t.Errorf("%s: the model is sent %q, not %q", name, got, c.want)
			}
			s.close()
		})
	}
}

// TestYieldsToWhatALegPlays: a performer plays all that it was sent, even if the estimate says that it is over.
func TestYieldsToWhatALegPlays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newWire()
		s := newStageFor(t, client, performing{client})
		s.call.hearing.yielding.lowers = true
		s.open(patient)
		s.fromModel(began("r1", ""), audio("r1", 20*time.Second), done("r1", "", "completed"))
		s.fromModel(began("r2", ""), audio("r2", time.Second))
		s.fromClient(`{"type":"switchboard.played","response_id":"r1","audio_ms":900,"cut":true}`)
		s.model.sent()
		s.fromModel(speechStarted("u1"))
		if got := types(s.model.sent()); got != "" {
			t.Errorf("at the first sound the model is sent %q", got)
		}
		s.client.sent()
		s.wait(yieldAfter)
		told := strings.Join(s.client.sent(), "")
		if got := types(s.model.sent()); got != "response.cancel" || !strings.Contains(told, `"response_ids":["r2"]`) {
			t.Errorf("the model is sent %q, the leg %q", got, told)
		}
		s.close()
	})
}
