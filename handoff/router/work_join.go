package router

import (
	"context"
	"switchboard/handoff"
	"switchboard/handoff/phase"
	"switchboard/handoff/speech"
	"switchboard/handoff/wording"
	"time"

	"go.uber.org/zap"
)

// join waits for the lane that other work of ours holds: until it is free, or until the holder, if it
// works for the same caller, runs a turn that can take the words.
func (w *work) join() func(context.Context) func() {
	key, refused, next := w.awaited, w.joined.turn, w.args.Next
	return func(ctx context.Context) func() {
		told := false
		for {
			v := w.r.lanes.look(key, w.ID, w.caller)
			joinable := v.same && !next && (v.turn == "" || (v.turn != refused && v.control != nil))
			switch {
			case v.mine:
				return func() {
					w.claims, w.awaited, w.waits = append(w.claims, key), "", wording.WaitsNot
					w.Step(phase.FactLaneFree)
				}
			case joinable && v.turn != "":
				return func() { w.joinTurn(v) }
			case !joinable && !told:
				told = true
				if !w.report(ctx, func() { w.queued(v) }) {
					return nil
				}
			}
			select {
			case <-v.changed:
			case <-ctx.Done():
				w.r.lanes.leave([]string{key}, w.ID)
				return nil
			}
		}
	}
}

// report hands the owner loop something on the way. False means that the work has ended.
func (w *work) report(ctx context.Context, fn func()) bool {
	select {
	case w.facts <- fn:
		return true
	case <-ctx.Done():
		return false
	}
}

func (w *work) queued(v laneView) {
	if w.waits != wording.WaitsNot {
		return
	}
	w.waits = wording.WaitsOurs
	if v.title != "" {
		w.rec = w.book.change(w.ID, func(r *handoff.Record) { r.Title = v.title })
	}
	w.Step(phase.FactQueued)
}

// joinTurn gives the words to the running turn of earlier work.
func (w *work) joinTurn(v laneView) {
	w.joined, w.target = v, v.target
	w.rec = w.book.change(w.ID, func(r *handoff.Record) {
		r.Server, r.Project, r.ThreadID, r.Title, r.Why = v.target.Server, v.target.Project, v.target.Thread, v.title, handoff.WhyAdded
	})
	w.Step(phase.FactLaneRuns)
}

// steer gives the words to the turn that runs. It is one try; refused words may be given again, those
// whose fate is not known may not.
func (w *work) steer() func(context.Context) func() {
	v, prompt := w.joined, w.args.Prompt
	w.before = v.turn
	write := w.dispatch()
	return func(ctx context.Context) func() {
		if err := write(ctx); err != nil {
			return func() { w.fail(phase.FactStartRefused, err) }
		}
		err := v.control.Steer(ctx, v.turn, handoff.TextInput(prompt))
		if err == nil {
			return func() {
				w.call.tell(speech.Concerned{ID: v.holder})
				w.Step(phase.FactSteered)
			}
		}
		e := handoff.AsError(err)
		switch e.Code {
		case handoff.CodeAgentGone, handoff.CodeUnknownStart, handoff.CodeInternal: // only a clear refusal proves that they were not taken
			return func() {
				w.fail(phase.FactSteerUnknown, handoff.Fault(handoff.CodeUnknownStart, v.target.Server, e.Error()))
			}
		}
		return func() {
			w.rec = w.book.change(w.ID, func(r *handoff.Record) { r.Why = "" })
			w.Step(phase.FactSteerRefused)
		}
	}
}

// await watches a turn that is not ours until it ends. What it reports is not for this caller.
func (w *work) await() func(context.Context) func() {
	agent, turn, try := w.attached.Agent, w.attached.Running, w.awaits
	w.awaits++
	w.waits = wording.WaitsTheirs
	return func(ctx context.Context) func() {
		err := error(nil)
		if turn != "" {
			err = watchToEnd(ctx, agent, turn)
		}
		if (turn == "" || err != nil) && !w.r.pause(ctx, try) {
			return nil
		}
		return func() { w.Step(phase.FactTurnOver) }
	}
}

func watchToEnd(ctx context.Context, agent handoff.Agent, turn handoff.TurnID) error {
	for u, err := range agent.Follow(ctx, turn) {
		if err != nil {
			return err
		}
		if _, ended := u.(handoff.TurnEnded); ended {
			return nil
		}
	}
	return handoff.Fault(handoff.CodeAgentGone, "", "the updates ended before the turn")
}

// queue puts the words into the server's own queue, by one try.
func (w *work) queue() func(context.Context) func() {
	agent, turn := w.attached.Agent, w.asTurn()
	w.before = w.attached.Newest
	queuer, ok := agent.(handoff.Queuer)
	write := w.dispatch()
	return func(ctx context.Context) func() {
		if !ok {
			return func() { w.Step(phase.FactNoQueue) }
		}
		if err := write(ctx); err != nil {
			return func() { w.fail(phase.FactStartRefused, err) }
		}
		err := queuer.Queue(ctx, turn)
		if err == nil {
			return func() { w.Step(phase.FactInLine) }
		}
		e := handoff.AsError(err)
		switch e.Code {
		case handoff.CodeUnsupported:
			return func() { w.Step(phase.FactNoQueue) }
		case handoff.CodeUnknownStart, handoff.CodeInternal: // asking for its turn tells
			return func() {
				w.doubted = true
				w.Step(phase.FactInLine)
			}
		}
		return func() { w.refused(e) }
	}
}

// outOfLine: the words left the queue without a turn: the caller wanted it, or it was somebody else. Those of
// which it was never told that they came in may also come in late.
func (w *work) outOfLine(err error) {
	switch {
	case w.doubted:
		w.fail(phase.FactUnsettled, handoff.Fault(handoff.CodeUnknownStart, w.target.Server, err.Error()))
		return
	case w.state.Stopping:
		w.Step(phase.FactOutOfLine)
		return
	}
	w.fail(phase.FactOutOfLine, handoff.Fault(handoff.CodeNotPending, w.target.Server, err.Error()))
}

// unqueue takes the words out of the server's queue. Whether that came in time is told by who awaits them.
func (w *work) unqueue() func(context.Context) func() {
	unqueuer, ok := w.attached.Agent.(handoff.Unqueuer)
	id := w.ID
	return func(ctx context.Context) func() {
		if !ok {
			return nil
		}
		if err := unqueuer.Unqueue(ctx, id); err != nil {
			w.log.Info("not taken out of the queue", zap.String("code", string(handoff.AsError(err).Code)), zap.Error(err))
			return nil
		}
		return func() { w.doubted = false } // they were there
	}
}

// stopQueued takes the words out over a connection that is back, if the caller stopped them meanwhile.
func (w *work) stopQueued() {
	if w.state.Stopping {
		w.do(phase.ActUnqueue)
	}
}

// awaitQueued waits until the queued words have become a turn, over as many connections as it takes.
func (w *work) awaitQueued() func(context.Context) func() {
	at, target, id := w.attached, w.target, w.ID
	unsettled := func(err error) func() {
		return func() {
			w.fail(phase.FactUnsettled, handoff.Fault(handoff.CodeUnknownStart, target.Server, err.Error()))
		}
	}
	return func(ctx context.Context) func() {
		lost := time.Time{}
		for try := 0; ; try++ {
			err := error(handoff.Fault(handoff.CodeUnsupported, target.Server, "its queue cannot be watched"))
			if awaiter, ok := at.Agent.(handoff.Awaiter); ok {
				var turn handoff.TurnID
				turn, err = awaiter.Await(ctx, id)
				switch {
				case err == nil:
					return w.arrived(at, func() { w.adopted(turn) })
				case handoff.AsError(err).Code == handoff.CodeJoined && turn != "":
					return w.arrived(at, func() { w.merged(turn) })
				}
			}
			if lost.IsZero() {
				lost = time.Now()
			}
			switch {
			case ctx.Err() != nil:
				return nil
			case handoff.AsError(err).Code == handoff.CodeNotPending:
				return func() { w.outOfLine(err) }
			case final(err), time.Since(lost) > w.r.patience:
				return unsettled(err)
			case !w.r.pause(ctx, try):
				return nil
			}
			fresh, err := w.reach(ctx, target)
			switch {
			case err == nil:
				at, lost = fresh, time.Time{}
				if !w.report(ctx, w.arrived(fresh, w.stopQueued)) {
					return nil
				}
			case final(err):
				return unsettled(err)
			}
		}
	}
}
