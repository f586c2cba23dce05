package router

import (
	"context"
	"switchboard/handoff"
	"switchboard/handoff/phase"
	"time"

	"go.uber.org/zap"
)

// retries stand between two tries to reach an agent that was lost, or the store.
var retries = handoff.Backoff{First: 250 * time.Millisecond, Longest: 10 * time.Second}

// pause waits before try number n (from 0). False means that ctx ended.
func (r *Router) pause(ctx context.Context, n int) bool {
	t := time.NewTimer(r.jitter(retries.Step(n)))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// rejoin attaches the thread again until it succeeds, and then the turn is followed again; it never starts one.
func (w *work) rejoin() func(context.Context) func() {
	if w.lost.IsZero() {
		w.lost = time.Now()
		w.publish(handoff.RunLost{})
	}
	target, until, first := w.target, w.lost.Add(w.r.patience), w.rejoins
	w.rejoins++
	return func(ctx context.Context) func() {
		for try := first; ; try++ {
			if !w.r.pause(ctx, try) {
				return nil
			}
			at, err := w.reach(ctx, target)
			switch {
			case err == nil && time.Now().Before(until):
				return w.arrived(at, func() { w.Step(phase.FactRejoined) })
			case err == nil:
				err = handoff.Fault(handoff.CodeAgentGone, target.Server, "the turn cannot be followed any more")
				fallthrough
			case final(err), time.Now().After(until):
				return func() {
					w.fail(phase.FactRejoinFailed, handoff.Fault(handoff.CodeAgentGone, target.Server, err.Error()))
				}
			}
			w.log.Debug("agent not reached", zap.Int("try", try), zap.Error(err))
		}
	}
}

// settle finds out whether a start ran whose acknowledgement was lost, or that never showed itself.
func (w *work) settle() func(context.Context) func() {
	target, after, id, until := w.target, w.before, w.ID, time.Now().Add(w.r.patience)
	return func(ctx context.Context) func() {
		for try := 0; ; try++ {
			if !w.r.pause(ctx, try) {
				return nil
			}
			at, turn, err := w.lookFor(ctx, target, after, id)
			switch {
			case err == nil && turn != "":
				return w.arrived(at, func() { w.adopted(turn) })
			case err == nil:
				return w.arrived(at, w.neverRan)
			case handoff.AsError(err).Code == handoff.CodeJoined && turn != "":
				return w.arrived(at, func() { w.merged(turn) })
			case final(err), time.Now().After(until):
				return func() {
					w.fail(phase.FactUnsettled, handoff.Fault(handoff.CodeUnknownStart, target.Server, err.Error()))
				}
			}
			w.log.Debug("start not settled", zap.Int("try", try), zap.Error(err))
		}
	}
}

// adopted takes the turn that was found.
func (w *work) adopted(turn handoff.TurnID) {
	w.turn, w.fault = turn, nil
	w.unmerge()
	w.Step(phase.FactAdopted)
}

// unmerge: what was taken for a turn of somebody else is ours, or nothing.
func (w *work) unmerge() {
	if w.state.Merged {
		w.rec = w.book.change(w.ID, func(r *handoff.Record) { r.Why = handoff.WhyContinued })
	}
}

// neverRan: the start certainly came to nothing. Whether it is sent again is for the state to decide.
func (w *work) neverRan() {
	w.unmerge()
	switch {
	case w.state.Inherited:
		w.fault = handoff.Fault(handoff.CodeUnknownStart, w.target.Server, "a former life of this process was about to start it")
	case w.state.Stopping:
		w.fault = nil
	default:
		w.fault = handoff.Fault(handoff.CodeUnreachable, w.target.Server, "the start was lost twice; nothing runs")
	}
	w.Step(phase.FactNeverRan)
	if w.state.Phase == phase.Starting {
		w.fault = nil
	}
}

// lookFor attaches the thread afresh and asks it for the turn that a start may have made.
func (w *work) lookFor(ctx context.Context, t handoff.Target, after handoff.TurnID, id string) (handoff.Attached, handoff.TurnID, error) {
	at, err := w.reach(ctx, t)
	if err != nil {
		return at, "", err
	}
	settler, ok := at.Agent.(handoff.Settler)
	if !ok {
		return at, "", handoff.Fault(handoff.CodeUnknownStart, t.Server, "this kind of server cannot tell")
	}
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	turn, err := settler.Settle(ctx, after, id)
	if err != nil && handoff.AsError(err).Code == handoff.CodeUnknownStart { // the connection was lost again, not the answer
		err = handoff.Fault(handoff.CodeAgentGone, t.Server, err.Error())
	}
	return at, turn, err
}

// reach attaches exactly the thread asked for.
func (w *work) reach(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	at, err := w.r.fleet.Attach(ctx, t)
	if err != nil {
		return handoff.Attached{}, err
	}
	w.hold(at.Agent)
	if at.Target.Thread != t.Thread {
		return handoff.Attached{}, handoff.Fault(handoff.CodeSessionMismatch, t.Server, "got "+at.Target.Thread)
	}
	return at, nil
}

// final tells whether an error means that trying again is in vain.
func final(err error) bool {
	switch handoff.AsError(err).Code {
	case handoff.CodeSessionGone, handoff.CodeSessionArchived, handoff.CodeSessionMismatch, handoff.CodeSessionElsewhere, handoff.CodeUnknownServer, handoff.CodeUnknownSession, handoff.CodeRefused, handoff.CodeUnsupported, handoff.CodeUnknownStart:
		return true
	}
	return false
}
