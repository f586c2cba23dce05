package router

import (
	"context"
	"switchboard/handoff"
	"switchboard/handoff/phase"
)

// join waits for the lane that other work of ours holds: until it is free, or until the holder, if it
// works for the same caller, runs a turn that can take the words.
func (w *work) join() func(context.Context) func() {
	key, refused, apart := w.awaited, w.joined.turn, w.req.Mode != handoff.ModeNow
	return func(ctx context.Context) func() {
		told := false
		for {
			v := w.r.lanes.look(key, w.ID, w.caller)
			joinable := v.same && !apart && (v.turn == "" || (v.turn != refused && v.control != nil))
			switch {
			case v.mine:
				return func() {
					w.claims, w.awaited, w.waits = append(w.claims, key), "", handoff.WaitsNot
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
	if w.waits != handoff.WaitsNot {
		return
	}
	w.waits = handoff.WaitsOurs
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
	v, input := w.joined, w.req.Input
	w.before = v.turn
	write := w.dispatch()
	return func(ctx context.Context) func() {
		if err := write(ctx); err != nil {
			return func() { w.fail(phase.FactStartRefused, err) }
		}
		err := v.control.Steer(ctx, v.turn, input)
		if err == nil {
			return func() {
				w.publish(handoff.RunSteered{Into: handoff.RunID(v.holder)})
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
	w.waits = handoff.WaitsTheirs
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
