package realtime

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/realtime/floor"
)

func speechStarted(item string) string {
	return fmt.Sprintf(`{"type":"input_audio_buffer.speech_started","item_id":%q}`, item)
}

func speechStopped(item string) string {
	return fmt.Sprintf(`{"type":"input_audio_buffer.speech_stopped","item_id":%q}`, item)
}

func transcribed(item, text string) string {
	return fmt.Sprintf(`{"type":"conversation.item.input_audio_transcription.completed","item_id":%q,"transcript":%q}`,
		item, text)
}

// asks says something that wants the floor and returns the tag of the ask that follows.
func (s *stage) asks(ids ...string) string {
	s.t.Helper()
	for _, id := range ids {
		s.say(handoff.Utterance{ID: id, Text: "done", Floor: handoff.FloorAsk})
	}
	for _, e := range s.model.sent() {
		if tag := tagIn(e); tag != "" {
			return tag
		}
	}
	s.t.Fatal("nothing was asked")
	return ""
}

// hearingCases are what happens to a response, and what is reported to the router.
var hearingCases = []struct {
	name string
	run  func(s *stage, tag string)
	want string
}{
	{"to its end", func(s *stage, tag string) {
		s.fromModel(began("r1", tag), audio("r1", 2*time.Second), audio("r1", time.Second), done("r1", tag, "completed"))
		s.wait(4 * time.Second)
	}, "loud; said n@3000; quiet"},
	{"made slower than it sounds", func(s *stage, tag string) {
		s.fromModel(began("r1", tag), audio("r1", time.Second))
		s.wait(3 * time.Second)
		s.fromModel(audio("r1", time.Second), done("r1", tag, "completed"))
		s.wait(4 * time.Second)
	}, "loud; said n@4000; quiet"},
	{"done after it was heard", func(s *stage, tag string) {
		s.fromModel(began("r1", tag), audio("r1", time.Second))
		s.wait(3 * time.Second)
		s.fromModel(done("r1", tag, "completed"))
	}, "loud; said n@1000; quiet"},
	{"text alone", func(s *stage, tag string) {
		s.fromModel(began("r1", tag), `{"type":"response.output_text.delta","response_id":"r1","delta":"hm"}`)
		s.wait(time.Second)
		s.fromModel(done("r1", tag, "completed"))
	}, "loud; said n@1000; quiet"},
	{"text alone, cancelled", func(s *stage, tag string) {
		s.fromModel(began("r1", tag), `{"type":"response.output_text.delta","response_id":"r1","delta":"hm"}`,
			done("r1", tag, "cancelled"))
	}, "loud; cut n@0; quiet"},
	{"barge-in while it is made", func(s *stage, tag string) {
		s.fromModel(began("r1", tag), audio("r1", 5*time.Second))
		s.wait(2 * time.Second)
		s.fromModel(speechStarted("u1"), audio("r1", 5*time.Second))
		s.wait(time.Second)
		s.fromModel(done("r1", tag, "cancelled"))
	}, "loud; spoke@2000; cut n@2000"},
	{"barge-in while it is heard", func(s *stage, tag string) {
		s.fromModel(began("r1", tag), audio("r1", 5*time.Second), done("r1", tag, "completed"))
		s.wait(2 * time.Second)
		s.fromModel(speechStarted("u1"))
	}, "loud; spoke@2000; cut n@2000"},
	{"response.cancel", func(s *stage, tag string) {
		s.fromModel(began("r1", tag), audio("r1", 5*time.Second))
		s.wait(2 * time.Second)
		s.fromClient(`{"type":"response.cancel"}`)
		s.fromModel(done("r1", tag, "cancelled"))
	}, "loud; cut n@2000; quiet"},
	{"the client truncates", func(s *stage, tag string) {
		s.fromModel(began("r1", tag), audio("r1", 5*time.Second), done("r1", tag, "completed"))
		s.wait(time.Second)
		s.fromClient(`{"type":"conversation.item.truncate","item_id":"another"}`)
		s.wait(time.Second)
		s.fromClient(`{"type":"conversation.item.truncate","item_id":"i"}`)
	}, "loud; cut n@2000; quiet"},
	{"the client clears", func(s *stage, tag string) {
		s.fromModel(began("r1", tag), audio("r1", 5*time.Second), done("r1", tag, "completed"))
		s.wait(time.Second)
		s.fromClient(`{"type":"output_audio_buffer.clear"}`)
	}, "loud; cut n@1000; quiet"},
	{"the client goes", func(s *stage, tag string) {
		s.fromModel(began("r1", tag), audio("r1", 5*time.Second), done("r1", tag, "completed"))
		s.wait(time.Second)
		close(s.client.gone)
		synctest.Wait()
	}, "loud"},
}

func TestSaidWhenItWasHeard(t *testing.T) {
	for _, c := range hearingCases {
		t.Run(c.name, func(t *testing.T) {
			play(t, func(s *stage) {
				c.run(s, s.asks("n"))
				s.wantStory(c.want)
			})
		})
	}
}

// The caller speaks just when everything was heard, before the alarm has rung.
func TestSpeechRightAfterTheEndCutsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCall(someone, ours, "rtc_test", newWire(), newWire(), nopLog())
		for _, e := range []string{freshSession, began("r1", ""), audio("r1", time.Second), done("r1", "", "completed")} {
			c.fromModel([]byte(e))
		}
		c.saying.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		c.saying.tell(floor.Configured{})
		time.Sleep(time.Second)
		c.hearing.reportPlayback(time.Now(), c.hearing.playback.drain(time.Now()))
		c.fromModel([]byte(began("r2", "a1")))
		c.fromModel([]byte(audio("r2", time.Second)))
		c.fromModel([]byte(done("r2", "a1", "completed")))
		time.Sleep(time.Second)
		c.fromModel([]byte(speechStarted("u1")))
		if got := c.pending[len(c.pending)-1]; got != (handoff.Said{ID: "n", At: time.Now()}) {
			t.Errorf("router is told %+v", got)
		}
	})
}

func TestWhatOneResponseSaidIsSaidTogether(t *testing.T) {
	play(t, func(s *stage) {
		s.fromModel(began("r0", ""))
		s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		s.say(handoff.Utterance{ID: "m", Text: "done", Floor: handoff.FloorAsk})
		s.fromModel(done("r0", "", "completed"))
		tag := tagIn(s.model.sent()[2])
		s.fromModel(began("r1", tag), audio("r1", time.Second), done("r1", tag, "completed"))
		s.wait(time.Second)
		s.wantStory("loud; said n@1000; said m@1000; quiet")
	})
}

// An utterance of which nothing was heard is asked for again: MaxStarts times in all if the caller speaks into its
// beginning, and MaxCuts times if the client cancels it while nobody speaks.
func TestNothingHeardIsNotSaid(t *testing.T) {
	for _, c := range []struct {
		name  string
		cut   func(s *stage, response, tag, item string)
		times int
	}{
		{"the caller speaks", func(s *stage, r, tag, u string) {
			s.fromModel(speechStarted(u), done(r, tag, "cancelled"), speechStopped(u))
		}, floor.MaxStarts},
		{"the client cancels", func(s *stage, r, tag, _ string) {
			s.fromClient(`{"type":"response.cancel"}`)
			s.fromModel(done(r, tag, "cancelled"))
		}, floor.MaxCuts},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, func(s *stage) {
				asked := 0
				for tag := s.asks("n"); tag != "" && asked < 2*floor.MaxStarts; {
					asked++
					r := fmt.Sprint("r", asked)
					s.fromModel(began(r, tag), audio(r, time.Second))
					c.cut(s, r, tag, fmt.Sprint("u", asked))
					s.wait(floor.Delay[floor.TimerVAD])
					tag = ""
					for _, event := range s.model.sent() {
						if strings.Contains(event, `"response.create"`) {
							tag = tagIn(event)
						}
					}
				}
				if asked != c.times {
					t.Errorf("asked %d times, want %d", asked, c.times)
				}
				if got := s.story(); strings.Contains(got, "said") || strings.Contains(got, "cut") {
					t.Errorf("router heard %s", got)
				}
			})
		})
	}
}

// Spoken words count when their sound was heard, not when their transcript came.
func TestTranscriptAloneWasNotHeard(t *testing.T) {
	play(t, func(s *stage) {
		tag := s.asks("n")
		message := `{"id":"i","type":"message","role":"assistant","status":"incomplete","content":[{"type":"output_audio",` +
			`"transcript":"All"}]}`
		s.fromModel(began("r1", tag), spoken("r1"), done("r1", tag, "cancelled", message))
		s.wantStory("loud")
		if again := tagIn(s.wantSent(s.model, "response.create")[0]); again == tag {
			t.Errorf("asked %s again", again)
		}
	})
}

// A client that speech does not interrupt plays on.
func TestPatientSessionIsHeardToItsEnd(t *testing.T) {
	playFresh(t, func(s *stage) {
		s.open(strings.Replace(freshSession, `"create_response":true`, `"create_response":true,"interrupt_response":false`,
			1))
		tag := s.asks("n")
		s.fromModel(began("r1", tag), audio("r1", 2*time.Second), done("r1", tag, "completed"))
		s.wait(time.Second)
		s.fromModel(speechStarted("u1"))
		s.wait(2 * time.Second)
		s.wantStory("loud; spoke@1000; said n@2000")
	})
}

func TestSilentUtteranceIsSaidWhenTheModelHasIt(t *testing.T) {
	play(t, func(s *stage) {
		s.say(handoff.Utterance{ID: "n", Text: "a note", Floor: handoff.FloorNone})
		s.wait(time.Second)
		s.fromModel(itemAdded(`{"id":"sb_n","type":"message"}`))
		s.wait(time.Second)
		s.wantStory("said n@1000")
	})
}

func TestQuiet(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(*stage)
		want string
	}{
		{"the caller speaks, and is answered", func(s *stage) {
			s.fromModel(speechStarted("u1"), speechStopped("u1"))
			s.wait(500 * time.Millisecond)
			s.fromModel(began("r1", ""), audio("r1", time.Second), done("r1", "", "completed"))
			s.wait(900 * time.Millisecond)
			s.wantStory("spoke@0; loud")
			s.wait(200 * time.Millisecond)
		}, "quiet"},
		{"nobody answers", func(s *stage) {
			s.fromModel(speechStarted("u1"), speechStopped("u1"))
			s.wait(900 * time.Millisecond)
			s.wantStory("spoke@0; loud")
			s.wait(200 * time.Millisecond)
		}, "quiet"},
		{"what was said is thrown away", func(s *stage) {
			s.fromModel(speechStarted("u1"), `{"type":"input_audio_buffer.cleared"}`)
		}, "spoke@0; loud; quiet"},
		{"a response without a word", func(s *stage) { s.fromModel(began("r1", ""), done("r1", "", "completed")) },
			"loud; quiet"},
		{"an ask is about to be answered", func(s *stage) {
			tag := s.asks("n")
			s.wantStory("loud")
			s.fromModel(began("r1", tag), done("r1", tag, "failed"))
		}, "quiet"},
		{"one after the other", func(s *stage) {
			s.fromModel(began("r1", ""))
			s.fromClient(`{"type":"response.create"}`)
			s.fromModel(done("r1", "", "completed"))
		}, "loud"},
		{"push to talk", func(s *stage) {
			s.fromClient(`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"turn_detection":null}}}}`)
			s.fromModel(speechStarted("u1"))
			s.wantStory("invited; spoke@0")
			s.fromModel(began("r1", ""), audio("r1", time.Second), done("r1", "", "completed"))
			s.wait(time.Second)
		}, "loud; invited"},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, func(s *stage) {
				c.run(s)
				s.wantStory(c.want)
			})
		})
	}
}

func TestQuietBeginsWithTheSession(t *testing.T) {
	playFresh(t, func(s *stage) {
		s.began = time.Now()
		s.fromModel(freshSession)
		s.wantStory("")
		s.wait(floor.Delay[floor.TimerOpen])
		s.wantStory("quiet")
	})
}

func TestSpokeAndHeard(t *testing.T) {
	const appended, commit = `{"type":"input_audio_buffer.append","audio":"AAAA"}`, `{"type":"input_audio_buffer.commit"}`
	confirmed := func(item string) string {
		return fmt.Sprintf(`{"type":"input_audio_buffer.committed","item_id":%q}`, item)
	}
	play(t, func(s *stage) {
		s.fromModel(speechStarted("u1"))
		s.wait(time.Second)
		s.fromModel(speechStopped("u1"), confirmed("u1"), speechStarted("u2"))
		s.wait(time.Second)
		s.fromModel(transcribed("u1", "one"), transcribed("u2", " "), transcribed("u9", "nine"))
		s.wantStory("spoke@0; loud; spoke@1000; heard one@0; heard @1000; heard nine@?")
		s.fromModel(`{"type":"input_audio_buffer.speech_started"}`, confirmed("u3"), transcribed("u3", "three"))
		s.wantStory("spoke@2000; heard three@2000")

		s.fromClient(`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"turn_detection":null}}}}`,
			appended)
		s.wait(time.Second)
		s.fromClient(appended, commit, appended)
		s.wait(time.Second)
		s.fromClient(commit, commit) // the third has no sound
		s.fromModel(confirmed("u4"), transcribed("u4", "four"), confirmed("u5"), transcribed("u5", "five"))
		s.wantStory("invited; spoke@2000; spoke@3000; heard four@2000; heard five@3000")

		s.fromClient(appended)
		s.wait(time.Second)
		s.fromClient(`{"type":"input_audio_buffer.clear"}`, appended, commit)
		s.fromModel(`{"type":"error","error":{"type":"invalid_request_error","code":"input_audio_buffer_commit_empty",` +
			`"message":"no"}}`)
		s.fromClient(appended)
		s.wait(time.Second)
		s.fromClient(commit)
		s.fromModel(confirmed("u6"), transcribed("u6", "six"))
		s.wantStory("spoke@5000; spoke@5000; heard six@5000")

		s.fromClient(`{"type":"conversation.item.create","item":{"type":"message","role":"user",` +
			`"content":[{"type":"input_text","text":"seven"}]}}`)
		s.wantStory("heard seven@6000")
	})
}

// The event comes later than the speech: the model's count of milliseconds says when that began, if it is plausible.
func TestSpokeWhenItBegan(t *testing.T) {
	started := func(ms int) string {
		return fmt.Sprintf(`{"type":"input_audio_buffer.speech_started","item_id":"u1","audio_start_ms":%d}`, ms)
	}
	for _, c := range []struct {
		name, settings string
		start          int
		want           string
	}{
		{"with what it puts before", ``, 400, "spoke@700"},
		{"as the session says", `"turn_detection":{"type":"server_vad","prefix_padding_ms":100}`, 400, "spoke@500"},
		{"in the future", ``, 900, "spoke@1000"},
		{"by another clock", ``, -2000, "spoke@1000"},
		{"of a caller in another format", `"format":{"type":"audio/pcma"}`, 5500, "spoke@800"},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.fromModel(`{"type":"session.updated","session":{"audio":{"input":{` + c.settings + `}}}}`)
				for range 10 {
					s.wait(100 * time.Millisecond)
					s.fromClient(`{"type":"input_audio_buffer.append","audio":"` + strings.Repeat("AAAA", 100*pcmRate/3) + `"}`)
				}
				s.fromModel(started(c.start))
				s.wantStory(c.want + "; loud")
			})
		})
	}
}

func TestSentencesAreBounded(t *testing.T) {
	var all sentences
	for i := range 3 * maxSentences {
		all.start(fmt.Sprint(i), time.Now())
	}
	if len(all) != maxSentences || all.of(fmt.Sprint(3*maxSentences-1)).began.IsZero() || !all.of("0").began.IsZero() {
		t.Errorf("it keeps %d, or forgot the wrong ones", len(all))
	}
}

// The model may choose to say nothing: its response then counts as one that spoke.
func TestRemainSilent(t *testing.T) {
	const output = "conversation.item.create:function_call_output"
	for _, c := range []struct {
		name, calls string
		answers     []handoff.Utterance
		want        string
	}{
		{"alone", "k1", []handoff.Utterance{{ID: "a", CallID: "k1"}}, output},
		{"with an early answer after it", "k1 k2", []handoff.Utterance{{ID: "a", CallID: "k1"},
			{ID: "b", CallID: "k2", Text: "{}", Floor: handoff.FloorUnlessSpoke}}, output + " " + output},
		{"with an early answer before it", "k1 k2", []handoff.Utterance{{ID: "b", CallID: "k2", Text: "{}",
			Floor: handoff.FloorUnlessSpoke}, {ID: "a", CallID: "k1"}}, output + " " + output},
		{"with a silent sibling", "k1 k2", []handoff.Utterance{{ID: "a", CallID: "k1"}, {ID: "b", CallID: "k2", Text: "{}"}},
			output + " " + output},
		{"with a sibling that must be told", "k1 k2", []handoff.Utterance{{ID: "a", CallID: "k1"},
			{ID: "b", CallID: "k2", Text: "{}", Floor: handoff.FloorAsk}}, output + " " + output + " response.create"},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.requests("r1", strings.Fields(c.calls)...)
				for _, u := range c.answers {
					s.say(u)
				}
				s.wait(10 * time.Second) // siblings are waited for 2 s
				s.wantSent(s.model, c.want)
			})
		})
	}
}
