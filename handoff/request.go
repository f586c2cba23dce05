package handoff

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"time"
)

// An ID names a handoff: the life of one request that goes to an agent. It is the id of its [Record].
type ID string

// A Mode says what happens if other work of the caller runs in the thread to which a request goes.
type Mode int

// The modes of a request.
const (
	ModeNow   Mode = iota // the words go into the running turn; without one, they begin their own
	ModeNext              // the words wait until that work has ended
	ModeAside             // a side question: if no thread is named, in a new one, which does not become sticky
	// ModeWatch gives no words. The turn that somebody else began in the named thread is followed as if it were the
	// caller's: its questions are asked here, and its outcome is told. Words that are given later go into it. When it
	// has ended, the next one is followed, as another handoff, until the caller stops watching or half a day is over.
	// If none runs, the next one is waited for. On a server where those of others do not show, the request then fails
	// with [CodeIdle].
	ModeWatch
)

// A StopOf says what a stop does to a turn that the caller watches.
type StopOf int

// Stops of watched work.
const (
	StopOurs     StopOf = iota // nothing, with [CodeNoConsent]: somebody else began it
	StopTheirs                 // it is stopped, since the caller is sure
	StopWatching               // it goes on, and the caller hears no more of it and of the next ones; not for other work
)

// A Request asks for work.
type Request struct {
	// Key is the idempotency key of the request: the same key with the same words is the same handoff. But if nothing
	// of that handoff was ever sent to an agent and nobody stopped it, the request begins anew. "": none.
	Key string
	// Again means that an earlier life of the process may have had the request. Start then waits until the work of that
	// life is taken up, for some seconds at most, or returns [CodeStoreDown]. Finished work is found, too. With a
	// Print it says that the request certainly repeats an equal one, which is then found even if its asker still seems
	// to wait, or was answered a short time ago.
	Again bool
	// Args is what a repetition under Key must have, too; "": the words and the target are compared.
	Args string
	// Print identifies a request that has no key of its own, by the front, the tool and all arguments; see [PrintOf]. A
	// request with the print of the caller's work is that work for 24 hours, until who asked has the answer. But work
	// that was not begun begins with it. "": every request is new work.
	Print string
	// First: the request repeats none by its Print. Waits: whoever asks waits for an answer until the context of Start
	// ends; until then an equal request is other work.
	First, Waits bool
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
	// Worktree asks for a new session in a worktree of its own; see [Planter]. It needs a new session as Target.
	Worktree bool
	// Goal makes the words also the goal of the session, for which the agent goes on by itself until it is reached; see
	// [Pursuer]. They are never added to running work. Without such a goal nothing is begun: [CodeNoGoal].
	Goal bool
	// Unkept handoffs are forgotten once their outcome was heard, and are not looked for after a restart. The store
	// keeps nothing of them; with a Key or a Print it keeps that, the ids and the outcome, without words.
	Unkept bool
	// Within is how long the promise to the caller may wait for a result instead; 0: the promise is given as soon as
	// the thread of the work is known.
	Within time.Duration
	// By is the listener that gets the handoff's events first, if it attends for the caller. Otherwise the handoff goes
	// to a listener of the caller once it is promised.
	By Listener
	// Instead names a handoff that was not begun, which this request begins; "": none. If another request has begun it,
	// Start returns the id of that handoff with [CodeJoined], or [CodeWorkEnded] if that handoff is over.
	Instead ID
	// Origin is the program that asks; the zero Origin is a person, in a call or on the page.
	Origin Origin
}

// WatchesAll is the Client of watches that nobody asked for but the settings of their machine. The session of such a
// watch does not become the current one.
const WatchesAll = "watch: all"

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

// Handoffs starts and follows work; each front has one. Implementations are safe for concurrent use; errors are
// [*Error].
type Handoffs interface {
	// Start takes a request. It does not wait, except for [Request.Again]; what becomes of the handoff is published.
	// Once promised, the handoff has exactly one outcome. The same key again returns the same handoff, or
	// [CodeConflict] if the request is another one.
	Start(ctx context.Context, g Grant, req Request) (ID, error)
	// Follow yields the events of a handoff after the one with number after, without gaps, and then new ones as they
	// happen. If the log no longer reaches back that far, it begins with a [EventSnapshot]. It ends after [EventEnded]
	// or [EventYielded], or with an error. Leaving the loop never touches the handoff. Only deltas that come while
	// somebody follows are yielded, and a slow follower misses the oldest of them.
	Follow(ctx context.Context, g Grant, id ID, after uint64) iter.Seq2[Event, error]
	// Heard notes that the caller was told the outcome. Until then the outcome waits in the outbox. Heard returns at
	// once: the ledger has it a little later.
	Heard(ctx context.Context, g Grant, id ID) error
}

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
	Reply      Reply       // with [DecisionWords]
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
