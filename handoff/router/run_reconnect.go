package router

import (
	"context"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/phase"
)

// reconnect attaches the thread again until it succeeds, and then the turn is followed again; it never starts one.
func (r *run) reconnect(ctx context.Context) (phase.Fact, *handoff.Error) {
	if r.lost.IsZero() {
		r.lost = time.Now()
		r.publish(handoff.RunLost{})
	}
	target, until, first := r.target, r.lost.Add(r.router.patience), r.rejoins
	r.rejoins++
	var at handoff.Attached
	var err error
	if !r.outside(ctx, func() {
		for try := first; r.router.pause(ctx, try); try++ {
			at, err = r.reach(ctx, target)
			late := !time.Now().Before(until)
			if err == nil && late {
				err = handoff.Fault(handoff.CodeAgentGone, target.Server, "the turn cannot be followed any more")
			}
			if err == nil || late || final(err) {
				return
			}
			r.log.Debug("agent not reached", zap.Int("try", try), zap.Error(err))
		}
	}) {
		return phase.FactNothing, nil
	}
	if err != nil {
		return phase.FactReconnectFailed, handoff.Because(handoff.CodeAgentGone, target.Server, err)
	}
	r.arrived(at)
	return phase.FactReconnected, nil
}

// reconcile finds out whether a start ran whose acknowledgement was lost, or that never showed itself.
func (r *run) reconcile(ctx context.Context) (phase.Fact, *handoff.Error) {
	target, after, until := r.target, r.before, time.Now().Add(r.router.patience)
	var at handoff.Attached
	var turn handoff.TurnID
	var err error
	joined := func() bool { return err != nil && handoff.AsError(err).Code == handoff.CodeJoined && turn != "" }
	if !r.outside(ctx, func() {
		for try := 0; r.router.pause(ctx, try); try++ {
			at, turn, err = r.lookFor(ctx, target, after)
			if err == nil || joined() || final(err) || time.Now().After(until) {
				return
			}
			r.log.Debug("start not reconciled", zap.Int("try", try), zap.Error(err))
		}
	}) {
		return phase.FactNothing, nil
	}
	if err != nil && !joined() {
		return phase.FactNotReconciled, handoff.Because(handoff.CodeUnknownStart, target.Server, err)
	}
	r.arrived(at)
	if joined() {
		return r.merged(turn)
	}
	if r.state.Merged { // what was taken for a turn of somebody else is ours, or nothing
		r.show(func(rec *handoff.Record) { rec.Why = handoff.WhyContinued })
	}
	if turn == "" {
		return phase.FactNeverRan, neverRan(r.state.Inherited, target.Server)
	}
	r.turn = turn
	return phase.FactAdopted, nil
}

// neverRan is why a start came to nothing for certain, should it not be sent again.
func neverRan(inherited bool, server string) *handoff.Error {
	if inherited {
		return handoff.Fault(handoff.CodeUnknownStart, server, "a former life of this process was about to start it")
	}
	return handoff.Fault(handoff.CodeUnreachable, server, "the start was lost twice; nothing runs")
}

// lookFor attaches the thread afresh and asks it for the turn that a start may have made.
func (r *run) lookFor(ctx context.Context, t handoff.Target, after handoff.TurnID) (handoff.Attached, handoff.TurnID, error) {
	at, err := r.reach(ctx, t)
	if err != nil {
		return at, "", err
	}
	reconciler, ok := at.Agent.(handoff.Reconciler)
	if !ok {
		return at, "", handoff.Fault(handoff.CodeUnknownStart, t.Server, "this kind of server cannot tell")
	}
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	turn, err := reconciler.Reconcile(ctx, after, r.ID)
	if err != nil && handoff.AsError(err).Code == handoff.CodeUnknownStart { // the connection was lost again, not the answer
		err = handoff.Because(handoff.CodeAgentGone, t.Server, err)
	}
	return at, turn, err
}

// reach attaches exactly the thread asked for.
func (r *run) reach(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	at, err := r.router.fleet.Attach(ctx, t)
	if err != nil {
		return handoff.Attached{}, err
	}
	r.hold(at.Agent)
	if at.Target.Thread != t.Thread {
		return handoff.Attached{}, handoff.Fault(handoff.CodeSessionMismatch, t.Server, "got "+at.Target.Thread)
	}
	return at, nil
}

// final reports whether an error means that trying again is in vain.
func final(err error) bool {
	switch handoff.AsError(err).Code {
	case handoff.CodeSessionGone, handoff.CodeSessionArchived, handoff.CodeSessionMismatch, handoff.CodeSessionElsewhere, handoff.CodeUnknownServer, handoff.CodeUnknownSession, handoff.CodeRefused, handoff.CodeUnsupported, handoff.CodeUnknownStart, handoff.CodeMalformed:
		return true
	}
	return false
}
