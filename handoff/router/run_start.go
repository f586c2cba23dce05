package router

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/phase"
)

// notedWithin bounds how long words wait to be noted before the caller is told that they cannot be: with the
// time in which a result is the answer, three and a half seconds of silence at most.
const notedWithin = 2 * time.Second

// start gives the thread its turn, by one try.
func (r *run) start(ctx context.Context) (phase.Fact, *handoff.Error) {
	// A gate that was taken too long ago is taken again.
	if g := r.gate; g.shared() && !g.pass.lets(r.target, time.Now(), passFresh) {
		target, had := r.target, g.pass.last
		var err error
		current := r.unlocked(ctx, func() { err = g.take(ctx, target) })
		r.gate.pass = g.pass
		switch {
		case !current:
			r.openGate()
			return phase.FactNothing, nil
		case err != nil:
			return phase.FactStartRefused, handoff.AsError(err)
		// A turn that was known of when the thread was attached is over, or shows in it, as far as that tells.
		case g.pass.waits || g.pass.last != had && g.pass.missed(r.attached):
			r.attached.Running = "" // which turn it is shows when the thread is attached again
			r.wait.reason = handoff.WaitsTheirs
			return phase.FactStartBusy, nil
		}
	}
	r.advance(handoff.StatusDispatching)
	agent, beside := r.attached.Agent, slices.Concat(r.req.Context, r.beside)
	r.attempt.before = r.attached.Newest
	if fact, fault, ok := r.dispatch(ctx); !ok {
		return fact, fault
	}
	target, g := r.target, r.gate
	var id handoff.TurnID
	var err error
	if !r.limited(ctx, func(ctx context.Context) {
		err = r.router.act(func() (err error) {
			if g.shared() && !g.pass.lets(target, time.Now(), passFor) { // the process stood still
				return handoff.Fault(handoff.CodeBusy, target.Server, "its start gate may be somebody else's")
			}
			id, err = agent.Start(ctx, handoff.Turn{ID: r.ID, Input: r.req.Input, Context: beside})
			return err
		})
	}) {
		return phase.FactNothing, nil
	}
	if err != nil {
		e := handoff.AsError(err)
		switch e.Code {
		case handoff.CodeJoined:
			return r.merged(id)
		case handoff.CodeUnknownStart, handoff.CodeInternal: // only a clear refusal proves that nothing runs
			return phase.FactStartUnknown, e
		case handoff.CodeBusy:
			r.attached.Running = "" // which one it is shows when the thread is attached again
			r.wait.reason = handoff.WaitsTheirs
			return phase.FactStartBusy, nil
		case handoff.CodeSessionInUse:
			return r.heldElsewhere(e)
		case handoff.CodeSessionGone:
			return phase.FactThreadGone, e
		case handoff.CodeUnreachable: // what was attached may have been closed or lost meanwhile
			return phase.FactStartUnsent, e
		}
		return phase.FactStartRefused, e
	}
	// The server put the words into a turn of somebody else that ran already.
	if id == r.attached.Newest || id == r.attached.Running {
		return r.merged(id)
	}
	r.turn = id
	return phase.FactStarted, nil
}

// merged follows the turn of somebody else that took the words in.
func (r *run) merged(id handoff.TurnID) (phase.Fact, *handoff.Error) {
	if id == "" {
		return phase.FactStartUnknown, handoff.Fault(handoff.CodeUnknownStart, r.target.Server, "joined a turn without an id")
	}
	r.turn = id
	r.show(func(rec *handoff.Record) { rec.Why = handoff.WhyMerged })
	return phase.FactMerged, nil
}

// dispatch writes to the ledger that the words are about to be sent; without that they are not.
func (r *run) dispatch(ctx context.Context) (phase.Fact, *handoff.Error, bool) {
	try := &r.attempt
	try.number = max(try.number, 1)
	// A second attempt; else the ledger would keep the former thread.
	if r.state.Again || try.target != (handoff.Target{}) && try.target != r.target {
		try.number = 2
	}
	try.target = r.target
	r.writer.words(ledger.Body{Prompt: handoff.InputText(r.req.Input)})
	attempt, facts := try.number, r.facts(r.target)
	facts.Watermark = try.before
	var err error
	if !r.unlocked(ctx, func() {
		limited, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		limited, span := handoff.BeginSpan(limited, "dispatch")
		if err = r.writer.dispatch(limited, attempt, facts); err != nil {
			err = unwritten(limited, err)
		}
		span.End(handoff.CodeOf(err))
	}) {
		return phase.FactNothing, nil, false
	}
	if err != nil {
		return phase.FactStartRefused, handoff.AsError(err), false
	}
	_ = r.caller.registry.wait(r.ID, "") // there is always room for nothing
	r.step(phase.FactNoted, nil)
	return phase.FactNothing, nil, ctx.Err() == nil
}

// note puts it into the ledger that words were taken which are not sent yet: what the caller is told of them is
// a promise, which a process that is killed must not forget. It is done beside the loop.
func (r *run) note() {
	if r.writer == nil {
		r.step(phase.FactNoted, nil)
		return
	}
	if r.wait.noting {
		return
	}
	whole := waitingOf(r.req)
	if e := r.caller.registry.wait(r.ID, whole); e != nil {
		r.step(phase.FactUnnoted, e)
		return
	}
	r.wait.noting = true
	target := r.target
	if target == (handoff.Target{}) {
		target = handoff.Target{Server: r.req.Target.Server, Thread: r.req.Target.Thread}
	}
	r.writer.words(ledger.Body{Prompt: handoff.InputText(r.req.Input), Request: whole})
	facts := r.facts(target)
	r.io.Go(func() {
		ctx, cancel := context.WithTimeout(r.ioCtx, notedWithin)
		defer cancel()
		err := r.writer.note(ctx, facts)
		for try := 0; err != nil && retried(err) && r.router.pause(ctx, try); try++ {
			err = r.writer.note(ctx, facts)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.wait.noting = false
		if err != nil {
			r.step(phase.FactUnnoted, handoff.AsError(unwritten(ctx, err)))
			return
		}
		r.step(phase.FactNoted, nil)
	})
}

// unwritten says what it means that the ledger did not take a step.
func unwritten(ctx context.Context, err error) error {
	if retried(err) || ctx.Err() != nil {
		return handoff.Because(handoff.CodeStoreDown, "", err)
	}
	return err
}

// interrupt stops the turn, beside the loop.
func (r *run) interrupt() {
	controls, ok := r.attached.Agent.(handoff.Controls)
	if !ok {
		r.log.Info("the agent cannot be interrupted")
		return
	}
	turn := r.turn
	r.io.Go(func() {
		ctx, cancel := context.WithTimeout(r.ioCtx, ioTimeout)
		defer cancel()
		for try := 0; ; try++ {
			err := controls.Interrupt(ctx, turn)
			if err == nil {
				return
			}
			code := handoff.AsError(err).Code
			r.log.Info("interrupt failed", zap.String("code", string(code)), zap.Error(err))
			// A second interrupt does no harm.
			if code != handoff.CodeOverloaded && code != handoff.CodeAgentGone || !r.router.pause(ctx, try) {
				return
			}
		}
	})
}

// join waits for the thread that other work of ours uses: until it is free, or until the one that uses it, if it
// works for the same caller, runs a turn that can take the words.
func (r *run) join(ctx context.Context) (phase.Fact, *handoff.Error) {
	key, refused := r.claim.awaited, r.wait.joined.turn
	for told := false; ; {
		v := r.router.cfg.Queues.look(key, r.ID, r.caller.who)
		joinable := v.same && r.req.Mode == handoff.ModeNow && (v.turn == "" || (v.turn != refused && v.control != nil))
		switch {
		case v.mine:
			r.claim.held, r.claim.awaited, r.wait.reason = append(r.claim.held, key), "", handoff.WaitsNot
			return phase.FactThreadFree, nil
		case joinable && v.turn != "":
			r.wait.joined, r.target = v, v.target
			r.show(func(rec *handoff.Record) {
				rec.Server, rec.Project, rec.ThreadID, rec.Title, rec.Why = v.target.Server, v.target.Project, v.target.Thread,
					v.title, handoff.WhyAdded
				rec.Into = v.holder
			})
			return phase.FactOursRuns, nil
		case !joinable && !told:
			told = true
			if r.wait.reason != handoff.WaitsNot {
				break
			}
			r.wait.reason = handoff.WaitsOurs
			if v.title != "" {
				r.show(func(rec *handoff.Record) { rec.Title = v.title })
			}
			r.step(phase.FactQueued, nil)
		}
		if !r.unlocked(ctx, func() {
			select {
			case <-v.changed:
			case <-ctx.Done():
			}
		}) {
			return phase.FactNothing, nil
		}
	}
}

// steer gives the words to the turn that runs. It is one try; refused words may be given again, those
// whose fate is not known may not.
func (r *run) steer(ctx context.Context) (phase.Fact, *handoff.Error) {
	v := r.wait.joined
	r.attempt.before = v.turn
	if fact, fault, ok := r.dispatch(ctx); !ok {
		return fact, fault
	}
	var err error
	if !r.limited(ctx, func(ctx context.Context) {
		err = r.router.act(func() error { return v.control.Steer(ctx, v.turn, r.req.Input) })
	}) {
		return phase.FactNothing, nil
	}
	if err == nil {
		r.publish(handoff.RunSteered{Into: handoff.RunID(v.holder)})
		return phase.FactSteered, nil
	}
	switch e := handoff.AsError(err); e.Code {
	// Only a clear refusal proves that they were not taken.
	case handoff.CodeAgentGone, handoff.CodeUnknownStart, handoff.CodeInternal:
		return phase.FactSteerUnknown, handoff.Because(handoff.CodeUnknownStart, v.target.Server, e)
	}
	r.show(func(rec *handoff.Record) { rec.Why, rec.Into = "", "" })
	return phase.FactSteerRefused, nil
}

// await watches a turn that is not ours until it ends. What it reports is not for this caller.
func (r *run) await(ctx context.Context) (phase.Fact, *handoff.Error) {
	agent, turn, try := r.attached.Agent, r.attached.Running, r.wait.turns
	r.wait.turns++
	r.wait.reason = handoff.WaitsTheirs
	if turn == "" && r.gate.pass.waits {
		return r.awaitPass(ctx)
	}
	r.openGate()
	r.unlocked(ctx, func() {
		if turn == "" || watchToEnd(ctx, agent, turn) != nil {
			r.router.pause(ctx, try)
		}
	})
	return phase.FactTurnOver, nil
}

// watchToEnd waits for the end of somebody else's turn.
func watchToEnd(ctx context.Context, agent handoff.Agent, turn handoff.TurnID) error {
	follow := agent.Follow
	if w, ok := agent.(handoff.Bystander); ok {
		follow = w.Watch
	}
	for u, err := range follow(ctx, turn) {
		if err != nil {
			return err
		}
		if _, ended := u.(handoff.TurnEnded); ended {
			return nil
		}
	}
	return handoff.Fault(handoff.CodeAgentGone, "", "the updates ended before the turn")
}
