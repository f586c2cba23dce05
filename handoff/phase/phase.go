package phase

import "switchboard/handoff"

// A Phase is a phase of a handoff.
type Phase int

// The phases, in order.
const (
	Resolving    Phase = iota // names become a target
	Joining                   // other work of ours uses the thread: the handoff joins it or waits
	Attaching                 // the thread is resumed, copied or made
	Offering                  // another program has the thread open: the caller is asked whether to copy it
	Waiting                   // somebody else's turn runs in the thread, and ours comes after it
	Starting                  // the start is on its way; the turn may or may not run
	Steering                  // the words are on their way into a running turn of ours
	Reconciling               // it is being found out whether a lost start ran
	Running                   // the turn is acknowledged
	Reconnecting              // the agent was lost while the turn ran, and is being reconnected
	Writing                   // the outcome is known, and is being written to the ledger
	Ended                     // the outcome is published, or somebody else publishes it
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
	FactResolvedThread              // the target is a thread that the caller named
	FactResolvedSticky              // the target is the caller's sticky thread
	FactResolvedNew                 // there is no sticky thread, or a new one was asked for
	FactResolvedCopy                // a copy of a thread was asked for
	FactResolvedTaken               // other work of ours uses that thread
	FactBranches                    // the words follow an older turn of the thread, or it is in use: a copy is needed
	FactUnresolved                  // there is no such target
	FactOursRuns                    // the work that uses the thread runs a turn that can take the words
	FactSteered                     // that turn took the words
	FactSteerRefused                // that turn did not take them: it has ended, or takes none
	FactSteerUnknown                // the connection was lost with the words on their way
	FactQueued                      // the words have to wait for work of ours
	FactThreadFree                  // no other work of ours uses the thread any more
	FactAttached                    // the thread is ready and idle
	FactAttachedBusy                // a turn that is not ours runs in the thread
	FactThreadGone                  // the thread does not exist any more
	FactAttachHeld                  // another program on its machine has the thread open, and it can be copied
	FactAttachAway                  // its machine does not answer, and may come back
	FactAttachFailed                // the thread cannot be attached for another reason
	FactCopyAllowed                 // the caller wants the copy
	FactCopyDeclined                // the caller does not want the copy
	FactTurnOver                    // somebody else's turn has ended, or cannot be watched
	FactStarted                     // the agent acknowledged the turn
	FactMerged                      // the agent put the words into a turn that is not ours
	FactStartBusy                   // nothing was started: a turn of somebody else runs
	FactStartRefused                // the start was refused: certainly nothing runs
	FactStartUnsent                 // the connection was lost, or a stop came, before the words were sent: nothing runs
	FactStartUnknown                // the connection was lost with the start on its way
	FactAdopted                     // the turn of a lost start was found
	FactNeverRan                    // the lost start made no turn, and never will
	FactNotReconciled               // it cannot be found out whether the lost start made a turn
	FactSeen                        // the turn reported something
	FactUnseen                      // the acknowledged turn reported nothing in time
	FactTurnCompleted               // the turn ended with an answer
	FactTurnFailed                  // the turn ended with an error
	FactTurnInterrupted             // somebody stopped the turn
	FactAgentGone                   // the connection was lost while the turn ran
	FactTurnGone                    // the thread is there, without the turn
	FactReconnected                 // the thread is attached again
	FactReconnectFailed             // the thread could not be attached again in time
	FactSilent                      // the turn reported nothing for long
	FactWritten                     // the outcome is in the ledger, or need not be waited for
	FactUnwritten                   // the ledger did not take the outcome in time; it is written later
	FactTakenOver                   // the work has another owner, who publishes its outcome
	FactNoted                       // an entry of the work is in the ledger
	FactUnnoted                     // the ledger did not take the entry
	FactDue                         // the caller needs a promise now
	FactPaused                      // the caller stopped the work that these words wait for
	FactStop                        // the caller asked to stop the work
	FactShutdown                    // the process ends
	FactMoved                       // the caller gets another home, which goes on from the ledger
	FactLeft                        // the caller watches somebody else's turns no longer
	factCount
)

var factNames = [factCount]string{
	"nothing", "resolved thread", "resolved sticky", "resolved new", "resolved copy", "resolved taken", "branches",
	"unresolved", "ours runs", "steered", "steer refused", "steer unknown", "queued", "thread free", "attached",
	"attached busy", "thread gone", "attach held", "attach away", "attach failed", "copy allowed", "copy declined",
	"turn over", "started", "merged", "start busy", "start refused", "start unsent", "start unknown", "adopted",
	"never ran", "not reconciled", "seen", "unseen", "turn completed", "turn failed", "turn interrupted", "agent gone",
	"turn gone", "reconnected", "reconnect failed", "silent", "written", "unwritten", "taken over", "noted", "unnoted",
	"due", "paused", "stop", "shutdown", "moved", "left",
}

// String returns the fact as tests and logs name it.
func (f Fact) String() string { return factNames[f] }

// An Action is something that a handoff has to do next.
type Action int

// The actions. Those up to [ActWriteOutcome] are slow: one of them is done at a time, and the next replaces the one
// before. The others are fast, or are done beside the slow one.
const (
	ActNothing        Action = iota // until a fact comes
	ActResolve                      // find the target
	ActJoin                         // wait until the work that uses the thread runs a turn, or ends
	ActSteer                        // give the words to the running turn, in one try
	ActAttach                       // resume the resolved thread
	ActCreate                       // make a new thread
	ActOffer                        // ask the caller whether to make a copy of the resolved thread
	ActCopy                         // make the copy
	ActAwait                        // watch the turn of somebody else until it ends
	ActStart                        // start the turn in the thread, in one try
	ActReconcile                    // find out what became of a lost start
	ActFollow                       // follow the turn
	ActReconnect                    // attach again until it succeeds or takes too long
	ActWriteOutcome                 // write the outcome to the ledger
	ActRemember                     // make the thread sticky
	ActForget                       // make the thread not sticky any more, since it is gone
	ActInterrupt                    // stop the turn
	ActNote                         // write to the ledger that the words were accepted, unless it has them
	ActPromise                      // publish that the work is noted: the caller may be told that it will be done
	ActPublishWait                  // publish what the words wait for, after the promise
	ActPublishJoined                // publish that the words are in a turn of somebody else
	ActPublishSilence               // publish that the turn is silent and still followed
	ActPublishOutcome               // publish the outcome
	ActYield                        // publish that somebody else has the work, and publishes its outcome
	actionCount
)

var actionNames = [actionCount]string{
	"nothing", "resolve", "join", "steer", "attach", "create", "offer", "copy", "await", "start", "reconcile", "follow",
	"reconnect", "write outcome", "remember", "forget", "interrupt", "note", "promise", "publish wait",
	"publish joined", "publish silence", "publish outcome", "yield",
}

// TakesTime reports whether the action is slow, and replaces the slow action before it.
func (a Action) TakesTime() bool { return a <= ActWriteOutcome }

// String returns the action as tests and logs name it.
func (a Action) String() string { return actionNames[a] }

// First returns the first action of a handoff that begins in this state.
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

// Gated reports whether no other instance may start a turn in the thread: from the attach until the turn has reported
// something. (While the handoff waits for a turn of somebody else, the router frees the gate itself.)
func (s State) Gated() bool {
	switch s.Phase {
	case Attaching, Waiting, Starting, Reconciling:
		return true
	}
	return s.Phase == Running && !s.Seen
}

// State is the state of a handoff. The zero value is that of a new request.
type State struct {
	Phase    Phase
	Sticky   bool // the thread is the caller's sticky one
	Replaced bool // the thread is new, in place of a sticky one that was gone
	// Fresh: the thread was made for this handoff, like a replacement. Until its turn runs, no other connection finds
	// it.
	Fresh     bool
	Noted     bool            // an entry of the work is in the ledger; before that nothing is promised
	Due       bool            // the caller needs a promise: it is published, or will be once the work is noted
	Stopping  bool            // a stop came before the turn was acknowledged
	Paused    bool            // the work that the words wait for, or are on their way into, was stopped
	Seen      bool            // the turn has reported something
	Again     bool            // a start that certainly did not run, or was not sent, was sent once more
	Inherited bool            // an earlier life of the process dispatched it, so this one never starts it
	Silent    bool            // the silence was published, which happens once
	Merged    bool            // somebody else began the turn: it is followed for the caller and never stopped
	Outcome   handoff.Outcome // set once, when the work is over
}
