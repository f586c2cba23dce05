package floor

import (
	"time"

	"switchboard/handoff"
)

// Timer is one of the floor's timers.
type Timer int

const (
	TimerVAD      Timer = iota // the response that voice detection starts has not begun
	timerSiblings              // the requests of a response had time to be answered together
	timerAsk                   // an ask got neither a response nor an error
	timerUnknown               // a response that we never saw still blocks the floor
	timerEcho                  // a response without a tag ended, and none with the tag of our ask began
	TimerOpen                  // the client had time to set up its session
	TimerRest                  // the pause after an ask failed
	timerLongRest              // the pause after it failed again
	TimerSpeech                // the caller speaks, but no sound comes from them
	TimerRun                   // a response runs, but no events of it come
	timerTheirs                // the client has not answered its calls in a response that also holds ours
	timerTheirAsk              // the client has answered them, and has not asked for the next response
	TimerKinds                 // the number of timers
)

// Delay holds how long each timer runs. Set once.
var Delay = [TimerKinds]time.Duration{
	TimerVAD: time.Second, timerSiblings: time.Second, timerAsk: 15 * time.Second, timerUnknown: 15 * time.Second,
	timerEcho: 3 * time.Second, TimerOpen: time.Second, TimerRest: time.Second, timerLongRest: 3 * time.Second,
	TimerSpeech: 5 * time.Second, TimerRun: time.Minute, timerTheirs: 10 * time.Second,
	timerTheirAsk: 500 * time.Millisecond,
}

// StatusEmpty is the status of a response that the model completed with nothing in it.
const StatusEmpty = "empty"

// An Event is something the floor has to know.
type Event interface{ floorEvent() }

type (
	// Uttered: an utterance of ours went to the model. Call is the request that it answers, or "".
	Uttered struct {
		ID, Call string
		Need     handoff.Floor
	}
	// ClientAsked: the client sent a response.create for the default conversation. Apart: it brings its own input,
	// so the response reads nothing of the conversation. Instructed: it brings instructions, so the response may tell
	// nothing else.
	ClientAsked struct {
		Ask               string
		Apart, Instructed bool
	}
	// Created: a response began; Tag is its ask, "" for voice detection.
	Created struct{ Response, Tag string }
	// Ended: a response is done. Status is one of the API's, or StatusEmpty. Output: the caller got some of it.
	Ended struct {
		Response, Tag, Status string
		Output                bool
	}
	// Refused: an ask was refused, as another response runs.
	Refused struct{ Ask string }
	// Rejected: an ask failed for any other reason.
	Rejected struct{ Ask string }
	// Withdrawn: the model did not take the utterance.
	Withdrawn struct{ ID string }
	// Missed: the model did not have the utterance when it was asked to tell it; it has it now.
	Missed struct{ ID string }
	// Taken: the utterance is in the conversation, for every response that begins from now on.
	Taken struct{ ID string }
	// Called: a response holds a request of ours.
	Called struct{ Response, Call string }
	// Mixed: a response that holds requests of ours, or was asked for with speech of ours, also calls other tools:
	// functions of the client (Calls are those without an output), or tools that the provider runs.
	Mixed struct {
		Response string
		Calls    []string
	}
	// Output: the client gave the output of a function call.
	Output struct{ Call string }
	// Wrote: the client put words of the caller into the conversation, and is expected to ask for a response to them.
	Wrote struct{}
	// Cancelled: the client cancels its asks.
	Cancelled struct{}
	// Spoke: a response gave the caller something to hear or read. Silence: the model chose to give nothing, and no
	// other response has to speak for it.
	Spoke struct {
		Response string
		Silence  bool
	}
	// Sounded: sound of a response is on its way to the caller.
	Sounded struct{ Response string }
	// Played: no more of a response's sound will be heard.
	Played struct {
		Response string
		Heard    Heard
	}
	// Speech: the caller began or stopped speaking.
	Speech struct{ On bool }
	// Hushed: the caller's input was cleared; no response follows.
	Hushed struct{}
	// Sounding: the caller began or stopped hearing the model's voice.
	Sounding struct{ On bool }
	// Listening: how the session detects turns.
	Listening struct{ Manual, Auto bool }
	// Opened: the client knows the session, and can set it up.
	Opened struct{}
	// Configured: the model has the client's settings.
	Configured struct{}
	// Away: the client is away (On), or back.
	Away struct{ On bool }
	// Lost: the model's session is gone, with its asks and what the caller was saying. The floor asks for nothing
	// until Renewed.
	Lost struct{}
	// Renewed: another session of the model has taken its place.
	Renewed struct{}
	// Elapsed: a timer ran out.
	Elapsed struct {
		Timer Timer
		Gen   int
	}
)

func (Uttered) floorEvent()     {}
func (ClientAsked) floorEvent() {}
func (Wrote) floorEvent()       {}
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

// EffectKind says what is to be done.
type EffectKind int

const (
	EffectAsk       EffectKind = iota // send our response.create, tagged with ask, for this speech
	EffectForward                     // send the client's response.create, tagged with ask; this speech rides along
	EffectGiven                       // the caller has heard or read this speech
	EffectSilent                      // this speech needs no response after all
	EffectLost                        // this speech is given up
	EffectTimer                       // start the timer; an older one of its kind no longer counts
	EffectCancel                      // cancel our response, and drop its sound
	EffectTakenBack                   // this waiting ask of the client was cancelled, and is not sent
	EffectQuiet                       // both sides became quiet (on), or no longer are
)

// An Effect is one thing to be done, in order.
type Effect struct {
	Kind       EffectKind
	Ask        string
	Utterances []string
	Response   string // the one that gave the utterances, or ""; or the one to cancel
	Cut        bool   // the caller got only a part
	Mute       bool   // EffectAsk: the response may call no tools
	Timer      Timer
	Gen        int
	On         bool
	Invited    bool // EffectQuiet: only the client may ask
}

// A Heard is how much of the sound of a response the caller heard.
type Heard int

const (
	HeardNothing Heard = iota // it was cut before the end of a word
	HeardPart                 // it was cut
	HeardWhole                // to its end
)

// effects are the effects of a step, and the generations of the timers. Owned by the floor.
type effects struct {
	armed [TimerKinds]int // generation of each timer
	out   []Effect
}

// arm starts a timer; an older one of its kind no longer counts.
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
