package router

import (
	"context"

	"switchboard/handoff"
	"switchboard/handoff/phase"
)

// join waits for the thread that other work of ours uses: until it is free, or until the one that uses it, if it
// works for the same caller, runs a turn that can take the words.
func (r *run) join(ctx context.Context) (phase.Fact, *handoff.Error) {
	key, refused := r.awaited, r.joined.turn
	for told := false; ; {
		v := r.router.queues.look(key, r.ID, r.caller.who)
		joinable := v.same && r.req.Mode == handoff.ModeNow && (v.turn == "" || (v.turn != refused && v.control != nil))
		switch {
		case v.mine:
			r.claims, r.awaited, r.waits = append(r.claims, key), "", handoff.WaitsNot
			return phase.FactThreadFree, nil
		case joinable && v.turn != "":
			r.joined, r.target = v, v.target
			r.show(func(rec *handoff.Record) {
				rec.Server, rec.Project, rec.ThreadID, rec.Title, rec.Why = v.target.Server, v.target.Project, v.target.Thread, v.title, handoff.WhyAdded
			})
			return phase.FactOursRuns, nil
		case !joinable && !told:
			told = true
			r.queued(v)
		}
		if !r.outside(ctx, func() {
			select {
			case <-v.changed:
			case <-ctx.Done():
			}
		}) {
			return phase.FactNothing, nil
		}
	}
}

// queued shows that the words wait.
func (r *run) queued(v queueView) {
	if r.waits != handoff.WaitsNot {
		return
	}
	r.waits = handoff.WaitsOurs
	if v.title != "" {
		r.show(func(rec *handoff.Record) { rec.Title = v.title })
	}
	r.step(phase.FactQueued, nil)
}

// steer gives the words to the turn that runs. It is one try; refused words may be given again, those
// whose fate is not known may not.
func (r *run) steer(ctx context.Context) (phase.Fact, *handoff.Error) {
	v := r.joined
	r.before = v.turn
	if fact, fault, ok := r.dispatch(ctx); !ok {
		return fact, fault
	}
	var err error
	if !r.limited(ctx, func(ctx context.Context) { err = v.control.Steer(ctx, v.turn, r.req.Input) }) {
		return phase.FactNothing, nil
	}
	if err == nil {
		r.publish(handoff.RunSteered{Into: handoff.RunID(v.holder)})
		return phase.FactSteered, nil
	}
	switch e := handoff.AsError(err); e.Code {
	case handoff.CodeAgentGone, handoff.CodeUnknownStart, handoff.CodeInternal: // only a clear refusal proves that they were not taken
		return phase.FactSteerUnknown, handoff.Because(handoff.CodeUnknownStart, v.target.Server, e)
	}
	r.show(func(rec *handoff.Record) { rec.Why = "" })
	return phase.FactSteerRefused, nil
}

// await watches a turn that is not ours until it ends. What it reports is not for this caller.
func (r *run) await(ctx context.Context) (phase.Fact, *handoff.Error) {
	agent, turn, try := r.attached.Agent, r.attached.Running, r.awaits
	r.awaits++
	r.waits = handoff.WaitsTheirs
	r.outside(ctx, func() {
		if turn == "" || watchToEnd(ctx, agent, turn) != nil {
			r.router.pause(ctx, try)
		}
	})
	return phase.FactTurnOver, nil
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
