package handoff

import (
	"context"
	"iter"
	"time"
)

// A RunID names a run: the life of one request that goes to an agent. It is the id of its [Record].
type RunID string

// A Mode says how a request meets work of the same caller that runs where it goes.
type Mode int

// The modes of a request.
const (
	ModeNow   Mode = iota // its words go into that work, or else begin their own
	ModeNext              // after that work, never into it
	ModeAside             // beside it: without a named thread in a new one, which does not become sticky
)

// A Request is work that somebody asks for.
type Request struct {
	// Key is the asker's own name for the request: given again with the same words it is the same run, unless nothing
	// of that was ever sent to an agent and nobody stopped it: then the request begins anew. "": none.
	Key string
	// Again: it may have been asked for in a former life of the process. Starting it waits until it is known what that
	// left, for some seconds at most; then it gives [CodeStoreDown]. What that life finished and told is found too.
	Again bool
	// Target is named as the asker names it; Project "" and a Server "bigpc/api" are the same as both apart.
	Target  Target
	Input   []Part
	Context []Context
	Mode    Mode
	// After is the turn of the named thread that the words go on from. Where the thread has gone on since, or is in
	// use, they go on in a copy up to there, which does not become sticky. With [ModeAside] they always do, and
	// nothing is kept of that copy. "": the newest.
	After TurnID
	// From names a session elsewhere with which the words go on: the new session that they begin is told its newest
	// part. A Thread of "" is the one that the caller uses there. Only a new session of its own can have one, and where
	// it cannot be read nothing is begun. The zero Target: none.
	From Target
	// Unkept runs are forgotten once their outcome was heard, and are not looked for after a restart. The store keeps
	// nothing of them; with Again it keeps the key, the ids and the outcome, without words.
	Unkept bool
	// Within is how long the caller's promise may wait for a result; 0: the promise is given as soon as the thread of
	// the work is known.
	Within time.Duration
	// By is the listener that hears of the run first, if it attends for the caller. With nil every attending listener
	// hears of it, from the promise on.
	By Listener
	// Instead names a run that was not begun, of which this is the beginning; "": none. When it was begun before,
	// this request is that run.
	Instead RunID
	// Origin tells which program asks; the zero Origin is a person, in a call or on the page.
	Origin Origin
}

// An Origin is the program that asks for work, as it describes itself: it is shown, and proves nothing.
type Origin struct {
	Client string // its name; "": none
	// Thread is the thread in which the program's own model works, if it is an agent; "": none. Where work of the same
	// caller runs there, that work asked for this, and such a chain is bounded: [CodeTooDeep].
	Thread string
}

// Runs are what every front is given to have work done. Implementations are safe for concurrent use; errors are
// [*Error].
type Runs interface {
	// Start takes a request and never waits, unless for [Request.Again]: what becomes of it is published. From its
	// promise on it has exactly one outcome. The same key again gives the same run, or [CodeConflict] when something
	// else was asked under it.
	Start(ctx context.Context, g Grant, req Request) (RunID, error)
	// Follow yields the events of a run that come after a number, without gaps, and then those that happen; where the
	// log no longer reaches back that far, it begins with a [RunSnapshot]. It ends after [RunEnded] or [RunYielded], or
	// with an error. Leaving it never touches the run. Deltas are those that come while somebody follows, and a slow
	// follower misses the oldest.
	Follow(ctx context.Context, c Caller, id RunID, after uint64) iter.Seq2[RunEvent, error]
	// Heard notes that the caller was told the outcome. Until then it waits in the outbox. It returns at once: the
	// ledger has it a little later.
	Heard(ctx context.Context, c Caller, id RunID) error
}

// A Listener is somebody of a caller's who hears of runs while they happen, as a call does. Its methods return at
// once and never call back. False means that nobody listens here any more.
type Listener interface {
	// Hear takes an event of a run that the listener attends to.
	Hear(e RunEvent) bool
	// Outbox takes what ended while nobody listened. Who takes it tells it.
	Outbox(ended []Record) bool
}

// A RunEvent is something that happened to a run.
type RunEvent struct {
	Run    RunID
	Seq    uint64 // of the run, from 1, without gaps; a delta and a snapshot have that of the event before
	Record Record // as it stood then, without items
	Noted  bool   // the ledger has an entry: what is promised outlives the process
	Kind   RunKind
}

// A RunKind is what happened. It is one of the types below.
type RunKind interface{ runKind() }

type (
	// RunSnapshot: nothing happened; it is how the run stands. Items are what the agent has done or is doing, oldest
	// first, the newest 200.
	RunSnapshot struct {
		Items []RecordItem
		Usage Usage
	}
	// RunPlaced: it is known where it goes.
	RunPlaced struct{}
	// RunNoted: the ledger has an entry of it.
	RunNoted struct{}
	// RunPromised: whoever waits may be told that it will be done, now or after what it waits for.
	RunPromised struct{ Waits Wait }
	// RunWaiting: it was promised, and has to wait.
	RunWaiting struct{ Waits Wait }
	// RunJoined: its words went into a turn that somebody else began.
	RunJoined struct{}
	// RunDoing: the agent began an item.
	RunDoing struct {
		ID   string
		Item ItemKind
		Text string
	}
	// RunDelta is a piece of an item that the agent writes. It is advisory: [RunItem] has the whole. Listeners get
	// none.
	RunDelta struct {
		ItemID string
		Kind   DeltaKind
		At     int // how many bytes of the item came before, so that a gap shows; -1: nobody knows
		Text   string
	}
	// RunItem: the agent finished an item. Listeners get [RunRemark] instead.
	RunItem struct{ Item Item }
	// RunDropped withdraws an item that will not be finished, and its deltas. Listeners do not get it.
	RunDropped struct{ ItemID string }
	// RunUsage is what the turn has used so far. Listeners do not get it.
	RunUsage struct{ Usage Usage }
	// RunRemark: the agent said something on the way, in its own words.
	RunRemark struct{ Text string }
	// RunAsked: the agent waits for the caller.
	RunAsked struct{ Question OpenQuestion }
	// RunAnswered: a question was answered, or withdrawn.
	RunAnswered struct{ Question QuestionID }
	// RunGaveUp: nobody answered a question in time, so it was declined.
	RunGaveUp struct{ Question RecordQuestion }
	// RunSteered: its words were added to another run of the caller.
	RunSteered struct{ Into RunID }
	// RunSilent: it has reported nothing for long, and is watched on.
	RunSilent struct{}
	// RunLost: the agent was lost and is looked for.
	RunLost struct{}
	// RunTaken: whoever hears this attends to the run from here on; it is older than that. Questions are open.
	RunTaken struct{ Questions []OpenQuestion }
	// RunEnded: the record has its outcome.
	RunEnded struct{}
	// RunHeard: the caller was told the outcome, here or elsewhere. It is not in the log: only a listener that has
	// still to tell it gets it.
	RunHeard struct{}
	// RunByHand: the caller did something about it outside of calls: on the page, from a terminal or by the API. It is
	// not in the log; every listener that may hear of the run gets it.
	RunByHand struct {
		Deed Deed
		// Of a question that was answered.
		Question RecordQuestion
		Decision Decision
	}
	// RunYielded: another life of the process has the run, and tells what becomes of it.
	RunYielded struct{}
)

func (RunSnapshot) runKind() {}
func (RunPlaced) runKind()   {}
func (RunNoted) runKind()    {}
func (RunPromised) runKind() {}
func (RunWaiting) runKind()  {}
func (RunJoined) runKind()   {}
func (RunDoing) runKind()    {}
func (RunDelta) runKind()    {}
func (RunItem) runKind()     {}
func (RunDropped) runKind()  {}
func (RunUsage) runKind()    {}
func (RunRemark) runKind()   {}
func (RunAsked) runKind()    {}
func (RunAnswered) runKind() {}
func (RunGaveUp) runKind()   {}
func (RunSteered) runKind()  {}
func (RunSilent) runKind()   {}
func (RunLost) runKind()     {}
func (RunTaken) runKind()    {}
func (RunEnded) runKind()    {}
func (RunHeard) runKind()    {}
func (RunByHand) runKind()   {}
func (RunYielded) runKind()  {}

// A Deed is what somebody does about work.
type Deed string

// The deeds.
const (
	DeedAnswer   Deed = "answer"   // a question of it
	DeedContinue Deed = "continue" // it was paused, and is begun
	DeedDrop     Deed = "drop"     // it was paused, and is never begun
	DeedStop     Deed = "stop"
)

// Wait says what a run waits for before it begins.
type Wait int

// What there is to wait for.
const (
	WaitsNot    Wait = iota // nothing
	WaitsOurs               // earlier work from here
	WaitsTheirs             // work that somebody started elsewhere
	WaitsYes                // the caller's yes to a copy
)

// An OpenQuestion is a question that waits for the caller, with what is needed to judge an answer to it.
type OpenQuestion struct {
	Shown     RecordQuestion
	Question  Question
	Workspace string   // of the thread
	Level     string   // what may be approved by voice there: "none", "low" or "medium"
	Names     []string // by which a reply may mean the machine
	Project   string   // by which it may mean it too, or ""
}

// Decided is what somebody decided about a question, and how. In a call it is what the call judged a reply to be.
type Decided struct {
	Decision   Decision
	Words      string      // with [DecisionWords]
	By         string      // [ByVoice] and its like
	Transcript string      // of the reply; only a hash of it is kept
	Call       string      // names the call in which it was said or typed; "": none
	Said       time.Time   // when the reply began; zero: it does not age
	More       func() bool // reports whether the caller has said more since; nil: it does not matter
}

// Allows reports whether the agent may do something because of it: it is written down first, or not given.
func (d Decided) Allows() bool {
	return d.Decision == DecisionAccept || d.Decision == DecisionAcceptForSession || d.Decision == DecisionWords
}
