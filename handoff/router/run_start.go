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

// notedWithin bounds how long the ledger may take to note words; after that the caller is told that it cannot. Together
// with the 1.5 s in which a result would be the answer, the caller hears nothing for 3.5 s at most.
const notedWithin = 2 * time.Second

// start starts the turn in the thread. It tries once.
func (r *run) start(ctx context.Context) (phase.Fact, *handoff.Error) {
	// A lease that was taken too long ago is taken again.
	if g := r.gate; g.shared() && !g.lease.valid(r.target, time.Now(), leaseFresh) {
		target, had := r.target, g.lease.last
		var err error
		current := r.unlocked(ctx, func() { err = g.take(ctx, target) })
		r.gate.lease = g.lease
		switch {
		case !current:
			r.openGate()
			return phase.FactNothing, nil
		case err != nil:
			return phase.FactStartRefused, handoff.AsError(err)
		// The gate names a new turn that the attachment does not show. (attach has seen to the one that it named
		// before.)
		case g.lease.elsewhere || g.lease.last != had && g.lease.missed(r.attached):
			r.attached.Running = "" // the next attachment has the id of the running turn
			r.wait.reason = handoff.WaitsTheirs
			return phase.FactStartBusy, nil
		}
	}
	r.advance(handoff.StatusDispatching)
	agent, beside := r.attached.Agent, slices.Concat(r.req.Context, r.extra)
	r.attempt.before = r.attached.Newest
	if fact, fault, ok := r.dispatch(ctx); !ok {
		return fact, fault
	}
	target, g := r.target, r.gate
	var id handoff.TurnID
	var err error
	if !r.limited(ctx, func(ctx context.Context) {
		err = r.router.act(func() (err error) {
			if g.shared() && !g.lease.valid(target, time.Now(), leaseFor) { // the process was suspended
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
			r.attached.Running = "" // the next attachment has its id
			r.wait.reason = handoff.WaitsTheirs
			return phase.FactStartBusy, nil
		case handoff.CodeSessionInUse:
			return r.heldElsewhere(e)
		case handoff.CodeSessionGone:
			return phase.FactThreadGone, e
		case handoff.CodeUnreachable: // the attachment may have been closed or lost meanwhile
			return phase.FactStartUnsent, e
		}
		return phase.FactStartRefused, e
	}
	// The server put the words into a running turn of somebody else.
	if id == r.attached.Newest || id == r.attached.Running {
		return r.merged(id)
	}
	r.turn = id
	return phase.FactStarted, nil
}

// merged makes the run follow a turn of somebody else, into which the server put the words.
func (r *run) merged(id handoff.TurnID) (phase.Fact, *handoff.Error) {
	if id == "" {
		return phase.FactStartUnknown, handoff.Fault(handoff.CodeUnknownStart, r.target.Server, "joined a turn without an id")
	}
	r.turn = id
	r.show(func(rec *handoff.Record) { rec.Why = handoff.WhyMerged })
	return phase.FactMerged, nil
}

// dispatch writes to the ledger that the words are about to be sent. ok is false if they must not be: the ledger does
// not have the step, or the action is no longer the current one; then the fact is what came of the start.
func (r *run) dispatch(ctx context.Context) (fact phase.Fact, fault *handoff.Error, ok bool) {
	try := &r.attempt
	try.number = max(try.number, 1)
	// To another thread it is a second attempt, or the ledger would keep the first thread.
	if r.state.Again || try.target != (handoff.Target{}) && try.target != r.target {
		try.number = 2
	}
	try.target = r.target
	r.writer.setBody(ledger.Body{Prompt: handoff.InputText(r.req.Input)})
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
	_ = r.caller.registry.keepRequest(r.ID, "") // "" always has room
	r.step(phase.FactNoted, nil)
	return phase.FactNothing, nil, ctx.Err() == nil
}

// note writes to the ledger, beside the loop, that words were accepted and not sent yet. The caller is promised that
// they will be, also if this process is killed.
func (r *run) note() {
	if r.writer == nil {
		r.step(phase.FactNoted, nil)
		return
	}
	if r.wait.noting {
		return
	}
	whole := encodeRequest(r.req)
	if e := r.caller.registry.keepRequest(r.ID, whole); e != nil {
		r.step(phase.FactUnnoted, e)
		return
	}
	r.wait.noting = true
	target := r.target
	if target == (handoff.Target{}) {
		target = handoff.Target{Server: r.req.Target.Server, Thread: r.req.Target.Thread}
	}
	r.writer.setBody(ledger.Body{Prompt: handoff.InputText(r.req.Input), Request: whole})
	facts := r.facts(target)
	r.io.Go(func() {
		ctx, cancel := context.WithTimeout(r.ioCtx, notedWithin)
		defer cancel()
		err := r.writer.note(ctx, facts)
		for try := 0; err != nil && retryable(err) && r.router.cfg.Pause(ctx, try); try++ {
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

// unwritten returns the error of a step that the ledger did not take: [handoff.CodeStoreDown] if it may take it later.
func unwritten(ctx context.Context, err error) error {
	if retryable(err) || ctx.Err() != nil {
		return handoff.StoreDown(err)
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
			if code != handoff.CodeOverloaded && code != handoff.CodeAgentGone || !r.router.cfg.Pause(ctx, try) {
				return
			}
		}
	})
}

// join waits for a thread that another run of this process holds: until the thread is free, or until that run, if it is
// of the same caller, has a turn that can take the words.
func (r *run) join(ctx context.Context) (phase.Fact, *handoff.Error) {
	key, refused := r.claim.awaited, r.wait.holder.turn
	for queued := false; ; {
		v := r.router.cfg.Queues.takeOrWait(key, r.ID, r.caller.who)
		joinable := v.same && r.req.Mode == handoff.ModeNow && (v.turn == "" || (v.turn != refused && v.control != nil))
		switch {
		case v.mine:
			r.claim.held, r.claim.awaited, r.wait.reason = append(r.claim.held, key), "", handoff.WaitsNot
			return phase.FactThreadFree, nil
		case joinable && v.turn != "":
			r.wait.holder, r.target = v, v.target
			r.show(func(rec *handoff.Record) {
				rec.Server, rec.Project, rec.ThreadID, rec.Title, rec.Why = v.target.Server, v.target.Project, v.target.Thread,
					v.title, handoff.WhyAdded
				rec.Into = v.holder
			})
			return phase.FactOursRuns, nil
		case !joinable && !queued:
			queued = true
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

// steer gives the words to the running turn. It tries once. Words that were refused may be sent again; words that may
// have arrived may not.
func (r *run) steer(ctx context.Context) (phase.Fact, *handoff.Error) {
	v := r.wait.holder
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
	// Only a clear refusal proves that the agent did not take them.
	case handoff.CodeAgentGone, handoff.CodeUnknownStart, handoff.CodeInternal:
		return phase.FactSteerUnknown, handoff.Because(handoff.CodeUnknownStart, v.target.Server, e)
	}
	r.show(func(rec *handoff.Record) { rec.Why, rec.Into = "", "" })
	return phase.FactSteerRefused, nil
}

// await watches a turn of somebody else until it ends, and ignores its updates.
func (r *run) await(ctx context.Context) (phase.Fact, *handoff.Error) {
	agent, turn, try := r.attached.Agent, r.attached.Running, r.wait.turns
	r.wait.turns++
	r.wait.reason = handoff.WaitsTheirs
	if turn == "" && r.gate.lease.elsewhere {
		return r.awaitLease(ctx)
	}
	r.openGate()
	r.unlocked(ctx, func() {
		if turn == "" || watchToEnd(ctx, agent, turn) != nil {
			r.router.cfg.Pause(ctx, try)
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
