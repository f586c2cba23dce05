package realtime

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// fleeting is a wire whose far end may vanish.
type fleeting struct {
	*attesting
	vanished atomic.Bool
	why      *handoff.Error
}

func newFleeting() *fleeting {
	f := &fleeting{attesting: &attesting{wire: newWire()}}
	f.sign()
	return f
}

func (f *fleeting) Vanished() bool        { return f.vanished.Load() }
func (f *fleeting) Ended() *handoff.Error { return f.why }

// vanish ends the leg without a goodbye.
func (f *fleeting) vanish() {
	f.vanished.Store(true)
	close(f.gone)
	synctest.Wait()
}

const holding = 2 * time.Minute

// playHeld runs a test on a stage whose call waits for its client.
func playHeld(t *testing.T, fn func(*stage, *fleeting)) {
	synctest.Test(t, func(t *testing.T) {
		client := newFleeting()
		s := newStageFor(t, client.wire, client)
		s.call.legs.hold = holding
		s.open(freshSession)
		fn(s, client)
		s.close()
	})
}

// rejoin lets a client come back on a new leg, which the stage plays from then on.
func (s *stage) rejoin() *fleeting {
	s.t.Helper()
	again := newFleeting()
	s.call.do(func() { s.call.session.replaceClient(again) })
	s.client, s.on = again.wire, again
	synctest.Wait()
	return again
}

func (s *stage) over() bool {
	select {
	case err := <-s.ended:
		s.ended <- err
		return true
	default:
		return false
	}
}

// A client that vanishes keeps its call for the hold time and no longer; the call then ends as if somebody had hung up.
func TestHeldCallEndsInTime(t *testing.T) {
	playHeld(t, func(s *stage, client *fleeting) {
		client.vanish()
		s.wait(holding - time.Millisecond)
		if s.over() || !s.call.isHeld() {
			t.Fatal("it did not wait")
		}
		s.wait(time.Millisecond)
		if !s.over() || s.call.cause != nil {
			t.Fatalf("it goes on, or ended with %v", s.call.cause)
		}
	})
}

// What ends a call at once.
func TestNotHeld(t *testing.T) {
	for name, end := range map[string]func(*stage, *fleeting){
		"a goodbye": func(_ *stage, client *fleeting) { close(client.gone) },
		"a hang-up": func(s *stage, _ *fleeting) { s.call.hangUp() },
		"a client that does not keep up": func(_ *stage, client *fleeting) {
			client.why = handoff.Fault(handoff.CodeSlowClient, "", "")
			close(client.gone)
		},
		"a call that waits for nobody": func(s *stage, client *fleeting) {
			s.call.legs.hold = 0
			client.vanish()
		},
		"a hang-up while it waits": func(s *stage, client *fleeting) {
			client.vanish()
			s.call.hangUp()
		},
		"a model that is gone while it waits": func(s *stage, client *fleeting) {
			client.vanish()
			close(s.model.gone)
		},
	} {
		t.Run(name, func(t *testing.T) {
			playHeld(t, func(s *stage, client *fleeting) {
				end(s, client)
				if synctest.Wait(); !s.over() {
					t.Error("it goes on")
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // before it was one
		client := newFleeting()
		s := newStageFor(t, client.wire, client)
		s.call.legs.hold = holding
		if client.vanish(); !s.over() {
			t.Error("a call that never began waits")
		}
		s.close()
	})
}

// A client that takes nothing and shows no sign of life has lost its network.
func TestSlowClientWithoutASign(t *testing.T) {
	playHeld(t, func(s *stage, client *fleeting) {
		s.wait(writeLimit)
		client.why = handoff.Fault(handoff.CodeSlowClient, "", "a write")
		close(client.gone)
		if synctest.Wait(); s.over() {
			t.Error("it ended")
		}
	})
}

// What was being said when the client vanished counts as not heard, and is said once the client is back; until then
// nothing is said.
func TestNothingIsSaidIntoNothing(t *testing.T) {
	playHeld(t, func(s *stage, client *fleeting) {
		tag := s.asks("n")
		s.fromModel(began("r1", tag), audio("r1", 10*time.Second))
		s.wait(3 * time.Second)
		client.vanish()
		s.wantSent(s.model, "response.cancel")
		s.fromModel(audio("r1", time.Second), spoken("r1"), done("r1", tag, "cancelled"))
		s.say(handoff.Utterance{ID: "final", Text: "It is done.", Floor: handoff.FloorAsk})
		s.wait(time.Minute)
		s.wantSent(s.model, "")
		s.wantStory("loud") // from when it spoke: it is not quiet where nobody is
		s.client.sent()

		s.rejoin()
		created := s.wantSent(s.client, events.TypeSessionCreated)[0]
		if gjson.Get(created, "session.instructions").String() != "be nice" ||
			gjson.Get(created, "session.tools.#").Int() != 0 {
			t.Errorf("it begins with %s", created)
		}
		sent := s.wantSent(s.model, "conversation.item.create:message conversation.item.create:message response.create")
		if !strings.Contains(sent[0], "lost for 61 s") || !strings.Contains(sent[1], "It is done.") {
			t.Errorf("the model is told %s", sent)
		}
		again := tagIn(sent[2])
		s.fromModel(began("r2", again), audio("r2", time.Second), done("r2", again, "completed"))
		s.on.(*fleeting).sign()
		s.wait(2 * time.Second)
		s.wantStory("said n@64000; said final@64000; quiet")
	})
}

// What was made, and heard in part, is said anew.
func TestCutByTheNetwork(t *testing.T) {
	playHeld(t, func(s *stage, client *fleeting) {
		tag := s.asks("n")
		s.fromModel(began("r1", tag), audio("r1", 10*time.Second), done("r1", tag, "completed"))
		s.wait(3 * time.Second)
		client.vanish()
		s.wait(time.Minute)
		s.wantSent(s.model, "")
		s.rejoin()
		s.wantSent(s.model, "conversation.item.create:message response.create")
		s.wantStory("loud")
	})
}

// What had ended when the client vanished, without a sign that it was heard, counts as not heard, however soon the
// client is back.
func TestUnsureIsNotHeard(t *testing.T) {
	playHeld(t, func(s *stage, client *fleeting) {
		s.wait(time.Minute)
		tag := s.asks("n")
		s.fromModel(began("r1", tag), audio("r1", time.Second), done("r1", tag, "completed"))
		s.wait(1100 * time.Millisecond)
		client.vanish()
		s.rejoin()
		s.fromClient(`{"type":"input_audio_buffer.append","audio":"AAAA"}`)
		s.wait(10 * time.Second)
		if story := s.story(); strings.Contains(story, "said n") {
			t.Errorf("%s", story)
		}
	})
}

// What the caller asked for before goes on: the model hands it over, the answer reaches the model, and is told later.
func TestWorkOfAHeldCall(t *testing.T) {
	playHeld(t, func(s *stage, client *fleeting) {
		s.fromModel(began("r1", ""))
		client.vanish()
		it := callItem("item_1", "call_1", "codex", events.StatusCompleted)
		s.fromModel(spoken("r1"), itemDone("r1", it), done("r1", "", events.StatusCompleted, it))
		s.wantHeard(handoff.FunctionCall{CallID: "call_1", Tool: "codex", Arguments: `{"server":"bigpc"}`})
		s.say(handoff.Utterance{ID: "a", CallID: "call_1", Text: `{"ok":true}`, Floor: handoff.FloorUnlessSpoke})
		s.wait(time.Second)
		s.wantSent(s.model, "conversation.item.create:function_call_output")
		s.rejoin()
		s.wantSent(s.model, "conversation.item.create:message response.create")
	})
}

// A sentence whose end is lost is thrown away, and the model hears nothing meanwhile.
func TestHalfASentence(t *testing.T) {
	playHeld(t, func(s *stage, client *fleeting) {
		s.fromModel(`{"type":"input_audio_buffer.speech_started","audio_start_ms":0,"item_id":"u1"}`)
		client.vanish()
		s.wantSent(s.model, events.TypeInputClear)
		s.wait(time.Minute)
		s.rejoin()
		s.wantSent(s.model, "conversation.item.create:message")
	})
}

// A client may notice first that its connection is lost: its new leg replaces the one that seems to be connected, and
// nothing from that counts any more.
func TestRejoinedBeforeItIsMissed(t *testing.T) {
	playHeld(t, func(s *stage, client *fleeting) {
		tag := s.asks("n")
		s.fromModel(began("r1", tag), audio("r1", 10*time.Second))
		s.client.sent()
		s.rejoin()
		s.wantSent(s.client, events.TypeSessionCreated)
		s.feed(s.call.takeFrom(client), []string{`{"type":"input_audio_buffer.append","audio":"AAAA"}`})
		s.fromModel(audio("r1", time.Second))
		s.wantSent(s.client, "") // or it would hear the rest of what it is told anew
		s.wantSent(s.model, "response.cancel conversation.item.create:message")
		s.fromModel(done("r1", tag, events.StatusCancelled))
		s.wantSent(s.model, "response.create")
		client.vanish()
		if s.wait(holding + time.Second); s.over() {
			t.Error("the end of the old leg ended the call")
		}
	})
}

// A client may vanish again and again, each time for as long.
func TestHeldAgain(t *testing.T) {
	playHeld(t, func(s *stage, client *fleeting) {
		for range 5 {
			client.vanish()
			s.wait(holding - time.Second)
			client = s.rejoin()
			s.wait(time.Second)
		}
		if s.over() || s.call.counts.holds != 5 || s.call.counts.rejoins != 5 {
			t.Errorf("%+v", s.call.counts)
		}
	})
}

// A held call whose client has come back meanwhile is not ended by a new call.
func TestCallThatIsBackDoesNotGiveWay(t *testing.T) {
	playHeld(t, func(s *stage, client *fleeting) {
		client.vanish()
		s.rejoin()
		if s.call.endIfHeld() || s.over() {
			t.Error("it gave way")
		}
		s.on.(*fleeting).vanish()
		if way := s.call.endIfHeld(); !way {
			t.Error("one that waits did not give way")
		}
		if synctest.Wait(); !s.over() || s.call.cause != nil {
			t.Errorf("it goes on, or ended with %v", s.call.cause)
		}
	})
}

// A browser's call is held as soon as its session has begun: a page that is reloaded at once comes back before its
// channel was open.
func TestBrowserIsHeldBeforeItsChannelOpens(t *testing.T) {
	type browser struct {
		*fleeting
		performing
	}
	synctest.Test(t, func(t *testing.T) {
		client := newFleeting()
		s := newStageFor(t, client.wire, browser{fleeting: client, performing: performing{client.wire}})
		s.call.legs.hold = holding
		s.fromClient(formats)
		s.fromModel(freshSession)
		if client.vanish(); s.over() || !s.call.isHeld() {
			t.Fatal("its call ended")
		}
		for range s.model.sent() {
			s.fromModel(updated)
		}
		again := newFleeting()
		s.call.do(func() { s.call.session.replaceClient(browser{fleeting: again, performing: performing{again.wire}}) })
		s.client, s.on = again.wire, browser{fleeting: again, performing: performing{again.wire}}
		s.fromClient(opened)
		if s.wait(time.Minute); s.over() || s.call.isHeld() {
			t.Error("it is not back")
		}
		s.say(handoff.Utterance{ID: "n", Text: "It is done.", Floor: handoff.FloorAsk})
		if sent := strings.Join(s.model.sent(), "\n"); !strings.Contains(sent, "It is done.") ||
			!strings.Contains(sent, "response.create") {
			t.Errorf("the model is told %s", sent)
		}
		s.close()
	})
}
