package handoff

// A Sighting is what is known about an open handoff after looking at its thread: what the entry says
// cannot tell whether the start reached the agent.
type Sighting struct {
	// Reached: the thread was resumed and read. False means that nothing below is known.
	Reached bool
	// Gone: the thread does not exist any more.
	Gone bool
	// Settled: the bytes of the connection that sent the start are resolved, two looks were equal. Before
	// that a start that is not seen may still come.
	Settled bool
	// Turn is the turn that the entry names, else what [Settler] found. "" when there is none.
	Turn TurnID
	// Joined: Turn is somebody else's, and took our words in ([CodeJoined]).
	Joined bool
	// Foreign: there is no turn of ours, and yet the thread's newest turn is not the watermark.
	Foreign bool
	// Ended: the turn is over, and Status says how.
	Ended  bool
	Status TurnStatus
	// GaveUp: looking again is no use any more: the caller waited long enough.
	GaveUp bool
}

// A Remedy is what has to be done about an open handoff.
type Remedy int

// The remedies.
const (
	RemedyNothing Remedy = iota // it is delivered
	RemedyTell                  // the outcome is known and nobody heard it
	RemedyLook                  // look again: it was not reached, or not settled
	RemedyFollow                // adopt the turn: started, and watched from here
	RemedyFinish                // adopt the turn, which has ended: its text is read
	RemedyJoin                  // as after [CodeJoined]: said, perhaps followed, never started again
	RemedyStart                 // send the start, the first time or once more
	RemedyFail                  // it certainly never ran and is not tried again
	RemedyAsk                   // it cannot be told whether it ran: outcome unknown, and the caller is asked
)

var remedyNames = [...]string{"nothing", "tell", "look", "follow", "finish", "join", "start", "fail", "ask"}

// String returns the remedy as logs and tests name it.
func (r Remedy) String() string { return remedyNames[r] }

// Recover decides what to do about a handoff whose connection to the agent was lost, or which a former
// life of the router left behind (an inherited entry). A turn is started at most once: again only by who
// sent the first start, after the thread has settled, and when nothing newer than the watermark is there.
func Recover(e LedgerEntry, s Sighting) Remedy {
	switch e.Status {
	case "", StatusDelivered:
		return RemedyNothing
	case StatusCompleted:
		return RemedyTell
	case StatusAccepted:
		if !e.Inherited {
			return RemedyStart // nothing was ever sent
		}
	}
	switch {
	case s.Gone:
		return RemedyAsk
	case !s.Reached && s.GaveUp:
		return RemedyAsk
	case !s.Reached:
		return RemedyLook
	case s.Turn != "" && s.Joined:
		return RemedyJoin
	case s.Turn != "" && s.Ended:
		return RemedyFinish
	case s.Turn != "":
		return RemedyFollow
	case !s.Settled && !s.GaveUp:
		return RemedyLook
	case !s.Settled, e.Inherited, s.Foreign, e.Status == StatusStarted:
		return RemedyAsk
	case e.Attempt < LedgerAttempts:
		return RemedyStart
	}
	return RemedyFail
}

// Finished returns the outcome of a turn that was found ended. An interrupted one is never run again.
func (s Sighting) Finished() Outcome {
	return [...]Outcome{TurnCompleted: OutcomeResult, TurnFailed: OutcomeFailed, TurnInterrupted: OutcomeInterrupted}[s.Status]
}
