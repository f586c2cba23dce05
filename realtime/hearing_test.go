package realtime

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"switchboard/handoff"
	"switchboard/realtime/floor"
	"switchboard/realtime/rtc/rtctest"
)

// attesting is a wire that knows when its far end was there.
type attesting struct {
	*wire
	seen   atomic.Pointer[time.Time]
	probes atomic.Int32
}

func (a *attesting) Seen() time.Time { return *a.seen.Load() }
func (a *attesting) Probe()          { a.probes.Add(1) }
func (a *attesting) sign()           { a.seen.Store(new(time.Now())) }

// TestGivenToAClientThatIsThere checks what counts as heard: three seconds of an answer are said to a client that has
// shown no sign before.
func TestGivenToAClientThatIsThere(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(*stage, *attesting)
		want string
	}{
		{"it speaks", func(s *stage, a *attesting) {
			s.wait(2500 * time.Millisecond)
			a.sign()
			s.wait(time.Second)
		}, "loud; said n@3000; quiet"},
		{"it answers when it is asked", func(s *stage, a *attesting) {
			s.wait(3100 * time.Millisecond)
			a.sign()
			s.wait(signEvery)
		}, "loud; quiet; said n@3000"},
		{"its next event tells", func(s *stage, a *attesting) {
			s.wait(3100 * time.Millisecond)
			a.sign()
			s.fromClient(`{"type":"conversation.item.create","item":{"type":"message","role":"user",` +
				`"content":[{"type":"input_text","text":"yes"}]}}`)
		}, "loud; quiet; said n@3000; heard yes@3100"},
		{"it comes back too late", func(s *stage, a *attesting) {
			s.wait(3*time.Second + signAfter + time.Second)
			a.sign()
			s.wait(time.Minute)
		}, "loud; quiet"},
		{"it says goodbye", func(s *stage, a *attesting) {
			s.wait(3 * time.Second)
			a.sign()
			close(s.client.gone)
			synctest.Wait()
		}, "loud; quiet; said n@3000"},
		{"it is gone", func(s *stage, a *attesting) {
			s.wait(3 * time.Second)
			close(s.client.gone)
			synctest.Wait()
		}, "loud; quiet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &attesting{wire: newWire()}
				a.sign()
				s := newStageFor(t, a.wire, a)
				s.open(freshSession)
				s.wait(time.Minute)
				s.began = time.Now()
				tag := s.asks("n")
				s.fromModel(began("r1", tag), audio("r1", 3*time.Second), done("r1", tag, "completed"))
				c.run(s, a)
				s.wantStory(c.want)
				s.close()
			})
		})
	}
}

// The sound of a response may be over long before the response, which goes on to write a function call: only at its end
// a sign is asked for, and the client has the usual time for it.
func TestSignAfterALateEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &attesting{wire: newWire()}
		a.sign()
		s := newStageFor(t, a.wire, a)
		s.open(freshSession)
		s.wait(time.Minute)
		s.began = time.Now()
		tag := s.asks("n")
		s.fromModel(began("r1", tag), audio("r1", 3*time.Second))
		s.wait(3*time.Second + 2*signAfter)
		s.fromModel(done("r1", tag, "completed"))
		s.wait(100 * time.Millisecond)
		if a.probes.Load() != 1 {
			t.Errorf("asked for a sign %d times", a.probes.Load())
		}
		a.sign()
		s.wait(signEvery)
		s.wantStory("loud; quiet; said n@3000")
		s.close()
	})
}

// A sign that came in time counts when it is looked for too late, as on a machine that is busy.
func TestSignSeenLate(t *testing.T) {
	for after, want := range map[time.Duration]int{signAfter: 1, signAfter + 1: 0} {
		synctest.Test(t, func(t *testing.T) {
			a := &attesting{wire: newWire()}
			a.sign()
			c := newCall(someone, ours, "rtc_test", a, newWire(), nopLog())
			time.Sleep(time.Minute)
			c.hearing.noteGiven(handoff.Said{ID: "n"}, "", false)
			time.Sleep(after)
			a.sign()
			time.Sleep(time.Second)
			c.hearing.checkSigns(time.Now())
			if len(c.pending) != want || c.counts.unsure != 1-want {
				t.Errorf("a sign after %v: %d said, %d given up", after, len(c.pending), c.counts.unsure)
			}
		})
	}
}

// The utterances that wait for a sign are bounded, and the client is asked for a sign once.
func TestSignsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &attesting{wire: newWire()}
		a.sign()
		c := newCall(someone, ours, "rtc_test", a, newWire(), nopLog())
		time.Sleep(time.Minute)
		for range maxUnsure + 3 {
			c.hearing.noteGiven(handoff.Said{ID: "n"}, "", false)
		}
		if len(c.hearing.unsure) != maxUnsure || c.counts.unsure != 3 || a.probes.Load() != 1 {
			t.Errorf("%d wait, %d given up, asked %d times", len(c.hearing.unsure), c.counts.unsure, a.probes.Load())
		}
	})
}

// A client that sends nothing shows itself when it is asked, by answering a ping.
func TestIdleSocketIsSeen(t *testing.T) {
	h := newHouse(t)
	client, model := h.call("")
	leg := h.joined().legs.client.(*socket)
	before := leg.Seen()
	leg.Probe()
	leg.Flush()
	go func() { // whoever reads answers pings
		for {
			if _, _, err := client.ReadMessage(); err != nil {
				return
			}
		}
	}()
	rtctest.Eventually(t, "sign of the client", func() bool { return leg.Seen().After(before) })
	_ = client.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""),
		time.Now().Add(patience))
	expectClose(t, model, websocket.CloseNormalClosure)
}

// joined waits for the call that the router was given last.
func (h *house) joined() *Call {
	h.t.Helper()
	var voice handoff.Voice
	rtctest.Eventually(h.t, "a call that the router knows", func() bool {
		h.router.mu.Lock()
		defer h.router.mu.Unlock()
		voice = h.router.voice
		return voice != nil
	})
	return voice.(*Call)
}

// A call that is over is not listed while its legs close: another window of the page would offer to move it there.
func TestCallThatIsOverIsNotListed(t *testing.T) {
	h := newHouse(t)
	h.call("")
	c := h.joined()
	if n := len(h.front.Calls(someone)); n != 1 {
		t.Fatalf("%d calls", n)
	}
	c.over.Store(true)
	if n := len(h.front.Calls(someone)); n != 0 {
		t.Errorf("%d calls are listed", n)
	}
	c.over.Store(false)
}

// TestVoiced: whatever the model says in the conversation is reported in its words, with when its sound began.
func TestVoiced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.open(freshSession)
		s.router.heard()
		words := `{"id":"i","type":"message","role":"assistant","content":[{"type":"output_audio","transcript":"Yes, go ahead."}]}`
		s.fromModel(began("r1", ""), audio("r1", time.Second))
		from := time.Now()
		s.wait(300 * time.Millisecond)
		s.fromModel(done("r1", "", "completed", words), began("r2", ""), done("r2", "", "completed"))
		want := []handoff.VoiceEvent{handoff.Voiced{Text: "Yes, go ahead.", From: from}}
		got := slices.DeleteFunc(s.router.heard(), func(e handoff.VoiceEvent) bool { _, is := e.(handoff.Voiced); return !is })
		if !slices.Equal(got, want) {
			t.Errorf("%+v, not %+v", got, want)
		}
		s.close()
	})
}

// TestSaidInWords: what was said comes with the words that the model wrote down, also after many others;
// where it wrote none, or they are long ago, there are none.
func TestSaidInWords(t *testing.T) {
	message := func(parts string) string {
		return `{"id":"i","type":"message","role":"assistant","status":"completed","content":[` + parts + `]}`
	}
	for name, c := range map[string]struct {
		items []string
		other int // responses while it is heard
		want  string
	}{
		"spoken": {[]string{message(`{"type":"output_audio","transcript":" Bigpc asks. "},{"type":"output_audio",` +
			`"transcript":"May it?"}`)}, 0, "Bigpc asks. May it?"},
		"written": {[]string{message(`{"type":"output_text","text":"Bigpc asks."}`)}, maxSaid - 2, "Bigpc asks."},
		"two items": {[]string{message(`{"type":"output_text","text":"One."}`),
			message(`{"type":"output_text","text":"Two."}`)}, 0, "One. Two."},
		"nothing":       {nil, 0, ""},
		"no transcript": {[]string{message(`{"type":"output_audio"}`)}, 0, ""},
		"forgotten":     {[]string{message(`{"type":"output_text","text":"Bigpc asks."}`)}, maxSaid, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				call := newCall(someone, ours, "rtc_test", newWire(), newWire(), nopLog())
				for _, e := range []string{freshSession, began("r0", ""), done("r0", "", "completed")} {
					call.fromModel([]byte(e))
				}
				call.saying.tell(floor.Configured{})
				call.saying.say(handoff.Utterance{ID: "n", Text: "ask", Floor: handoff.FloorAsk})
				call.fromModel([]byte(began("r1", "a1")))
				call.fromModel([]byte(audio("r1", time.Second)))
				call.fromModel([]byte(done("r1", "a1", "completed", c.items...)))
				for i := range c.other {
					id := fmt.Sprint("other", i)
					call.fromModel([]byte(began(id, "")))
					call.fromModel([]byte(done(id, "", "completed", message(`{"type":"output_text","text":"hm"}`))))
				}
				time.Sleep(time.Second)
				call.hearing.reportPlayback(time.Now(), call.hearing.playback.drain(time.Now()))
				var said []handoff.Said
				for _, e := range call.pending {
					if s, ok := e.(handoff.Said); ok {
						said = append(said, s)
					}
				}
				if len(said) != 1 || said[0].Text != c.want {
					t.Errorf("said %+v", said)
				}
			})
		})
	}
}
