package floor

import (
	"time"

	"switchboard/handoff"
)

// Timer names a timer that the floor needs.
type Timer int

const (
	TimerVAD      Timer = iota // the response of voice detection is overdue
	timerSiblings              // requests had their time to be answered together
	timerAsk                   // an ask got neither a response nor an error
	timerUnknown               // a response we never saw still blocks
	timerEcho                  // a response without a tag ended and ours did not follow
	TimerOpen                  // the client has not set its session up
	TimerRest                  // after an ask failed
	timerLongRest              // after it failed again
	TimerSpeech                // the caller speaks, but no sound comes from them
	TimerRun                   // a response runs, but nothing comes of it
	timerTheirs                // the client owes an output to a response that holds a request of ours, too
	timerTheirAsk              // it gave them, and owes the ask
	TimerKinds                 // how many there are
)

// Delay holds how long each timer runs. Set once.
var Delay = [TimerKinds]time.Duration{
	TimerVAD: time.Second, timerSiblings: time.Second, timerAsk: 15 * time.Second, timerUnknown: 15 * time.Second,
	timerEcho: 3 * time.Second, TimerOpen: time.Second, TimerRest: time.Second, timerLongRest: 3 * time.Second,
	TimerSpeech: 5 * time.Second, TimerRun: time.Minute, timerTheirs: 10 * time.Second,
	timerTheirAsk: 500 * time.Millisecond,
}

// StatusEmpty is the status of a response that the model completed without anything in it.
const StatusEmpty = "empty"

// An Event is something the floor has to know.
type Event interface{ floorEvent() }

type (
	// Uttered: an utterance of ours went to the model. Call is the request that it answers, or "".
	Uttered struct {
		ID, Call string
		Need     handoff.Floor
	}
	// ClientAsked: the client sent a response.create for the default conversation. Apart: the response will read
	// nothing of it. Instructed: it brings instructions of its own, and the response may tell nothing else.
	ClientAsked struct {
		Ask               string
		Apart, Instructed bool
	}
	// Created: a response began; Tag is its ask, "" for voice detection.
	Created struct{ Response, Tag string }
	// Ended: a response is done. Status is one of the API, or StatusEmpty. Output: the caller got some of it.
	Ended struct {
		Response, Tag, Status string
		Output                bool
	}
	// Refused: another response runs already.
	Refused struct{ Ask string }
	// Rejected: an ask failed for any other reason.
	Rejected struct{ Ask string }
	// Withdrawn: the model did not take the utterance.
	Withdrawn struct{ ID string }
	// Missed: the model has the utterance only now, not yet when it was asked for it.
	Missed struct{ ID string }
	// Taken: the utterance is in the conversation, for every response that begins from now on.
	Taken struct{ ID string }
	// Called: a response holds a request of ours.
	Called struct{ Response, Call string }
	// Mixed: a response that holds requests of ours, or was asked for with speech of ours, also calls what is not ours:
	// these functions of the client, which it has not answered, or tools that the provider runs.
	Mixed struct {
		Response string
		Calls    []string
	}
	// Output: the client answered a call.
	Output struct{ Call string }
	// Cancelled: the client takes back what it asked for.
	Cancelled struct{}
	// Spoke: a response gave the caller something to hear or read. Silence: it gave nothing, as the model chose, and
	// needs no other to speak for it.
	Spoke struct {
		Response string
		Silence  bool
	}
	// Sounded: sound of a response is on its way to the caller.
	Sounded struct{ Response string }
	// Played: nothing more of its sound will be heard.
	Played struct {
		Response string
		Heard    Heard
	}
	// Speech: the caller began or stopped speaking.
	Speech struct{ On bool }
	// Hushed: what the caller was saying was thrown away; no response follows.
	Hushed struct{}
	// Sounding: the model's voice began or ended for the caller.
	Sounding struct{ On bool }
	// Listening: how the session detects turns.
	Listening struct{ Manual, Auto bool }
	// Opened: the model's session exists.
	Opened struct{}
	// Configured: the model has the client's settings.
	Configured struct{}
	// Away: nobody is there to hear anything, or somebody is again.
	Away struct{ On bool }
	// Lost: the model's session is gone, with what was asked for in it and what the caller was saying. Nothing is
	// asked for until Renewed.
	Lost struct{}
	// Renewed: another session of the model goes on.
	Renewed struct{}
	// Elapsed: a timer ran out.
	Elapsed struct {
		Timer Timer
		Gen   int
	}
)

func (Uttered) floorEvent()     {}
func (ClientAsked) floorEvent() {}
func (Created) floorEvent()     {}
func (Ended) floorEvent()       {}
func (Refused) floorEvent()     {}
func (Rejected) floorEvent()    {}
func (Withdrawn) floorEvent()   {}
func (Missed) floorEvent()      {}
func (Taken) floorEvent()       {}
func (Called) floorEvent()      {}
func (Mixed) floorEvent()       {}
func (Output) floorEvent()      {}
func (Cancelled) floorEvent()   {}
func (Spoke) floorEvent()       {}
func (Sounded) floorEvent()     {}
func (Played) floorEvent()      {}
func (Speech) floorEvent()      {}
func (Hushed) floorEvent()      {}
func (Sounding) floorEvent()    {}
func (Listening) floorEvent()   {}
func (Opened) floorEvent()      {}
func (Configured) floorEvent()  {}
func (Away) floorEvent()        {}
func (Lost) floorEvent()        {}
func (Renewed) floorEvent()     {}
func (Elapsed) floorEvent()     {}

// EffectKind is what is to be done.
type EffectKind int

const (
	EffectAsk       EffectKind = iota // send our response.create, tagged with ask, for this speech
	EffectForward                     // send the client's response.create, tagged with ask; this speech rides along
	EffectGiven                       // the caller got this speech
	EffectSilent                      // this speech needs no response after all
	EffectLost                        // this speech is given up
	EffectTimer                       // start the timer; an older one of its kind is void
	EffectCancel                      // cancel our response, and let nothing of it be heard
	EffectTakenBack                   // this ask of the client waited, and is not sent any more
	EffectQuiet                       // both sides became quiet (on), or no longer are
)

// An Effect is one thing to be done, in order.
type Effect struct {
	Kind       EffectKind
	Ask        string
	Utterances []string
	Response   string // that gave them, or ""; or to be cancelled
	Cut        bool   // the caller got only a part
	Mute       bool   // EffectAsk: it may call nothing
	Timer      Timer
	Gen        int
	On         bool
	Invited    bool // EffectQuiet: only the client asks
}

// A Heard is what the caller got of the sound of a response.
type Heard int

const (
	HeardNothing Heard = iota // it was cut before the end of a word
	HeardPart                 // it was cut
	HeardWhole                // to its end
)

// effects are those of a step, with the timers that they start. Owned by the floor.
type effects struct {
	armed [TimerKinds]int // generation of each timer
	out   []Effect
}

// arm starts a timer; an older one of its kind is void.
func (s *effects) arm(t Timer) {
	s.armed[t]++
	s.out = append(s.out, Effect{Kind: EffectTimer, Timer: t, Gen: s.armed[t]})
}

// emit adds an Effect for speech, unless there is none.
func (s *effects) emit(x Effect, speech []*pendingSpeech) {
	if len(speech) == 0 {
		return
	}
	for _, w := range speech {
		x.Utterances = append(x.Utterances, w.id)
	}
	s.out = append(s.out, x)
}
