package handoff

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// retries stand between two tries to reach an agent that was lost, or the store.
var retries = Backoff{First: 250 * time.Millisecond, Longest: 10 * time.Second}

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
		w.call.say(Utterance{ID: w.id + "-l", Text: lostNote(w.rec)})
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
				return w.arrived(at, func() { w.step(FactRejoined) })
			case err == nil:
				err = Fault(CodeAgentGone, target.Server, "the turn cannot be followed any more")
				fallthrough
			case final(err), time.Now().After(until):
				return func() { w.fail(FactRejoinFailed, Fault(CodeAgentGone, target.Server, err.Error())) }
			}
			w.log.Debug("agent not reached", zap.Int("try", try), zap.Error(err))
		}
	}
}

// settle finds out whether a start ran whose acknowledgement was lost, or that never showed itself.
func (w *work) settle() func(context.Context) func() {
	target, after, id, until := w.target, w.before, w.id, time.Now().Add(w.r.patience)
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
			case AsError(err).Code == CodeJoined && turn != "":
				return w.arrived(at, func() { w.merged(turn) })
			case final(err), time.Now().After(until):
				return func() { w.fail(FactUnsettled, Fault(CodeUnknownStart, target.Server, err.Error())) }
			}
			w.log.Debug("start not settled", zap.Int("try", try), zap.Error(err))
		}
	}
}

// adopted takes the turn that was found.
func (w *work) adopted(turn TurnID) {
	w.turn, w.fault = turn, nil
	w.unmerge()
	w.step(FactAdopted)
}

// unmerge: what was taken for a turn of somebody else is ours, or nothing.
func (w *work) unmerge() {
	if w.state.Merged {
		w.rec = w.book.change(w.id, func(r *Record) { r.Why = WhyContinued })
	}
}

// neverRan: the start certainly came to nothing. Whether it is sent again is for the state to decide.
func (w *work) neverRan() {
	w.unmerge()
	switch {
	case w.state.Inherited:
		w.fault = Fault(CodeUnknownStart, w.target.Server, "a former life of this process was about to start it")
	case w.state.Stopping:
		w.fault = nil
	default:
		w.fault = Fault(CodeUnreachable, w.target.Server, "the start was lost twice; nothing runs")
	}
	w.step(FactNeverRan)
	if w.state.Phase == PhaseStarting {
		w.fault = nil
	}
}

// lookFor attaches the thread afresh and asks it for the turn that a start may have made.
func (w *work) lookFor(ctx context.Context, t Target, after TurnID, id string) (Attached, TurnID, error) {
	at, err := w.reach(ctx, t)
	if err != nil {
		return at, "", err
	}
	settler, ok := at.Agent.(Settler)
	if !ok {
		return at, "", Fault(CodeUnknownStart, t.Server, "this kind of server cannot tell")
	}
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	turn, err := settler.Settle(ctx, after, id)
	if err != nil && AsError(err).Code == CodeUnknownStart { // the connection was lost again, not the answer
		err = Fault(CodeAgentGone, t.Server, err.Error())
	}
	return at, turn, err
}

// reach attaches exactly the thread asked for.
func (w *work) reach(ctx context.Context, t Target) (Attached, error) {
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	at, err := w.r.fleet.Attach(ctx, t)
	if err != nil {
		return Attached{}, err
	}
	w.hold(at.Agent)
	if at.Target.Thread != t.Thread {
		return Attached{}, Fault(CodeSessionMismatch, t.Server, "got "+at.Target.Thread)
	}
	return at, nil
}

// final tells whether an error means that trying again is in vain.
func final(err error) bool {
	switch AsError(err).Code {
	case CodeSessionGone, CodeSessionArchived, CodeSessionMismatch, CodeSessionElsewhere, CodeUnknownServer, CodeUnknownSession, CodeRefused, CodeUnsupported, CodeUnknownStart:
		return true
	}
	return false
}
