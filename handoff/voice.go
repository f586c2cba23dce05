package handoff

import "time"

// Voice is the router's view of one call. Events is closed after [CallEnded] was delivered. Say only
// enqueues and never blocks; it may be used from any goroutine, also after the call has ended (then it
// does nothing). What was said is confirmed by [Said].
type Voice interface {
	Events() <-chan Event
	Say(Utterance)
}

// An Event is something that happened in a call: [Hint], [FunctionCall], [Spoke], [Heard], [Quiet], [Said] or
// [CallEnded].
type Event interface{ voiceEvent() }

// Hint is a function call of ours that is still being written. It may never become a [FunctionCall]: nothing
// may be run because of it. Hints are dropped first when events queue up.
type Hint struct {
	CallID  string
	Tool    string
	Partial string // the arguments so far, the beginning of a JSON object
}

// Spoke says that the caller began to speak. What they said follows as [Heard], or never does.
type Spoke struct{ At time.Time }

// Heard is a finalized utterance of the caller: a transcript, "" where there was no word in it or the voice model could
// not write it down, or text they typed.
type Heard struct {
	Text  string
	Lost  bool // nobody will know the words: it may have been anything, also a "don't" or a "stop"
	Typed bool
	Into  bool      // with Typed: the voice was heard then, or until a moment before
	Shown bool      // with Typed: a page shows the caller what is open
	Loose bool      // with Typed: another program of the call may have written it, so it allows nothing
	Began time.Time // when they began to speak, zero where that is not known; for typed text when it came
}

// Quiet says whether both sides are quiet: neither does the caller speak nor is the model's voice heard
// or about to be. It comes at each change.
type Quiet struct {
	On      bool
	Invited bool // no turns are detected, so the client asks for each response: what we say rides on the next one
}

// Said confirms that the response which carried the utterance was given to the caller, fully or until
// they interrupted it, or for a silent one that the voice model has it.
type Said struct {
	ID   string
	At   time.Time // when its sound had been heard to the end (or to the cut); zero: it may be that nothing was
	Cut  bool      // the caller or the client interrupted it
	Text string    // what that response said, as the voice model tells; "" where it does not

	Share float64 // with Cut: how much of the sound that there was had been heard, 0 to 1; 0 where nobody can tell
	Made  bool    // with Cut: the voice model had made the response to its end

	Unsaid bool // the voice model has it and chose to say nothing; At is zero then
}

// CallEnded is the last event of a call. Cause is nil when somebody hung up.
type CallEnded struct{ Cause error }

func (Hint) voiceEvent()         {}
func (Spoke) voiceEvent()        {}
func (Quiet) voiceEvent()        {}
func (FunctionCall) voiceEvent() {}
func (Heard) voiceEvent()        {}
func (Said) voiceEvent()         {}
func (CallEnded) voiceEvent()    {}

// Floor says how much an utterance wants the voice model to speak.
type Floor int

const (
	// FloorNone adds the utterance to the context and asks for nothing.
	FloorNone Floor = iota
	// FloorUnlessSpoke asks for a response only if the response that carried the request said nothing
	// to the caller. It is for early answers: the model may already have said "one moment".
	FloorUnlessSpoke
	// FloorAsk asks for a response as soon as nobody speaks.
	FloorAsk
)

// An Utterance is something the router gives to the voice model: the one answer to a request (CallID is
// set) or a message that comes later.
type Utterance struct {
	// ID is ours, [a-z0-9-], at most 24 bytes. Repeated, it is delivered once; repeated with nothing else, it is taken
	// back unless it is being said.
	ID     string
	CallID string // the request this answers, or "" for a message
	Text   string // an answer's output (JSON text), or the message for the model
	Floor  Floor
	Tells  []string // the work whose outcome it tells; for who watches what is said, not for who says it
}

// A BrokenCall is a call that ended without its caller's will, as their next call is told of it.
type BrokenCall struct {
	Began time.Time
	Ended time.Time  // zero: not known, Switchboard ended with it
	Lines []SaidLine // what was said last, oldest first, bounded by who gives them; nil: not known any more
}

// A SaidLine is what the caller or the voice said.
type SaidLine struct {
	Caller bool
	Text   string
}

// CallInfo is a live call as lists give it.
type CallInfo struct {
	ID    string    `json:"id"`
	Began time.Time `json:"began"`          // when it was taken
	Held  bool      `json:"held,omitempty"` // its client vanished, and may rejoin it for a while
}
