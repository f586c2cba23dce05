package calltest

import (
	"strings"
	"sync"
	"time"

	"switchboard/handoff"
)

// A Voice is a call whose voice model says what it is asked to say 200 ms later, unless it is deaf. It implements
// [handoff.Voice].
type Voice struct {
	world  *World                            // Set once
	said   func(call string, works []string) // Set once: takes what will be said; may be nil
	vows   func(call, work string)           // Set once: takes the work that an answer promises; may be nil
	events chan handoff.Event                // closed by End
	deaf   bool                              // Set once
	name   string                            // Set once: of the call

	mu      sync.Mutex
	ended   bool              // Guarded by mu
	last    handoff.Utterance // Guarded by mu: the newest
	talking int               // Guarded by mu: utterances under way
	talk    sync.WaitGroup    // utterances being said
	given   map[string]bool   // Guarded by mu: answered call ids
}

// newVoice returns one that is not served yet.
func newVoice(w *World, name string, deaf bool) *Voice {
	return &Voice{world: w, name: name, deaf: deaf, events: make(chan handoff.Event, 64), given: map[string]bool{}}
}

// Events implements [handoff.Voice].
func (v *Voice) Events() <-chan handoff.Event { return v.events }

// end ends the call once all is said.
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
		if v.given[u.CallID] {
			v.world.T.Errorf("the call %s was answered twice", u.CallID)
		}
		v.given[u.CallID] = true
	}
	if v.world.crowded.Load() {
		what = v.name + ", " + what
	}
	if v.ended {
		what += " (the call has ended)"
	}
	v.world.Record("say", what, u.Text)
	if work, early := strings.CutSuffix(u.ID, "-a"); early && u.CallID != "" && len(u.Tells) == 0 && v.vows != nil {
		v.vows(v.name, work)
	}
	if v.ended || v.deaf {
		return
	}
	v.tell(u)
	v.talk.Go(func() { v.speak(u.ID, spoken) })
}

// tell notes what will be said.
func (v *Voice) tell(u handoff.Utterance) {
	if v.said != nil {
		v.said(v.name, u.Tells)
	}
}

// confirm has a deaf voice model say what it was given last, or begin to: then how names the share that was heard, and
// the words, of which there is no more. What is not cut before its meaning was heard is told.
func (v *Voice) confirm(cut bool, how string) {
	v.mu.Lock()
	u := v.last
	v.mu.Unlock()
	said := handoff.Said{ID: u.ID, At: time.Now(), Cut: cut, Made: how != ""}
	if how != "" {
		share, words, _ := strings.Cut(how, " ")
		said.Share, said.Text = v.world.Share(share), words
	}
	if !cut {
		v.tell(u)
	}
	v.events <- said
}

// keepsSilent has a deaf voice model say nothing of what it was given last.
func (v *Voice) keepsSilent() {
	v.mu.Lock()
	u := v.last
	v.mu.Unlock()
	v.events <- handoff.Said{ID: u.ID, Unsaid: true}
}

// speak takes the time of words that are said.
func (v *Voice) speak(id string, spoken bool) {
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
	v.events <- handoff.Said{ID: id, At: time.Now()}
	if spoken {
		if v.talking--; v.talking == 0 {
			v.events <- handoff.Quiet{On: true}
		}
	}
}
