package realtime

import (
	"time"

	"switchboard/handoff"
)

// floorTimer names a timer that the floor needs.
type floorTimer int

const (
	timerVAD      floorTimer = iota // the response of voice detection is overdue
	timerSiblings                   // requests had their time to be answered together
	timerAsk                        // an ask got neither a response nor an error
	timerUnknown                    // a response we never saw still blocks
	timerEcho                       // a response without a tag ended and ours did not follow
	timerOpen                       // the client has not set its session up
	timerRest                       // after an ask failed
	timerLongRest                   // after it failed again
	timerSpeech                     // the caller speaks, but no sound comes from them
	timerRun                        // a response runs, but nothing comes of it
	timerKinds
)

// floorDelay holds how long each timer runs. Set once.
var floorDelay = [timerKinds]time.Duration{
	timerVAD: time.Second, timerSiblings: time.Second, timerAsk: 15 * time.Second, timerUnknown: 15 * time.Second,
	timerEcho: 3 * time.Second, timerOpen: time.Second, timerRest: time.Second, timerLongRest: 3 * time.Second,
	timerSpeech: 5 * time.Second, timerRun: time.Minute,
}

// A floorEvent is something the floor has to know.
type floorEvent interface{ floorEvent() }

type (
	// uttered: an utterance of ours went to the model. call is the request it answers, or "".
	uttered struct {
		id, call string
		need     handoff.Floor
	}
	// clientAsked: the client sent a response.create for the default conversation, which it may be apart from:
	// then the response reads nothing of it.
	clientAsked struct {
		ask   string
		apart bool
	}
	// created: a response began; tag is its ask, "" for voice detection.
	created struct{ response, tag string }
	// ended: a response is done. output tells whether the caller got any of it.
	ended struct {
		response, tag, status string
		output                bool
	}
	// refused: another response runs already.
	refused struct{ ask string }
	// rejected: an ask failed for any other reason.
	rejected struct{ ask string }
	// withdrawn: the model did not take the utterance.
	withdrawn struct{ id string }
	// missed: the model has the utterance only now, not yet when it was asked for it.
	missed struct{ id string }
	// called: a response holds a request of ours.
	called struct{ response, call string }
	// spoke: a response gave the caller something to hear or read.
	spoke struct{ response string }
	// sounded: sound of a response is on its way to the caller.
	sounded struct{ response string }
	// played: nothing more of its sound will be heard.
	played struct {
		response string
		fate     fate
	}
	// speech: the caller began or stopped speaking.
	speech struct{ on bool }
	// hushed: what the caller was saying was thrown away; no response follows.
	hushed struct{}
	// sounding: the model's voice began or ended for the caller.
	sounding struct{ on bool }
	// listening: how the session detects turns.
	listening struct{ manual, auto bool }
	// opened: the model's session exists.
	opened struct{}
	// configured: the model has the client's settings.
	configured struct{}
	// elapsed: a timer ran out.
	elapsed struct {
		timer floorTimer
		gen   int
	}
)

func (uttered) floorEvent()     {}
func (clientAsked) floorEvent() {}
func (created) floorEvent()     {}
func (ended) floorEvent()       {}
func (refused) floorEvent()     {}
func (rejected) floorEvent()    {}
func (withdrawn) floorEvent()   {}
func (missed) floorEvent()      {}
func (called) floorEvent()      {}
func (spoke) floorEvent()       {}
func (sounded) floorEvent()     {}
func (played) floorEvent()      {}
func (speech) floorEvent()      {}
func (hushed) floorEvent()      {}
func (sounding) floorEvent()    {}
func (listening) floorEvent()   {}
func (opened) floorEvent()      {}
func (configured) floorEvent()  {}
func (elapsed) floorEvent()     {}

// effectKind is what is to be done.
type effectKind int

const (
	effectAsk     effectKind = iota // send our response.create, tagged with ask, for these wants
	effectForward                   // send the client's response.create, tagged with ask; these wants ride along
	effectGiven                     // the caller got these wants
	effectSilent                    // these wants need no response after all
	effectLost                      // these wants are given up
	effectTimer                     // start the timer; an older one of its kind is void
	effectCancel                    // cancel our response, and let nothing of it be heard
	effectQuiet                     // both sides became quiet (on), or no longer are
)

// An effect is one thing to be done, in order.
type effect struct {
	kind     effectKind
	ask      string
	wants    []string
	response string // that gave them, or ""; or to be cancelled
	cut      bool   // the caller got only a part
	timer    floorTimer
	gen      int
	on       bool
	invited  bool // effectQuiet: only the client asks
}
