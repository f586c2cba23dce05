package router

import (
	"context"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/phase"
)

const (
	// passFor is how long after it was asked for a pass is good for sending a start, which may take [ioTimeout] to
	// arrive: then the gate is still held.
	passFor = ledger.GateFor - ioTimeout
	// passFresh is how old a pass may be before the ledger is told of the start, which takes [storeTimeout] at most.
	passFresh = passFor - storeTimeout
)

// Gates keep the start gates of threads; see [ledger.Gate].
type Gates interface {
	// TakeGate takes a gate, unless somebody else has it, and returns it as it is then.
	TakeGate(ctx context.Context, thread handoff.Target, holder string) (ledger.Gate, error)
	// FreeGate ends that a holder has a gate. It notes which turn began, "" where that is not known.
	FreeGate(ctx context.Context, thread handoff.Target, holder string, last handoff.TurnID) error
}

// A pass is what a run has of the start gate of its thread. The zero pass has asked for none.
type pass struct {
	thread handoff.Target
	asked  time.Time // before the gate was
	waits  bool      // another instance has it
	last   handoff.TurnID
}

// lets reports whether a turn may be started in the thread that was attached, now and for a time.
func (p pass) lets(thread handoff.Target, now time.Time, age time.Duration) bool {
	return p.thread == thread && !p.waits && now.Sub(p.asked) < age
}

// missed reports whether a turn has begun that what was attached does not tell of: it may run.
func (p pass) missed(at handoff.Attached) bool {
	return !p.waits && p.last != "" && p.last != at.Newest && p.last != at.Running
}

// takePass asks for the gate of a thread. An error leaves open whether it was given.
func (r *run) takePass(ctx context.Context, thread handoff.Target) (pass, error) {
	asked := time.Now()
	g, err := r.router.cfg.Gates.TakeGate(ctx, thread, r.ID)
	if err != nil {
		return pass{thread: thread}, handoff.Because(handoff.CodeStoreDown, "", err)
	}
	return pass{thread: thread, asked: asked, waits: g.Holder != r.ID, last: g.Last}, nil
}

// attachGated attaches the thread and asks for its gate meanwhile, unless the run has it. What was attached before a
// turn began which it does not tell of is attached again. It is called without the lock; the pass counts also with an
// error.
func (r *run) attachGated(ctx context.Context, target handoff.Target, have pass) (handoff.Attached, pass, error) {
	if r.router.cfg.Gates == nil {
		at, err := r.agents.attach(ctx, target)
		return at, pass{}, err
	}
	taken := make(chan error, 1)
	if have.lets(target, time.Now(), passFresh) {
		taken <- nil
	} else {
		go func() {
			var err error
			have, err = r.takePass(ctx, target)
			taken <- err
		}()
	}
	at, err := r.agents.attach(ctx, target)
	if refused := <-taken; refused != nil {
		err = refused
	}
	if err == nil && have.missed(at) {
		at, err = r.agents.again(ctx, target)
	}
	return at, have, err
}

// mayStart takes the gate again where it was taken too long ago, and reports whether the thread that is attached may be
// given a turn. If not, it gives the fact that says so.
func (r *run) mayStart(ctx context.Context) (phase.Fact, *handoff.Error, bool) {
	have, had := r.pass, r.pass.last
	if !r.gated() || have.lets(r.target, time.Now(), passFresh) {
		return phase.FactNothing, nil, true
	}
	target := r.target
	var err error
	current := r.unlocked(ctx, func() { have, err = r.takePass(ctx, target) })
	r.pass = have
	switch {
	case !current:
		r.openGate()
		return phase.FactNothing, nil, false
	case err != nil:
		return phase.FactStartRefused, handoff.AsError(err), false
	// A turn that was known of when the thread was attached is over, or shows in it, as far as that tells.
	case have.waits || have.last != had && have.missed(r.attached):
		r.attached.Running = "" // which turn it is shows when the thread is attached again
		r.wait.reason = handoff.WaitsTheirs
		return phase.FactStartBusy, nil, false
	}
	return phase.FactNothing, nil, true
}

// gated reports whether others could start a turn in the run's thread.
func (r *run) gated() bool { return r.router.cfg.Gates != nil && !r.alone }

// awaitPass asks for the gate that another instance has, again and again until the run has it.
func (r *run) awaitPass(ctx context.Context) (phase.Fact, *handoff.Error) {
	have := r.pass
	current := r.unlocked(ctx, func() {
		for have.waits && r.router.pause(ctx, 0) {
			if asked, err := r.takePass(ctx, have.thread); err == nil {
				have = asked
			}
		}
	})
	if r.pass = have; !current {
		r.openGate()
	}
	return phase.FactTurnOver, nil
}

// leaveGate ends what the run does with the gate, with a fact. Where the router ends while the turn is on its way, the
// gate stays as it is: whoever takes the run up opens it, or its time does.
func (r *run) leaveGate(f phase.Fact, before phase.State) {
	if (f == phase.FactShutdown || f == phase.FactMoved) && before.Phase >= phase.Starting {
		r.pass = pass{}
		return
	}
	r.openGate()
}

// openGate lets others start turns in the thread, beside the loop. Where nothing comes of it, the gate opens by itself.
func (r *run) openGate() {
	had, last := r.pass, r.turn
	r.pass = pass{}
	if r.router.cfg.Gates == nil || had.thread.Thread == "" {
		return
	}
	r.io.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ioCtx), storeTimeout)
		defer cancel()
		if err := r.router.cfg.Gates.FreeGate(ctx, had.thread, r.ID, last); err != nil {
			r.log.Debug("the start gate of a thread opens by itself", zap.Error(err))
		}
	})
}
