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
	// leaseFor is how old a lease may be when a start is sent. The start may take [ioTimeout] to arrive, and the gate
	// is still held then.
	leaseFor = ledger.GateFor - ioTimeout
	// leaseFresh is how old a lease may be before the start is written to the ledger, which takes at most
	// [storeTimeout].
	leaseFresh = leaseFor - storeTimeout
)

// Gates keeps the start gates of threads in a store; see [ledger.Gate].
type Gates interface {
	// TakeGate takes a gate, unless somebody else holds it. It returns the gate afterwards.
	TakeGate(ctx context.Context, thread handoff.Target, holder string) (ledger.Gate, error)
	// FreeGate frees a gate that the holder holds, and stores which turn began; "": it is not known.
	FreeGate(ctx context.Context, thread handoff.Target, holder string, last handoff.TurnID) error
}

// A lease is the answer to a run's newest request for the start gate of its thread. The zero lease has not asked.
type lease struct {
	thread    handoff.Target
	askedAt   time.Time      // right before the request
	elsewhere bool           // another instance holds the gate
	last      handoff.TurnID // the newest turn that began under the gate; "": not known
}

// valid reports whether the lease is of this thread, holds the gate, and is younger than age.
func (p lease) valid(thread handoff.Target, now time.Time, age time.Duration) bool {
	return p.thread == thread && !p.elsewhere && handoff.Passed(p.askedAt, now) < age
}

// missed reports whether the newest turn of the gate is missing in an attachment. It may run.
func (p lease) missed(at handoff.Attached) bool {
	return !p.elsewhere && p.last != "" && p.last != at.Newest && p.last != at.Running
}

// A gate is the start gate of a run's thread, as the run sees it.
type gate struct {
	gates  Gates  // Set once; nil: there is one instance
	holder string // Set once: the run's id
	alone  bool   // the thread was made for the run, and nobody else knows it before its turn runs
	lease  lease  // the newest
}

// shared reports whether others could start a turn in the thread.
func (g gate) shared() bool { return g.gates != nil && !g.alone }

// take asks for the gate of a thread. After an error it is not known whether the run holds it.
func (g *gate) take(ctx context.Context, thread handoff.Target) error {
	g.lease = lease{thread: thread}
	asked := time.Now()
	now, err := g.gates.TakeGate(ctx, thread, g.holder)
	if err != nil {
		return handoff.StoreDown(err)
	}
	g.lease = lease{thread: thread, askedAt: asked, elsewhere: now.Holder != g.holder, last: now.Last}
	return nil
}

// attach attaches a thread, and asks for its gate at the same time, unless the lease is fresh. If the gate's newest
// turn is missing in the attachment, it attaches once more. The lease is set also if attach returns an error.
func (g *gate) attach(ctx context.Context, by *agents, thread handoff.Target) (handoff.Attached, error) {
	if g.gates == nil {
		return by.attach(ctx, thread)
	}
	taken := make(chan error, 1)
	if g.lease.valid(thread, time.Now(), leaseFresh) {
		taken <- nil
	} else {
		go func() { taken <- g.take(ctx, thread) }()
	}
	at, err := by.attach(ctx, thread)
	if refused := <-taken; refused != nil {
		err = refused
	}
	if err == nil && g.lease.missed(at) {
		at, err = by.again(ctx, thread)
	}
	return at, err
}

// awaitLease asks for the gate, which another instance holds, until the run has it.
func (r *run) awaitLease(ctx context.Context) (phase.Fact, *handoff.Error) {
	g := r.gate
	current := r.unlocked(ctx, func() {
		for had := g.lease; g.lease.elsewhere && r.router.cfg.Pause(ctx, 0); {
			if g.take(ctx, had.thread) != nil {
				g.lease = had
			}
		}
	})
	if r.gate.lease = g.lease; !current {
		r.openGate()
	}
	return phase.FactTurnOver, nil
}

// openGate frees the gate, beside the loop. If that fails, the gate opens when the lease expires.
func (r *run) openGate() {
	g, last := r.gate, r.turn
	r.gate.lease = lease{}
	if g.gates == nil || g.lease.thread.Thread == "" {
		return
	}
	r.io.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ioCtx), storeTimeout)
		defer cancel()
		if err := g.gates.FreeGate(ctx, g.lease.thread, g.holder, last); err != nil {
			r.log.Debug("the start gate of a thread opens by itself", zap.Error(err))
		}
	})
}
