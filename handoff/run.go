package handoff

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"time"
)

// A RunID names a run: the life of one request that goes to an agent. It is the id of its [Record].
type RunID string

// A Mode says what happens if other work of the caller runs in the thread to which a request goes.
type Mode int

// The modes of a request.
const (
	ModeNow   Mode = iota // the words go into the running turn; without one, they begin their own
	ModeNext              // the words wait until that work has ended
	ModeAside             // a side question: if no thread is named, in a new one, which does not become sticky
)

// A Request asks for work.
type Request struct {
	// Key is the idempotency key of the request: the same key with the same words is the same run. But if nothing of
	// that run was ever sent to an agent and nobody stopped it, the request begins anew. "": none.
	Key string
	// Again means that an earlier life of the process may have had the request. Start then waits until the work of that
	// life is taken up, for some seconds at most, or returns [CodeStoreDown]. Finished work is found, too.
	Again bool
	// Print identifies a request that has no key of its own, by the front, the tool and all arguments; see [PrintOf]. A
	// request with the print of the caller's work is that work for 24 hours, until who asked has the answer. But work
	// that was not begun begins with it. "": every request is new work.
	Print string
	// Target has the names as they were asked for. A Server "bigpc/api" is the same as Server "bigpc" and Project
	// "api".
	Target  Target
	Input   []Part
	Context []Context
	Mode    Mode
	// After is the turn of the named thread after which the words go on; "": the newest. If the thread has a newer
	// turn, or is in use, the words go into a copy of it up to After, which does not become sticky. With [ModeAside]
	// they always go into such a copy, of which nothing is kept.
	After TurnID
	// From names a session with which the words go on in a new session elsewhere: the new one is told the newest part
	// of From. A Thread of "" is the sticky one. From needs a new session as Target; if it cannot be read, nothing is
	// begun. The zero Target: none.
	From Target
	// Unkept runs are forgotten once their outcome was heard, and are not looked for after a restart. The store keeps
	// nothing of them; with Again it keeps the key, the ids and the outcome, without words.
	Unkept bool
	// Within is how long the promise to the caller may wait for a result instead; 0: the promise is given as soon as
	// the thread of the work is known.
	Within time.Duration
	// By is the listener that gets the run's events first, if it attends for the caller. Otherwise the run goes to a
	// listener of the caller once it is promised.
	By Listener
	// Instead names a run that was not begun, which this request begins; "": none. If another request has begun it,
	// Start returns the id of that run with [CodeJoined], or [CodeWorkEnded] if that run is over.
	Instead RunID
	// Origin is the program that asks; the zero Origin is a person, in a call or on the page.
	Origin Origin
}

// PrintOf returns the [Request].Print of a request with these parts: the SHA-256 of their JSON.
func PrintOf(parts ...any) string {
	sum := sha256.Sum256([]byte(Encode(parts)))
	return hex.EncodeToString(sum[:])
}

// An Origin is the program that asks for work, as it describes itself: it is shown, and proves nothing.
type Origin struct {
	Client string // its name; "": none
	// Thread is the thread in which the program's own model works, if it is an agent; "": none. If work of the same
	// caller runs there, that work is the parent of this. Such chains are bounded: [CodeTooDeep].
	Thread string
}

// Runs starts and follows work; each front has one. Implementations are safe for concurrent use; errors are [*Error].
type Runs interface {
	// Start takes a request. It does not wait, except for [Request.Again]; what becomes of the run is published. Once
	// promised, the run has exactly one outcome. The same key again returns the same run, or [CodeConflict] if the
	// request is another one.
	Start(ctx context.Context, g Grant, req Request) (RunID, error)
	// Follow yields the events of a run after the one with number after, without gaps, and then new ones as they
	// happen. If the log no longer reaches back that far, it begins with a [RunSnapshot]. It ends after [RunEnded] or
	// [RunYielded], or with an error. Leaving the loop never touches the run. Only deltas that come while somebody
	// follows are yielded, and a slow follower misses the oldest of them.
	Follow(ctx context.Context, g Grant, id RunID, after uint64) iter.Seq2[RunEvent, error]
	// Heard notes that the caller was told the outcome. Until then the outcome waits in the outbox. Heard returns at
	// once: the ledger has it a little later.
	Heard(ctx context.Context, g Grant, id RunID) error
}

// A Listener gets events of a caller's runs while they happen, as a call does. Its methods return at once, and never
// call back. They return false if the listener has left.
type Listener interface {
	// Hear takes an event of a run that was given to the listener.
	Hear(e RunEvent) bool
	// Outbox takes records that ended while nobody listened. If it returns true, the listener tells them.
	Outbox(ended []Record) bool
}

// A RunEvent is something that happened to a run.
type RunEvent struct {
	Run    RunID
	Seq    uint64 // of the run, from 1, without gaps; a delta and a snapshot have that of the event before
	Record Record // at that time, without items
	Noted  bool   // the ledger has an entry: a promise outlives the process
	Kind   RunKind
}

// A RunKind is what happened. It is one of the types below.
type RunKind interface{ runKind() }

type (
	// RunSnapshot: the present state of the run; nothing happened. Items are what the agent has done or is doing,
	// oldest first, the newest 200.
	RunSnapshot struct {
		Items []RecordItem
		Usage Usage
	}
	// RunPlaced: the target is resolved.
	RunPlaced struct{}
	// RunNoted: the ledger has an entry of the run.
	RunNoted struct{}
	// RunPromised: the caller may be told that the work will be done, now or after what it waits for.
	RunPromised struct{ Waits Wait }
	// RunWaiting: the run was promised, and has to wait.
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
		At     int // number of bytes of the item before this piece, so that a gap shows; -1: not known
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
	// RunSilent: the turn has reported nothing for long. It is still followed.
	RunSilent struct{}
	// RunLost: the agent was lost, and the router tries to reconnect.
	RunLost struct{}
	// RunTaken: the listener that gets this event has the run from here on. Questions are its open ones.
	RunTaken struct{ Questions []OpenQuestion }
	// RunEnded: the record has its outcome.
	RunEnded struct{}
	// RunHeard: the caller was told the outcome, here or elsewhere. The event is not in the log: it goes only to the
	// listener that was given the outcome.
	RunHeard struct{}
	// RunByHand: the caller did something with the run outside of calls: on the page, from a terminal or by the API.
	// The event is not in the log; it goes to every listener that may hear of the run.
	RunByHand struct {
		Deed Deed
		// With [DeedAnswer]: the question, and its answer.
		Question RecordQuestion
		Decision Decision
	}
	// RunYielded: another home or life of the process has the run, and publishes the rest.
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

// A Deed is what the caller did with work outside of calls.
type Deed string

// The deeds.
const (
	DeedAnswer   Deed = "answer"   // they answered a question of its agent
	DeedContinue Deed = "continue" // they began paused work
	DeedDrop     Deed = "drop"     // they dropped paused work
	DeedStop     Deed = "stop"
)

// Wait says what a run waits for before it begins.
type Wait int

// The things to wait for.
const (
	WaitsNot    Wait = iota // nothing
	WaitsOurs               // earlier work from here
	WaitsTheirs             // work that somebody started elsewhere
	WaitsYes                // the caller's yes to a copy
)

// An OpenQuestion is a question that waits for the caller, with what is needed to judge an answer.
type OpenQuestion struct {
	Shown     RecordQuestion
	Question  Question
	Workspace string   // of the thread
	Level     string   // highest risk that may be approved by voice there: "none", "low" or "medium"
	Names     []string // names of the machine in a reply
	Others    []string // names of the other machines
	Project   string   // another such name; ""
}

// Decided is the decision of a question, and how it came about.
type Decided struct {
	Decision   Decision
	Words      string      // with [DecisionWords]
	By         string      // [ByVoice] and its like
	Transcript string      // of the reply; only its hash is kept
	Call       string      // id of the call in which it was said or typed; "": none
	Said       time.Time   // when the reply began; zero: it does not expire
	Asked      string      // what the voice had asked; only its hash is kept; "": it was read, not heard
	Heard      time.Time   // when that had been heard to its end
	More       func() bool // reports whether the caller has said more since; nil: that does not matter
}

// Allows reports whether the decision allows the agent something. Such a decision must be in the audit before it is
// given.
func (d Decided) Allows() bool {
	return d.Decision == DecisionAccept || d.Decision == DecisionAcceptForSession || d.Decision == DecisionWords
}
