package calltest

import (
	"strings"
	"sync"
	"time"

	"switchboard/handoff"
)

// A Voice is a call whose voice model says each utterance 200 ms after it was asked to, unless it is deaf. It
// implements [handoff.Voice].
type Voice struct {
	world    *World                            // Set once
	told     func(call string, works []string) // Set once: takes what will be said; may be nil
	promises func(call, work string)           // Set once: takes the work that an answer promises; may be nil
	events   chan handoff.VoiceEvent           // closed by End
	deaf     bool                              // Set once
	name     string                            // Set once: of the call

	mu       sync.Mutex
	ended    bool              // Guarded by mu
	last     handoff.Utterance // Guarded by mu: the newest
	talking  int               // Guarded by mu: utterances under way
	talk     sync.WaitGroup    // utterances being said
	answered map[string]bool   // Guarded by mu: answered call ids
}

// newVoice returns a voice that is not served yet.
func newVoice(w *World, name string, deaf bool) *Voice {
	return &Voice{world: w, name: name, deaf: deaf, events: make(chan handoff.VoiceEvent, 64), answered: map[string]bool{}}
}

// Events implements [handoff.Voice].
func (v *Voice) Events() <-chan handoff.VoiceEvent { return v.events }

// end ends the call, and waits until all utterances are said.
func (v *Voice) end() {
	v.mu.Lock()
	v.ended = true
	close(v.events)
	v.mu.Unlock()
	v.talk.Wait()
}

// Say implements [handoff.Voice].
func (v *Voice) Say(u handoff.Utterance) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = u
	what, spoken := "note", u.Floor == handoff.FloorAsk
	if spoken {
		what = "say"
	}
	if u.CallID != "" {
		what = "answer " + u.CallID + map[handoff.Floor]string{handoff.FloorUnlessSpoke: " early"}[u.Floor]
		if v.answered[u.CallID] {
			v.world.T.Errorf("the call %s was answered twice", u.CallID)
		}
		v.answered[u.CallID] = true
	}
	if v.world.crowded.Load() {
		what = v.name + ", " + what
	}
	if v.ended {
		what += " (the call has ended)"
	}
	v.world.Record("say", what, u.Text)
	if work, early := strings.CutSuffix(u.ID, "-a"); early && u.CallID != "" && len(u.Tells) == 0 && v.promises != nil {
		v.promises(v.name, work)
	}
	if v.ended || v.deaf {
		return
	}
	v.reportTold(u)
	v.talk.Go(func() { v.speak(u, spoken) })
}

// reportTold reports the works whose outcome an utterance tells.
func (v *Voice) reportTold(u handoff.Utterance) {
	if v.told != nil {
		v.told(v.name, u.Tells)
	}
}

// confirm has a deaf voice model say its last utterance. If cut, it is interrupted: how has the share that was heard,
// and the words until then. Otherwise the utterance counts as told.
func (v *Voice) confirm(cut bool, how string) {
	v.mu.Lock()
	u := v.last
	v.mu.Unlock()
	said := handoff.Said{ID: u.ID, At: time.Now(), Cut: cut, Made: how != ""}
	if how != "" {
		share, words, _ := strings.Cut(how, " ")
		said.Share, said.Text = v.world.Share(share), words
	} else if !cut {
		said.Text = u.Text
	}
	if !cut {
		v.reportTold(u)
	}
	v.events <- said
}

// keepSilent has a deaf voice model say nothing of its last utterance.
func (v *Voice) keepSilent() {
	v.mu.Lock()
	u := v.last
	v.mu.Unlock()
	v.events <- handoff.Said{ID: u.ID, Unsaid: true}
}

// speak says an utterance word for word, which takes 200 ms.
func (v *Voice) speak(u handoff.Utterance, spoken bool) {
	time.Sleep(10 * time.Millisecond)
	v.mu.Lock()
	if spoken && !v.ended {
		v.talking++
		v.events <- handoff.Quiet{On: false}
	}
	v.mu.Unlock()
	time.Sleep(190 * time.Millisecond)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended {
		return
	}
	v.events <- handoff.Said{ID: u.ID, At: time.Now(), Text: u.Text}
	if spoken {
		if v.talking--; v.talking == 0 {
			v.events <- handoff.Quiet{On: true}
		}
	}
}
