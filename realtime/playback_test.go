package realtime

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/floor"
)

// performing is a wire whose far end plays the sound itself.
type performing struct{ *wire }

func (performing) Performs() {}

func heardOf(response string, ms int, cut bool) string {
	return fmt.Sprintf(`{"type":%q,"response_id":%q,"audio_ms":%d,"cut":%t}`, events.TypePlayed, response, ms, cut)
}

// A performer's report counts, whatever the estimate says.
func TestPerformerTellsWhatWasHeard(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(s *stage, tag string)
		want string
	}{
		{"to its end", func(s *stage, tag string) {
			s.fromModel(began("r1", tag), audio("r1", time.Second), done("r1", tag, "completed"))
			s.wait(10 * time.Second)
			s.wantStory("loud")
			s.fromClient(heardOf("r1", 1000, false))
		}, "said n@10000; quiet"},
		{"cleared", func(s *stage, tag string) {
			s.fromModel(began("r1", tag), audio("r1", time.Minute))
			s.wait(time.Second)
			s.fromClient(heardOf("r1", 900, true))
			s.fromModel(done("r1", tag, "completed"))
		}, "loud; cut n@1000; quiet"},
		{"cancelled, and heard as far as it was made", func(s *stage, tag string) {
			s.fromModel(began("r1", tag), audio("r1", time.Second), done("r1", tag, "cancelled"))
			s.fromClient(heardOf("r1", 1000, false))
		}, "loud; cut n@0; quiet"},
		{"what its client sends does not cut", func(s *stage, tag string) {
			s.fromModel(began("r1", tag), audio("r1", time.Second), done("r1", tag, "completed"))
			s.wait(time.Second)
			s.fromClient(`{"type":"response.cancel"}`, `{"type":"conversation.item.truncate","item_id":"i","audio_end_ms":7}`)
			s.fromModel(speechStarted("u1"))
		}, "loud; spoke@1000"},
		{"text alone", func(s *stage, tag string) {
			s.fromModel(began("r1", tag), spoken("r1"), done("r1", tag, "completed"))
		}, "loud; said n@0; quiet"},
		{"it tells before a sound came", func(s *stage, tag string) {
			s.fromModel(began("r1", tag))
			s.fromClient(heardOf("r1", 0, true))
			s.fromModel(audio("r1", time.Minute), done("r1", tag, "cancelled"), began("r2", ""), done("r2", "", "completed"))
		}, "loud"}, // asked for again
		{"it tells twice, and of others", func(s *stage, tag string) {
			s.fromModel(began("r1", tag), audio("r1", time.Second), done("r1", tag, "completed"))
			s.fromClient(heardOf("r9", 1000, false), heardOf("r1", 1000, false), heardOf("r1", 0, true))
		}, "loud; said n@0; quiet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			playBrowser(t, func(s *stage) {
				c.run(s, s.asks("n"))
				s.wantStory(c.want)
				for _, e := range s.model.sent() {
					if strings.Contains(e, events.TypePlayed) {
						t.Errorf("the model was sent %s", e)
					}
				}
			})
		})
	}
}

// The page clears its buffer when nothing is left in it: the call must not think that it still sounds.
func TestClearedWhenNothingPlays(t *testing.T) {
	playBrowser(t, func(s *stage) {
		s.fromModel(done("none", "", "completed"), began("r1", ""))
		s.fromClient(heardOf("r1", 0, true)) // so a player says it; what still comes is muted there
		s.fromModel(audio("r1", time.Minute), done("r1", "", "completed"))
		s.wantStory("loud; quiet")
	})
}

// On another leg the same event is an unknown one of the client's, and reports nothing.
func TestOtherClientsTellNothing(t *testing.T) {
	play(t, func(s *stage) {
		tag := s.asks("n")
		s.fromModel(began("r1", tag), audio("r1", time.Second), done("r1", tag, "completed"))
		s.fromClient(heardOf("r1", 1000, false))
		s.wantSent(s.model, events.TypePlayed)
		s.wantStory("loud")
	})
}

// Sound of a response that never began holds the model back until it is over, and the loop does not wake for each piece
// of it.
func TestSoundOfNoKnownResponse(t *testing.T) {
	play(t, func(s *stage) {
		const piece, pieces = 20 * time.Millisecond, 100
		rings := map[time.Time]bool{}
		for range pieces {
			s.fromModel(audio("never", piece))
			s.wait(piece)
			s.call.do(func() { rings[s.call.awaits.alarm] = true })
		}
		if most := int(pieces*piece/strayLag) + 1; len(rings) > most {
			t.Errorf("the loop waited for %d times, want %d at most", len(rings), most)
		}
		s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		s.wantSent(s.model, "")
		s.wait(strayLag)
		s.wantSent(s.model, "conversation.item.create:message response.create")
	})
}

// An out-of-band voice is heard, but tells no utterance of ours, and the caller's speech does not cancel it.
func TestVoiceOutOfBand(t *testing.T) {
	play(t, func(s *stage) {
		s.fromModel(`{"type":"response.created","response":{"id":"o1","metadata":{"sb":"out"}}}`, speechStarted("u1"),
			speechStopped("u1"))
		s.wait(floor.Delay[floor.TimerVAD])
		s.wantStory("spoke@0; loud; quiet")
		s.fromModel(audio("o1", time.Second),
			`{"type":"response.done","response":{"id":"o1","status":"completed","metadata":{"sb":"out"}}}`)
		s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		s.wantSent(s.model, "")
		s.wait(time.Second)
		s.wantSent(s.model, "conversation.item.create:message response.create")
		s.wantStory("loud")
		if n := len(s.call.hearing.playback.voices) + s.call.saying.floor.Open(); n != 0 {
			t.Errorf("%d responses are kept", n)
		}
	})
}

func TestPlayback(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	add := func(e *playback, ms int, response string, length int) {
		e.add(at(ms), []byte(response), []byte("i-"+response), length*g711Rate, g711Rate)
	}
	two := func() *playback { // r1 sounds until 1000, r2 behind it until 1500
		e := newPlayback(false)
		e.begin("r1", false)
		add(&e, 0, "r1", 1000)
		e.complete("r1")
		e.done("r1")
		e.begin("r2", false)
		add(&e, 100, "r2", 500)
		return &e
	}
	all := func(string, *playing) bool { return true }
	for _, c := range []struct {
		name string
		got  func(*playback) []floor.Played
		want string
	}{
		{"nothing is over", func(e *playback) []floor.Played { return e.drain(at(999)) }, "[]"},
		{"the first is over", func(e *playback) []floor.Played { return e.drain(at(1000)) }, "[{r1 2}]"},
		{"the second is not made", func(e *playback) []floor.Played { return e.drain(at(9000)) }, "[{r1 2}]"},
		{"both are over, in order", func(e *playback) []floor.Played { e.complete("r2"); return e.drain(at(1500)) },
			"[{r1 2} {r2 2}]"},
		{"cut in the first", func(e *playback) []floor.Played { return e.cut(at(500), all) }, "[{r1 1} {r2 0}]"},
		{"cut before the end of a word", func(e *playback) []floor.Played { return e.cut(at(499), all) }, "[{r1 0} {r2 0}]"},
		{"cut in the second", func(e *playback) []floor.Played {
			add(e, 200, "r2", 500)
			e.drain(at(1500))
			return e.cut(at(1500), all)
		}, "[{r2 1}]"},
		{"cut at once", func(e *playback) []floor.Played { return e.cut(at(0), all) }, "[{r1 0} {r2 0}]"},
		{"one of them", func(e *playback) []floor.Played {
			return e.cut(at(500), func(_ string, v *playing) bool { return v.items[0] == "i-r2" })
		}, "[{r2 0}]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := fmt.Sprint(append([]floor.Played{}, c.got(two())...)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	e := two()
	if next := e.next(at(0)); next != at(1000) || !e.soundsAt(at(1499)) || e.soundsAt(at(1500)) {
		t.Errorf("it looks again at %v", next.Sub(start))
	}
	if e.cut(at(500), func(id string, _ *playing) bool { return id == "r1" }); !e.soundsAt(at(1499)) {
		t.Error("what was not cut is not heard")
	}
	if e.cut(at(600), all); e.soundsAt(at(600)) || !e.next(at(600)).IsZero() {
		t.Error("it sounds after all was cut")
	}
	if heard, _ := e.add(at(700), []byte("r2"), nil, 8000, g711Rate); heard || e.soundsAt(at(700)) {
		t.Error("what was cut sounds on")
	}
	if e.add(at(2000), nil, nil, 100*pcmRate, pcmRate); !e.soundsAt(at(2099)) || e.soundsAt(at(2100)) {
		t.Error("what comes after a pause sounds from then on, for as long as its format says")
	}
	if e.done("r2"); len(e.voices) != 1 { // of r1 the floor was not told
		t.Errorf("%d voices are kept", len(e.voices))
	}
}

// looksAgain returns when the alarm of the playback rings next, or zero.
func (s *stage) looksAgain() (at time.Time) {
	s.call.do(func() { at = s.call.alarms[alarmPlayback].at })
	return at
}

// Sound that is sent as fast as it plays rings no timer while its response runs, and one when the response is complete.
func TestSoundOfARunningResponseRingsNoTimer(t *testing.T) {
	play(t, func(s *stage) {
		s.fromModel(began("r1", ""))
		for range 50 {
			if s.fromModel(audio("r1", 20*time.Millisecond)); !s.looksAgain().IsZero() {
				t.Fatalf("the call looks again in %v", time.Until(s.looksAgain()))
			}
			s.wait(20 * time.Millisecond)
		}
		s.wantStory("loud")
		s.fromModel(audio("r1", 300*time.Millisecond))
		s.fromModel(done("r1", "", "completed"))
		if at := s.looksAgain(); !at.Equal(time.Now().Add(300 * time.Millisecond)) {
			t.Errorf("the end of the sound is waited for until %v", at)
		}
		s.wait(300 * time.Millisecond)
		s.wantStory("quiet")
	})
}

// If the model reports no end of a response and begins the next one, the first is heard to its end.
func TestSoundOfAResponseWhoseEndIsForgotten(t *testing.T) {
	play(t, func(s *stage) {
		s.fromModel(began("r1", ""), audio("r1", time.Second), began("r2", ""))
		if at := s.looksAgain(); !at.Equal(time.Now().Add(time.Second)) {
			t.Errorf("the end of the first is waited for until %v", at)
		}
		s.wait(time.Second)
		s.call.do(func() {
			if first := s.call.hearing.playback.voices["r1"]; first != nil && !first.over {
				t.Error("the first is not over")
			}
		})
	})
}

// TestShareOfWhatWasCut: of speech that was cut, the router learns how much of its sound was heard, whether the
// response was complete, and its words.
func TestShareOfWhatWasCut(t *testing.T) {
	const words = "41 of 42 tests pass. One fails."
	for name, c := range map[string]struct {
		status   string
		performs bool
		share    float64
	}{
		"made to its end":            {"completed", false, 0.3},
		"cancelled":                  {"cancelled", false, 0.3},
		"performed, made to its end": {"completed", true, 0.25},
		"performed, and cancelled":   {"cancelled", true, 0.25},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newWire()
				on := leg(client)
				if c.performs {
					on = performing{client}
				}
				s := newStageFor(t, client, on)
				s.open(freshSession)
				s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
				sent := s.model.sent()
				tag := tagIn(sent[len(sent)-1])
				s.fromModel(began("r1", tag), audio("r1", 4*time.Second), audio("r1", 6*time.Second))
				s.wait(3 * time.Second)
				s.router.heard()
				s.fromModel(`{"type":"input_audio_buffer.speech_started"}`)
				if c.performs {
					s.fromClient(heardOf("r1", 2500, true))
				}
				s.fromModel(done("r1", tag, c.status, `{"id":"i","type":"message","role":"assistant",`+
					`"content":[{"type":"output_audio","transcript":"`+words+`"}]}`))
				want := handoff.Said{ID: "n", At: s.began.Add(3 * time.Second), Cut: true, Text: words, Share: c.share,
					Made: c.status == "completed"}
				if heard := s.router.heard(); !slices.Contains(heard, handoff.VoiceEvent(want)) {
					t.Errorf("%+v, not %+v", heard, want)
				}
				s.close()
			})
		})
	}
}
