package realtime

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/floor"
)

// A response that the provider plays is over when the provider reports it.
func TestPlaybackOfAProvider(t *testing.T) {
	began := time.Now()
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	fresh := func() *playback {
		p := newPlayback(true)
		p.begin("r", false)
		return &p
	}
	for name, c := range map[string]struct {
		do   func(*playback) []floor.Played
		want string
	}{
		"heard whole": {func(p *playback) []floor.Played { p.plays(at(0), "r", true); return p.stops(at(900), "r", false) },
			fmt.Sprint([]floor.Played{{Response: "r", Heard: floor.HeardWhole}})},
		"cut": {func(p *playback) []floor.Played { p.plays(at(0), "r", true); return p.stops(at(900), "r", true) },
			fmt.Sprint([]floor.Played{{Response: "r", Heard: floor.HeardPart}})},
		"cut at once": {func(p *playback) []floor.Played { p.plays(at(0), "r", true); return p.stops(at(100), "r", true) },
			fmt.Sprint([]floor.Played{{Response: "r", Heard: floor.HeardNothing}})},
		"nobody tells": {func(p *playback) []floor.Played { p.plays(at(0), "r", false); return p.stops(at(100), "", false) },
			fmt.Sprint([]floor.Played{{Response: "r", Heard: floor.HeardWhole}})},
		"done before it sound": {func(p *playback) []floor.Played {
			p.done("r")
			p.plays(at(0), "r", true)
			return p.stops(at(900), "r", false)
		}, fmt.Sprint([]floor.Played{{Response: "r", Heard: floor.HeardWhole}})},
		"twice": {func(p *playback) []floor.Played {
			p.plays(at(0), "r", true)
			p.stops(at(900), "r", false)
			return p.stops(at(901), "r", true)
		}, "[]"},
		"another's": {func(p *playback) []floor.Played { p.plays(at(0), "r", true); return p.stops(at(900), "q", false) },
			"[]"},
		"silent": {func(p *playback) []floor.Played { return p.stops(at(900), "r", false) }, "[]"},
	} {
		if got := fmt.Sprint(c.do(fresh())); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// playAttached runs a test on a call of a provider that reports its session only when asked. The session has begun.
func playAttached(t *testing.T, fn func(*stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := newAttached(t)
		fn(s)
		s.close()
	})
}

func newAttached(t *testing.T) *stage { return newAttachedAs(t, &attached{}) }

func newAttachedAs(t *testing.T, state *attached) *stage {
	s := newStageBy(t, someone, newWire(), newPeer(), func(c *Call) { c.attach(state) })
	s.wantSent(s.model, "session.update")
	s.fromModel(`{"type":"session.updated","session":{"type":"realtime","instructions":"theirs",` +
		`"audio":{"input":{"transcription":{"model":"whisper-1"}}}}}`)
	s.wantSent(s.model, "session.update")
	s.wait(floor.Delay[floor.TimerOpen])
	s.router.heard()
	s.began = time.Now()
	return s
}

// A response that the provider plays counts as heard when the provider reports its end, and until then nothing else is
// asked for. A provider that reports nothing is taken to have played it after the time that its words need.
func TestHeardAtAProvider(t *testing.T) {
	started, stopped := `{"type":"output_audio_buffer.started","response_id":"r1"}`, `{"type":"output_audio_buffer.`+
		`stopped","response_id":"r1"}`
	cleared := `{"type":"output_audio_buffer.cleared","response_id":"r1"}`
	for name, c := range map[string]struct {
		during, after []string
		want, later   string // what the router is told within two seconds of the end of the response, and of all
	}{
		"it tells":           {[]string{started, spoken("r1")}, []string{stopped}, "loud", "said n@2000; quiet"},
		"it tells no words":  {[]string{started}, []string{stopped}, "loud", "said n@2000; quiet"},
		"it tells late":      {[]string{spoken("r1")}, []string{started, stopped}, "loud; said n@160; quiet", ""},
		"it tells nothing":   {[]string{spoken("r1")}, nil, "loud; said n@160; quiet", ""},
		"the caller cuts in": {[]string{started, spoken("r1")}, []string{cleared}, "loud", "cut n@2000; quiet"},
		"its stop is lost":   {[]string{started, spoken("r1")}, nil, "loud", "cut n@15160; quiet"},
		"it was written alone": {[]string{`{"type":"response.output_text.delta","response_id":"r1","delta":"hm"}`}, nil,
			"loud; said n@0; quiet", ""},
	} {
		t.Run(name, func(t *testing.T) {
			playAttached(t, func(s *stage) {
				s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
				tag := tagIn(s.wantSent(s.model, "conversation.item.create:message response.create")[1])
				s.fromModel(began("r1", tag))
				s.fromModel(c.during...)
				s.fromModel(done("r1", tag, events.StatusCompleted))
				s.wait(2 * time.Second)
				s.wantStory(c.want)
				s.fromModel(c.after...)
				s.wait(20 * time.Second)
				if got := s.story(); !strings.Contains(got, c.later) {
					t.Errorf("later %s, want %s", got, c.later)
				}
				s.say(handoff.Utterance{ID: "m", Text: "more", Floor: handoff.FloorAsk})
				s.wantSent(s.model, "conversation.item.create:message response.create")
			})
		})
	}
}

// A caller whom the provider carries may speak for longer than one whose sound has stopped here.
func TestLongSpeechAtAProvider(t *testing.T) {
	playAttached(t, func(s *stage) {
		s.fromModel(speechStarted("u1"))
		s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		s.wait(longSpeech)
		s.wantSent(s.model, "")
		s.wait(2 * floor.Delay[floor.TimerSpeech])
		s.wantSent(s.model, "conversation.item.create:message response.create")
	})
}

// After five minutes without a sign of the caller the provider is asked whether the call is still there: a quiet caller
// stays in it, and one who has gone does not use up an hour.
func TestVigil(t *testing.T) {
	for name, c := range map[string]struct {
		said  time.Duration // when the caller speaks; 0: never
		after time.Duration // from when on the provider does not know the call
		asked int
		ends  time.Duration
	}{
		"gone at once":       {0, time.Second, 1, checkCallerAfter},
		"quiet, then gone":   {0, 2*checkCallerAfter + time.Second, 3, 3 * checkCallerAfter},
		"speaks, then gone":  {4 * time.Minute, 4*time.Minute + time.Second, 1, 4*time.Minute + checkCallerAfter},
		"nobody knows a way": {0, -1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			playAttached(t, func(s *stage) {
				began, asked := time.Now(), 0
				s.call.do(func() {
					s.call.alarms[alarmCaller].at = began.Add(checkCallerAfter)
					s.call.renewal.spawn = func(work func(context.Context)) { go work(t.Context()) }
					s.call.hearing.attached.probe = func(context.Context) *handoff.Error {
						asked++
						switch since := time.Since(began); {
						case c.after < 0:
							return handoff.Fault(handoff.CodeVoiceUnreachable, "", "")
						case since >= c.after:
							return handoff.Fault(handoff.CodeNotFound, "such call", "")
						}
						return nil
					}
				})
				if c.said > 0 {
					s.wait(c.said)
					s.fromModel(speechStarted("u1"), `{"type":"input_audio_buffer.speech_stopped","item_id":"u1"}`)
				}
				if c.ends == 0 {
					s.wait(time.Hour)
					if s.call.over.Load() || asked < 10 {
						t.Errorf("over: %t, asked %d times", s.call.over.Load(), asked)
					}
					return
				}
				s.wait(c.ends - time.Since(began) - time.Second)
				if s.call.over.Load() {
					t.Fatalf("it ended after %v", time.Since(began))
				}
				s.wait(2 * time.Second)
				if !s.call.over.Load() || asked != c.asked {
					t.Errorf("over: %t, asked %d times", s.call.over.Load(), asked)
				}
			})
		})
	}
}
