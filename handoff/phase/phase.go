package phase

import "switchboard/handoff"

// A Phase is how far a handoff has come.
type Phase int

// The phases of a handoff.
const (
	Resolving    Phase = iota // names become a target
	Joining                   // other work of ours uses the thread: it is joined or waited for
	Attaching                 // the thread is resumed, copied or made
	Offering                  // the thread is held elsewhere: the caller is asked whether to copy it
	Waiting                   // somebody else's turn runs on the thread; ours comes after it
	Starting                  // the turn is on its way; it may or may not run
	Steering                  // the words are on their way into a running turn of ours
	Reconciling               // finding out whether a start whose fate is not known ran
	Running                   // the turn is acknowledged
	Reconnecting              // the agent was lost while the turn ran; finding it again
	Writing                   // the outcome is known and on its way into the ledger; then it is told
	Ended                     // the outcome is given to be told, or somebody else tells it
)

var names = [...]string{
	"resolving", "joining", "attaching", "offering", "waiting", "starting", "steering", "reconciling", "running",
	"reconnecting", "writing", "ended",
}

// String returns the phase as logs name it.
func (p Phase) String() string { return names[p] }

// A Fact is something that happened to a handoff; [State.Step] decides what follows.
type Fact int

// The facts.
const (
	FactNothing         Fact = iota // nothing changed
	FactResolvedThread              // a thread the caller named
	FactResolvedSticky              // the thread the caller last used there
	FactResolvedNew                 // no thread yet, or a fresh one was asked for
	FactResolvedCopy                // a copy of a thread was asked for
	FactResolvedTaken               // other work of ours uses that thread
	FactBranches                    // the words go on from an older turn of the thread, or it is in use: a copy is due
	FactUnresolved                  // the names lead nowhere
	FactOursRuns                    // that work runs a turn which can take the words
	FactSteered                     // it took them
	FactSteerRefused                // it did not: it had ended, or takes none
	FactSteerUnknown                // the connection was lost with the words on their way
	FactQueued                      // the words have to wait for work of ours
	FactThreadFree                  // nobody of ours uses the thread any more
	FactAttached                    // the thread is ready and idle
	FactAttachedBusy                // the thread runs a turn that is not ours
	FactThreadGone                  // the thread does not exist any more
	FactAttachHeld                  // another program on its machine has it, and it can be copied
	FactAttachAway                  // its machine does not answer, and may be back
	FactAttachFailed                // it cannot be attached for another reason
	FactCopyAllowed                 // the caller wants the copy
	FactCopyDeclined                // they do not
	FactTurnOver                    // the turn that was waited for ended, or cannot be watched
	FactStarted                     // the agent acknowledged the turn
	FactMerged                      // the agent put the words into a turn that is not ours
	FactStartBusy                   // nothing was started: a turn of somebody else runs
	FactStartRefused                // certainly nothing runs
	FactStartUnsent                 // the same, because the connection was lost before
	FactStartUnknown                // the connection was lost with the start on its way
	FactAdopted                     // the turn that may have started was found
	FactNeverRan                    // it was not: it never started and never will
	FactNotReconciled               // it cannot be found out
	FactSeen                        // the turn reported something
	FactUnseen                      // the acknowledged turn did not show itself in time
	FactTurnCompleted               // the turn ended with an answer
	FactTurnFailed                  // the turn ended with an error
	FactTurnInterrupted             // somebody stopped the turn
	FactAgentGone                   // the connection was lost while the turn ran
	FactTurnGone                    // the thread is there, and does not hold the turn
	FactReconnected                 // the thread is attached again
	FactReconnectFailed             // it could not be, and patience ended
	FactSilent                      // the turn reported nothing for long
	FactWritten                     // the outcome is in the ledger, or there is nothing to wait for
	FactUnwritten                   // the ledger did not take it in time; it is written later
	FactTakenOver                   // the work has another owner, who tells what becomes of it
	FactNoted                       // an entry of the work is in the ledger
	FactUnnoted                     // the ledger did not take one
	FactDue                         // whoever waits can do without a promise no longer
	FactPaused                      // the caller stopped the work that these words wait for
	FactStop                        // the caller asked to stop the work
	FactShutdown                    // the process ends
	FactMoved                       // the caller gets another home, which goes on with what the ledger has
	factCount
)

var factNames = [factCount]string{
	"nothing", "resolved thread", "resolved sticky", "resolved new", "resolved copy", "resolved taken", "branches",
	"unresolved", "ours runs",
	"steered", "steer refused", "steer unknown", "queued", "thread free", "attached", "attached busy",
	"thread gone", "attach held", "attach away", "attach failed", "copy allowed", "copy declined", "turn over",
	"started", "merged", "start busy", "start refused", "start unsent", "start unknown", "adopted", "never ran",
	"not reconciled", "seen",
	"unseen", "turn completed", "turn failed", "turn interrupted", "agent gone", "turn gone", "reconnected",
	"reconnect failed", "silent",
	"written", "unwritten", "taken over", "noted", "unnoted", "due", "paused", "stop", "shutdown",
	"moved",
}

// String returns the fact as tests and logs name it.
func (f Fact) String() string { return factNames[f] }

// An Action is what the owner of a handoff has to do next.
type Action int

// The actions. Those down to [ActWriteOutcome] take time, and one of them at a time is done: the next takes the place
// of the one before. The others take none, or are done beside it.
const (
	ActNothing        Action = iota // until a fact comes
	ActResolve                      // find the target, also again
	ActJoin                         // wait until the work that uses the thread runs or ends
	ActSteer                        // give the words to its running turn, one try
	ActAttach                       // resume the resolved thread
	ActCreate                       // make a fresh thread
	ActOffer                        // ask the caller whether to make a copy of the resolved thread
	ActCopy                         // make it
	ActAwait                        // watch the turn of somebody else until it ends
	ActStart                        // give the thread the turn, one try
	ActReconcile                    // find out what became of the start
	ActFollow                       // watch the turn
	ActReconnect                    // attach again until it succeeds or patience ends
	ActWriteOutcome                 // put the outcome into the ledger
	ActRemember                     // make the thread sticky
	ActForget                       // the sticky thread is gone
	ActInterrupt                    // stop the turn
	ActNote                         // put into the ledger that the words were taken, unless they are there
	ActPromise                      // publish that the work is noted: whoever waits may be told that it will be done
	ActPublishWait                  // publish what the words wait for: they are promised already
	ActPublishJoined                // publish that the words are in a turn of somebody else
	ActPublishSilence               // publish that the work is silent and still watched
	ActPublishOutcome               // publish the outcome
	ActYield                        // publish that somebody else has the work, and its outcome
	actionCount
)

var actionNames = [actionCount]string{
	"nothing", "resolve", "join", "steer", "attach", "create", "offer", "copy", "await", "start", "reconcile", "follow",
	"reconnect",
	"write outcome", "remember", "forget", "interrupt", "note", "promise", "publish wait", "publish joined",
	"publish silence",
	"publish outcome", "yield",
}

// TakesTime reports whether the action is done for as long as it takes, in the place of the one before.
func (a Action) TakesTime() bool { return a <= ActWriteOutcome }

// String returns the action as tests and logs name it.
func (a Action) String() string { return actionNames[a] }

// First is what a handoff begins with that begins in this state.
func (s State) First() Action {
	switch s.Phase {
	case Reconciling:
		return ActReconcile
	case Reconnecting:
		return ActReconnect
	case Writing: // there is nothing to look for
		return ActWriteOutcome
	}
	return ActResolve
}

// Gated reports whether nobody else may start a turn in the thread: from when it is attached until the turn has shown
// itself. While the turn of somebody else is waited for, others may.
func (s State) Gated() bool {
	switch s.Phase {
	case Attaching, Waiting, Starting, Reconciling:
		return true
	}
	return s.Phase == Running && !s.Seen
}

// State is where a handoff stands. The zero value is a fresh request.
type State struct {
	Phase    Phase
	Sticky   bool // the thread attached is the caller's sticky one
	Replaced bool // a sticky thread was gone; this is its successor
	// Fresh: the thread attached was made for this, like a successor. Until it runs, no other connection finds it.
	Fresh     bool
	Noted     bool            // an entry of the work is in the ledger; before that nothing is promised
	Due       bool            // whoever waits needs a promise: it is published, or follows the entry
	Stopping  bool            // a stop came before the turn was acknowledged
	Seen      bool            // the turn was seen running
	Again     bool            // the start proved never to have run, or to have left, and was sent once more
	Inherited bool            // a former life of the process dispatched it: never started by this one
	Silent    bool            // its silence was told, which happens once
	Merged    bool            // somebody else began the turn: it is watched for the caller and never stopped
	Outcome   handoff.Outcome // set once, when the work is over
}
