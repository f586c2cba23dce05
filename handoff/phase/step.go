package phase

import "switchboard/handoff"

// Step takes a fact and returns the next state, and the actions to do, in order. Facts that do not matter in this state
// change nothing.
func (s State) Step(f Fact) (State, []Action) {
	if s.Phase == Ended {
		return s, nil
	}
	switch f {
	case FactDue:
		if s.Phase == Writing { // the outcome follows within a second
			return s, nil
		}
		return s.due()
	case FactNoted:
		return s.noted()
	case FactUnnoted:
		if s.Noted || s.Phase >= Starting { // from Starting on, the ledger step before the start decides
			return s, nil
		}
		return s.end(handoff.OutcomeFailed)
	case FactStop:
		return s.stop()
	case FactShutdown:
		return s.shutdown()
	case FactMoved:
		return s.moved()
	case FactLeft: // a turn that runs goes on
		if s.Phase >= Writing {
			return s, nil
		}
		return s.end(handoff.OutcomeCancelled)
	}
	switch s.Phase {
	case Resolving:
		return s.resolving(f)
	case Joining:
		return s.joining(f)
	case Attaching, Waiting:
		return s.attaching(f)
	case Offering:
		return s.offering(f)
	case Starting, Steering:
		return s.sending(f)
	case Reconciling:
		return s.reconciling(f)
	case Reconnecting:
		return s.reconnecting(f)
	case Writing:
		return s.writing(f)
	default:
		return s.running(f)
	}
}

func (s State) resolving(f Fact) (State, []Action) {
	switch f {
	case FactResolvedThread, FactResolvedSticky:
		s.Phase, s.Sticky = Attaching, f == FactResolvedSticky
		return s, []Action{ActAttach}
	case FactResolvedNew:
		s.Phase, s.Fresh = Attaching, true
		return s, []Action{ActCreate}
	case FactResolvedCopy:
		return s.offer()
	case FactResolvedTaken:
		s.Phase = Joining
		return s, []Action{ActJoin}
	case FactBranches:
		return s.branch()
	case FactUnresolved:
		return s.end(handoff.OutcomeFailed)
	}
	return s, nil
}

// branch makes a copy that the request asks for. The caller is not asked again.
func (s State) branch() (State, []Action) {
	s.Phase, s.Sticky = Attaching, false
	return s, []Action{ActCopy}
}

// joining: the words go into a running turn of ours, or wait until no other work of ours uses the thread.
func (s State) joining(f Fact) (State, []Action) {
	switch f {
	case FactOursRuns:
		s.Phase = Steering
		return s, []Action{ActSteer}
	case FactQueued:
		return s.waits()
	case FactPaused: // the caller is asked whether to begin it
		s.Paused = true
		return s.end(handoff.OutcomeCancelled)
	case FactThreadFree: // the sticky thread may have changed meanwhile
		s.Phase = Resolving
		return s, []Action{ActResolve}
	}
	return s, nil
}

// sending: a promise that came due meanwhile waits for the ledger step before the words are sent. If they are not, it
// is noted by itself.
func (s State) sending(f Fact) (State, []Action) {
	step := s.starting
	if s.Phase == Steering {
		step = s.steering
	}
	next, acts := step(f)
	if s.Due && !s.Noted && next.Phase < Starting {
		acts = append(acts, ActNote)
	}
	return next, acts
}

// steering: words that were refused may be sent again.
func (s State) steering(f Fact) (State, []Action) {
	switch f {
	case FactSteered:
		return s.end(handoff.OutcomeResult)
	case FactSteerRefused, FactStartUnsent:
		if s.Stopping || s.Paused {
			return s.end(handoff.OutcomeCancelled)
		}
		s.Phase = Joining
		return s, []Action{ActJoin}
	case FactStartRefused:
		return s.end(handoff.OutcomeFailed)
	case FactPaused:
		s.Paused = true
	case FactSteerUnknown:
		return s.end(handoff.OutcomeUnknown)
	}
	return s, nil
}

func (s State) attaching(f Fact) (State, []Action) {
	switch f {
	case FactAttached:
		s.Phase = Starting
		return s, []Action{ActStart}
	case FactAttachedBusy:
		return s.await()
	case FactBranches:
		return s.branch()
	case FactTurnOver:
		if s.Phase == Waiting {
			return s, []Action{ActAttach} // still in Waiting: the next turn may be somebody else's, too
		}
	case FactThreadGone:
		switch {
		case s.Sticky: // the caller did not name it, so they get a new thread; the answer says so
			s.Phase, s.Sticky, s.Replaced = Attaching, false, true
			return s, []Action{ActForget, ActCreate}
		case s.Fresh, s.Replaced: // it was gone before it ran
			s.Phase = Attaching
			return s, []Action{ActCreate}
		}
		return s.end(handoff.OutcomeFailed)
	case FactAttachHeld:
		return s.offer()
	case FactAttachAway: // words that wait for a turn were promised, and are not given up because of a lost machine
		if s.Phase == Waiting {
			return s, []Action{ActAwait}
		}
		return s.end(handoff.OutcomeFailed)
	case FactAttachFailed:
		return s.end(handoff.OutcomeFailed)
	}
	return s, nil
}

// offer asks the caller whether to copy: the voice model alone cannot decide that. The question comes once the words
// are noted.
func (s State) offer() (State, []Action) {
	s.Phase, s.Sticky, s.Fresh = Offering, false, false
	next, acts := s.due()
	if next.Noted {
		acts = append(acts, ActOffer)
	}
	return next, acts
}

func (s State) offering(f Fact) (State, []Action) {
	switch f {
	case FactCopyAllowed:
		s.Phase = Attaching
		return s, []Action{ActCopy}
	case FactCopyDeclined:
		return s.end(handoff.OutcomeCancelled)
	}
	return s, nil
}

func (s State) starting(f Fact) (State, []Action) {
	switch f {
	case FactStarted:
		return s.follow(ActRemember)
	case FactMerged:
		return s.merged()
	case FactStartBusy:
		if s.Stopping {
			return s.end(handoff.OutcomeCancelled)
		}
		return s.await()
	case FactStartUnsent, FactThreadGone, FactAttachHeld, FactAttachFailed:
		return s.unsent(f)
	case FactStartRefused:
		return s.end(handoff.OutcomeFailed)
	case FactStartUnknown:
		s.Phase = Reconciling
		return s, []Action{ActReconcile}
	}
	return s, nil
}

// unsent: the start failed because the thread is not attached any more. Nothing ran. A lost thread is attached again,
// once.
func (s State) unsent(f Fact) (State, []Action) {
	lost := f == FactStartUnsent || f == FactThreadGone && (s.Fresh || s.Replaced)
	switch {
	case s.Stopping:
		return s.end(handoff.OutcomeCancelled)
	case !lost:
		return s.attaching(f)
	case s.Again:
		return s.end(handoff.OutcomeFailed)
	}
	s.Again = true
	if f == FactThreadGone {
		return s.attaching(f)
	}
	s.Phase = Attaching
	return s, []Action{ActAttach}
}

// await waits for the turn of somebody else, and publishes that once.
func (s State) await() (State, []Action) {
	published := s.Phase == Waiting
	s.Phase = Waiting
	if published {
		return s, []Action{ActAwait}
	}
	next, acts := s.waits()
	return next, append(acts, ActAwait)
}

// merged follows a turn of somebody else, which took the words.
func (s State) merged() (State, []Action) {
	s.Merged = true
	next, acts := s.follow(ActRemember)
	return next, append(acts, ActPublishJoined)
}

// follow follows the turn, after the actions first. If a stop came before, it interrupts the turn.
func (s State) follow(first ...Action) (State, []Action) {
	s.Phase = Running
	acts := append(first, ActFollow)
	if s.Stopping && !s.Merged {
		acts = append(acts, ActInterrupt)
	}
	return s, acts
}

// reconciling: a start is sent again only if it certainly never ran, only once, and only by the process that sent it.
func (s State) reconciling(f Fact) (State, []Action) {
	s.Merged = s.Merged && f != FactAdopted && f != FactNeverRan
	switch f {
	case FactAdopted:
		return s.follow(ActRemember)
	case FactMerged:
		return s.merged()
	case FactNeverRan:
		switch {
		case s.Inherited:
			return s.end(handoff.OutcomeUnknown)
		case s.Stopping:
			return s.end(handoff.OutcomeCancelled)
		case s.Again:
			return s.end(handoff.OutcomeFailed)
		}
		s.Phase, s.Again = Starting, true
		return s, []Action{ActStart}
	case FactNotReconciled:
		return s.end(handoff.OutcomeUnknown)
	}
	return s, nil
}

func (s State) running(f Fact) (State, []Action) {
	switch f {
	case FactSeen:
		s.Seen = true
	case FactUnseen:
		if !s.Seen {
			s.Phase = Reconciling
			return s, []Action{ActReconcile}
		}
	case FactSilent:
		if !s.Silent {
			s.Silent = true
			return s, []Action{ActPublishSilence}
		}
	case FactAgentGone, FactTurnGone:
		if !s.Seen { // acknowledged, but it may never have run
			s.Phase = Reconciling
			return s, []Action{ActReconcile}
		}
		if f == FactTurnGone {
			return s.end(handoff.OutcomeUnknown)
		}
		s.Phase = Reconnecting
		return s, []Action{ActReconnect}
	}
	switch f {
	case FactTurnCompleted:
		return s.end(handoff.OutcomeResult)
	case FactTurnFailed:
		return s.end(handoff.OutcomeFailed)
	case FactTurnInterrupted:
		return s.end(handoff.OutcomeInterrupted)
	}
	return s, nil
}

func (s State) reconnecting(f Fact) (State, []Action) {
	switch f {
	case FactReconnected:
		return s.follow()
	case FactReconnectFailed:
		return s.end(handoff.OutcomeUnknown)
	}
	return s, nil
}

// stop cancels a handoff before its start, and interrupts a running turn. While a start is on its way, or the agent is
// lost, the stop waits for an acknowledged turn that can be reached.
func (s State) stop() (State, []Action) {
	switch s.Phase {
	case Starting, Steering, Reconciling, Reconnecting:
		s.Stopping = true
		return s, nil
	case Running:
		if s.Merged {
			return s, nil
		}
		s.Stopping = true // so that it is interrupted again after a reconnect
		return s, []Action{ActInterrupt}
	case Writing:
		return s, nil
	default:
		return s.end(handoff.OutcomeCancelled)
	}
}

// shutdown publishes an outcome of open work at once. In the ledger the work stays open, for the next life of the
// process. An outcome that is being written follows within a second.
func (s State) shutdown() (State, []Action) {
	switch {
	case s.Phase < Starting:
		s.Outcome = handoff.OutcomeCancelled
	case s.Phase < Writing:
		s.Outcome = handoff.OutcomeUnknown // the turn goes on, and is no longer followed
	default:
		return s, nil
	}
	return s.give()
}

// moved leaves work that is in the ledger to the next home: waiting words stay accepted, and running turns go on. Other
// work ends here, since no other home knows of it.
func (s State) moved() (State, []Action) {
	switch {
	case s.Phase >= Writing: // the outcome follows within a second
		return s, nil
	case !s.Noted:
		return s.shutdown()
	}
	s.Phase = Ended
	return s, []Action{ActYield}
}

// due promises the work, once it is noted, so that a crash does not break the promise. From Starting on, the ledger
// step before the start notes it.
func (s State) due() (State, []Action) {
	switch {
	case s.Due:
		return s, nil
	case s.Noted:
		s.Due = true
		return s, []Action{ActPromise}
	}
	s.Due = true
	if s.Phase >= Starting {
		return s, nil
	}
	return s, []Action{ActNote}
}

// noted publishes what waits for the entry: the promise, and the question whether to copy.
func (s State) noted() (State, []Action) {
	if s.Noted {
		return s, nil
	}
	s.Noted = true
	if s.Phase >= Writing { // the outcome follows within a second
		return s, nil
	}
	var acts []Action
	if s.Due {
		acts = append(acts, ActPromise)
	}
	if s.Phase == Offering {
		acts = append(acts, ActOffer)
	}
	return s, acts
}

// waits publishes that the words wait: with the promise, or after it.
func (s State) waits() (State, []Action) {
	if s.Due && s.Noted {
		return s, []Action{ActPublishWait}
	}
	return s.due()
}

// end closes the work. The outcome is written before it is told, so that a crash in between never loses it or makes
// another outcome: the next call tells it again.
func (s State) end(o handoff.Outcome) (State, []Action) {
	s.Phase, s.Outcome = Writing, o
	return s, []Action{ActWriteOutcome}
}

// writing: a ledger that is away delays the outcome for a short time only.
func (s State) writing(f Fact) (State, []Action) {
	switch f {
	case FactWritten, FactUnwritten:
		return s.give()
	case FactTakenOver:
		s.Phase = Ended
		return s, []Action{ActYield}
	}
	return s, nil
}

func (s State) give() (State, []Action) {
	s.Phase = Ended
	return s, []Action{ActPublishOutcome}
}
