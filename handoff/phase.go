package handoff

// A Phase is how far a handoff has come. It only moves forward.
type Phase int

// The phases of a handoff.
const (
	PhaseResolving Phase = iota // names become a target
	PhaseAttaching              // the thread is resumed or made
	PhaseStarting               // the turn is on its way; it may or may not run
	PhaseRunning                // the turn is acknowledged
	PhaseEnded                  // the outcome is known
)

var phaseNames = [...]string{"resolving", "attaching", "starting", "running", "ended"}

// String returns the phase as logs name it.
func (p Phase) String() string { return phaseNames[p] }

// A Fact is something that happened to a handoff; [State.Step] decides what follows.
type Fact int

// The facts.
const (
	FactResolvedThread  Fact = iota // a thread the caller named
	FactResolvedSticky              // the thread the caller last used there
	FactResolvedNew                 // no thread yet, or a fresh one was asked for
	FactUnresolved                  // the names lead nowhere, or the caller's own work holds the thread
	FactAttached                    // the thread is ready and idle
	FactAttachedBusy                // the thread runs a turn
	FactThreadGone                  // the thread does not exist any more
	FactAttachFailed                // it cannot be attached for another reason
	FactStarted                     // the agent acknowledged the turn
	FactStartRefused                // certainly nothing runs
	FactStartUnknown                // the connection was lost with the start on its way
	FactTurnCompleted               // the turn ended with an answer
	FactTurnFailed                  // the turn ended with an error
	FactTurnInterrupted             // somebody stopped the turn
	FactAgentGone                   // the connection was lost while the turn ran
	FactAnswerDue                   // the voice model has waited long enough for the answer
	FactStop                        // the caller asked to stop the work
	FactCallEnded                   // nobody listens any more
	FactShutdown                    // the process ends
	factCount
)

var factNames = [factCount]string{
	"resolved thread", "resolved sticky", "resolved new", "unresolved", "attached", "attached busy", "thread gone",
	"attach failed", "started", "start refused", "start unknown", "turn completed", "turn failed",
	"turn interrupted", "agent gone", "answer due", "stop", "call ended", "shutdown",
}

// String returns the fact as tests and logs name it.
func (f Fact) String() string { return factNames[f] }

// An Action is what the owner of a handoff has to do next.
type Action int

// The actions.
const (
	ActAttach        Action = iota // resume the resolved thread
	ActCreate                      // make a fresh thread
	ActStart                       // give the thread the turn, one try
	ActFollow                      // watch the turn
	ActRemember                    // make the thread sticky
	ActForget                      // the sticky thread is gone
	ActInterrupt                   // stop the turn
	ActAnswerEarly                 // answer the request: it is being done
	ActAnswerOutcome               // answer the request with the outcome
	ActTellOutcome                 // the answer was given: tell the outcome as a message
	ActKeepOutcome                 // nobody listens: keep the outcome for the next call
	actionCount
)

var actionNames = [actionCount]string{
	"attach", "create", "start", "follow", "remember", "forget", "interrupt",
	"answer early", "answer outcome", "tell outcome", "keep outcome",
}

// String returns the action as tests and logs name it.
func (a Action) String() string { return actionNames[a] }

// State is where a handoff stands. The zero value is a fresh request whose call is open.
type State struct {
	Phase    Phase
	Sticky   bool    // the thread attached is the caller's sticky one
	Replaced bool    // a sticky thread was gone; this is its successor
	Answered bool    // the request got its one output
	Alone    bool    // the call has ended
	Stopping bool    // a stop came before the turn was acknowledged
	Outcome  Outcome // set once, with PhaseEnded
}

// Step takes a fact and returns the next state and what to do, in order. Facts that cannot matter any
// more change nothing.
func (s State) Step(f Fact) (State, []Action) {
	if s.Phase == PhaseEnded {
		return s, nil
	}
	switch f {
	case FactAnswerDue:
		return s.answerEarly()
	case FactCallEnded:
		next, acts := s.answerEarly()
		next.Alone = true
		return next, acts
	case FactStop:
		return s.stop()
	case FactShutdown:
		return s.shutdown()
	}
	switch s.Phase {
	case PhaseResolving:
		return s.resolving(f)
	case PhaseAttaching:
		return s.attaching(f)
	case PhaseStarting:
		return s.starting(f)
	default:
		return s.running(f)
	}
}

func (s State) resolving(f Fact) (State, []Action) {
	switch f {
	case FactResolvedThread, FactResolvedSticky:
		s.Phase, s.Sticky = PhaseAttaching, f == FactResolvedSticky
		return s, []Action{ActAttach}
	case FactResolvedNew:
		s.Phase = PhaseAttaching
		return s, []Action{ActCreate}
	case FactUnresolved:
		return s.end(OutcomeFailed)
	}
	return s, nil
}

func (s State) attaching(f Fact) (State, []Action) {
	switch f {
	case FactAttached:
		s.Phase = PhaseStarting
		return s, []Action{ActStart}
	case FactThreadGone:
		if s.Sticky { // nobody named it, so a fresh thread is what they would want; the answer says so
			s.Sticky, s.Replaced = false, true
			return s, []Action{ActForget, ActCreate}
		}
		return s.end(OutcomeFailed)
	case FactAttachedBusy, FactAttachFailed:
		return s.end(OutcomeFailed)
	}
	return s, nil
}

func (s State) starting(f Fact) (State, []Action) {
	switch f {
	case FactStarted:
		s.Phase = PhaseRunning
		acts := []Action{ActRemember, ActFollow}
		if s.Stopping {
			acts = append(acts, ActInterrupt)
		}
		return s, acts
	case FactStartRefused:
		return s.end(OutcomeFailed)
	case FactStartUnknown:
		return s.end(OutcomeUnknown)
	}
	return s, nil
}

func (s State) running(f Fact) (State, []Action) {
	switch f {
	case FactTurnCompleted:
		return s.end(OutcomeResult)
	case FactTurnFailed:
		return s.end(OutcomeFailed)
	case FactTurnInterrupted:
		return s.end(OutcomeInterrupted)
	case FactAgentGone:
		return s.end(OutcomeUnknown)
	}
	return s, nil
}

// stop before the start cancels; with the start on its way it waits for the acknowledgement, because
// only an acknowledged turn can be stopped.
func (s State) stop() (State, []Action) {
	switch s.Phase {
	case PhaseStarting:
		s.Stopping = true
		return s, nil
	case PhaseRunning:
		return s, []Action{ActInterrupt}
	default:
		return s.end(OutcomeCancelled)
	}
}

func (s State) shutdown() (State, []Action) {
	if s.Phase < PhaseStarting {
		return s.end(OutcomeCancelled)
	}
	return s.end(OutcomeUnknown) // the work goes on where it runs; we only stop watching
}

func (s State) answerEarly() (State, []Action) {
	if s.Answered {
		return s, nil
	}
	s.Answered = true
	return s, []Action{ActAnswerEarly}
}

func (s State) end(o Outcome) (State, []Action) {
	s.Phase, s.Outcome = PhaseEnded, o
	switch {
	case !s.Answered:
		s.Answered = true
		return s, []Action{ActAnswerOutcome}
	case s.Alone:
		return s, []Action{ActKeepOutcome}
	default:
		return s, []Action{ActTellOutcome}
	}
}
