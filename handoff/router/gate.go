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

// A gate is the start gate of a run's thread, as the run sees it.
type gate struct {
	gates  Gates  // Set once; nil: nobody else is there
	holder string // Set once: the run's id
	alone  bool   // the thread was made for the run, and nobody else finds it before it runs
	pass   pass   // the newest
}

// shared reports whether others could start a turn in the thread.
func (g gate) shared() bool { return g.gates != nil && !g.alone }

// take asks for the gate of a thread. An error leaves open whether it was given.
func (g *gate) take(ctx context.Context, thread handoff.Target) error {
	g.pass = pass{thread: thread}
	asked := time.Now()
	now, err := g.gates.TakeGate(ctx, thread, g.holder)
	if err != nil {
		return handoff.Because(handoff.CodeStoreDown, "", err)
	}
	g.pass = pass{thread: thread, asked: asked, waits: now.Holder != g.holder, last: now.Last}
	return nil
}

// attach attaches a thread and asks for its gate meanwhile, unless the run has it. What was attached before a turn
// began which it does not tell of is attached again. The pass counts also with an error.
func (g *gate) attach(ctx context.Context, by *agents, thread handoff.Target) (handoff.Attached, error) {
	if g.gates == nil {
		return by.attach(ctx, thread)
	}
	taken := make(chan error, 1)
	if g.pass.lets(thread, time.Now(), passFresh) {
		taken <- nil
	} else {
		go func() { taken <- g.take(ctx, thread) }()
	}
	at, err := by.attach(ctx, thread)
	if refused := <-taken; refused != nil {
		err = refused
	}
	if err == nil && g.pass.missed(at) {
		at, err = by.again(ctx, thread)
	}
	return at, err
}

// awaitPass asks for the gate that another instance has, again and again until the run has it.
func (r *run) awaitPass(ctx context.Context) (phase.Fact, *handoff.Error) {
	g := r.gate
	current := r.unlocked(ctx, func() {
		for had := g.pass; g.pass.waits && r.router.pause(ctx, 0); {
			if g.take(ctx, had.thread) != nil {
				g.pass = had
			}
		}
	})
	if r.gate.pass = g.pass; !current {
		r.openGate()
	}
	return phase.FactTurnOver, nil
}

// openGate lets others start turns in the thread, beside the loop. Where nothing comes of it, the gate opens by itself.
func (r *run) openGate() {
	g, last := r.gate, r.turn
	r.gate.pass = pass{}
	if g.gates == nil || g.pass.thread.Thread == "" {
		return
	}
	r.io.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ioCtx), storeTimeout)
		defer cancel()
		if err := g.gates.FreeGate(ctx, g.pass.thread, g.holder, last); err != nil {
			r.log.Debug("the start gate of a thread opens by itself", zap.Error(err))
		}
	})
}
