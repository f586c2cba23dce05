package handoff

import "time"

// Voice is one call, as package call sees it. Events is closed after [CallEnded] was delivered. Say only enqueues and
// never blocks; it may be called from any goroutine, and does nothing after the call has ended. [Said] confirms what
// was said.
type Voice interface {
	Events() <-chan VoiceEvent
	Say(Utterance)
}

// A VoiceEvent is something that happened in a call: [Hint], [FunctionCall], [Spoke], [Heard], [Quiet], [Said],
// [Voiced] or [CallEnded].
type VoiceEvent interface{ voiceEvent() }

// Hint is a function call of ours that is still being written. It may never become a [FunctionCall]: nothing
// may be run because of it. Hints are dropped first when events queue up.
type Hint struct {
	CallID  string
	Tool    string
	Partial string // the arguments so far, the beginning of a JSON object
}

// Spoke says that the caller began to speak. What they said follows as [Heard], or never does.
type Spoke struct{ At time.Time }

// Heard is a finished utterance of the caller: typed text, or a transcript, which is "" if there was no word of theirs
// in the speech or the voice model could not transcribe it.
type Heard struct {
	Text  string
	Lost  bool // there will be no transcript: the words may have been anything, also a "don't" or a "stop"
	Typed bool
	Into  bool      // with Typed: the voice was speaking, or had just stopped
	Shown bool      // with Typed: a page shows the caller the open questions
	Loose bool      // with Typed: another program of the call may have written it, so it allows nothing
	Began time.Time // when they began to speak, zero if not known; for typed text, when it came
}

// Quiet says whether both sides are quiet: the caller does not speak, and the voice model neither speaks nor is about
// to. It comes at each change.
type Quiet struct {
	On      bool
	Invited bool // turns are not detected, so the client asks for each response, and ours must wait for the next one
}

// Said confirms that the response with an utterance was heard by the caller, to its end or until they interrupted it;
// or, for a silent utterance, that the voice model has it.
type Said struct {
	ID   string
	At   time.Time // when the sound was heard to the end, or to the cut; zero: perhaps none was heard
	Cut  bool      // the caller or the client interrupted it
	Text string    // the transcript of the response; "": the voice model gave none

	Share float64 // with Cut: the share of the sound that was heard, 0 to 1; 0: not known
	Made  bool    // with Cut: the voice model had finished the response

	Unsaid bool // the voice model has it, and chose to say nothing; At is zero then
}

// Voiced tells what the voice model said in a response of the conversation, whatever had it speak. It comes once the
// model has made the words; they may be heard later, or never.
type Voiced struct {
	Text string
	From time.Time // when the sound began; if it has not, when the words were made
}

// CallEnded is the last event of a call. Cause is nil when somebody hung up.
type CallEnded struct{ Cause error }

func (Hint) voiceEvent()         {}
func (Spoke) voiceEvent()        {}
func (Quiet) voiceEvent()        {}
func (FunctionCall) voiceEvent() {}
func (Heard) voiceEvent()        {}
func (Said) voiceEvent()         {}
func (Voiced) voiceEvent()       {}
func (CallEnded) voiceEvent()    {}

// Floor says how much an utterance wants the voice model to speak.
type Floor int

const (
	// FloorNone adds the utterance to the context and asks for nothing.
	FloorNone Floor = iota
	// FloorUnlessSpoke asks for a response only if the response with the function call said nothing to the caller. It
	// is for early answers: the model may already have said "one moment".
	FloorUnlessSpoke
	// FloorAsk asks for a response as soon as nobody speaks.
	FloorAsk
)

// An Utterance is something that the voice model is given: the one answer to a function call, or a message.
type Utterance struct {
	// ID is ours, [a-z0-9-], at most 24 bytes. An utterance with the same ID is delivered once. An utterance that has
	// only an ID takes back the one with that ID, unless it is being said.
	ID     string
	CallID string // of the function call that it answers; "": it is a message
	Text   string // the output of the function call, as JSON, or the message
	Floor  Floor
	Tells  []string // ids of the handoffs whose outcome it tells; for tests and logs of what is said
	// Plain says that no words of agents are in it, beyond names and titles: a response to it may go on with what the
	// caller asked for. After any other utterance, only new words of the caller ask for anything.
	Plain bool
}

// A BrokenCall is a call that ended although the caller did not hang up. Their next call is told of it.
type BrokenCall struct {
	Began time.Time
	Ended time.Time  // zero: not known, since Switchboard ended with it
	Lines []SaidLine // the last lines, oldest first, as many as the call kept; nil: not known any more
}

// A SaidLine is what the caller or the voice said.
type SaidLine struct {
	Caller bool
	Text   string
}

// CallInfo is a live call in a list.
type CallInfo struct {
	ID    string    `json:"id"`
	Began time.Time `json:"began"`
	Held  bool      `json:"held,omitempty"` // its client has vanished, and may rejoin for a while
}
