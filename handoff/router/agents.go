package router

import (
	"context"
	"slices"
	"sync"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// agents are what was attached for a run, ahead or by the run itself.
type agents struct {
	fleet handoff.Fleet // Set once
	ahead *prefetch     // Set once: what was attached ahead; nil: nothing

	mu   sync.Mutex
	open []handoff.Agent // Guarded by mu: not closed, oldest first
	used bool            // Guarded by mu: what was attached ahead is among them, or was
}

// attach attaches a thread, or takes what was attached ahead, once.
func (a *agents) attach(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	if a.ahead != nil {
		if at, ok := a.ahead.attached(ctx, t); ok {
			a.mu.Lock()
			first := !a.used
			a.used = true
			a.mu.Unlock()
			if first {
				return a.hold(at, nil)
			}
		}
	}
	return a.hold(a.fleet.Attach(ctx, t))
}

// again attaches exactly the thread asked for, afresh.
func (a *agents) again(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	at, err := a.hold(a.fleet.Attach(ctx, t))
	switch {
	case err != nil:
		return handoff.Attached{}, err
	case at.Target.Thread != t.Thread:
		return handoff.Attached{}, handoff.Fault(handoff.CodeSessionMismatch, t.Server, "got "+at.Target.Thread)
	}
	return at, nil
}

// lookFor attaches the thread afresh and asks it for the turn that a start with an id may have made.
func (a *agents) lookFor(
	ctx context.Context, t handoff.Target, after handoff.TurnID, id string,
) (handoff.Attached, handoff.TurnID, error) {
	at, err := a.again(ctx, t)
	if err != nil {
		return at, "", err
	}
	reconciler, ok := at.Agent.(handoff.Reconciler)
	if !ok {
		return at, "", handoff.Fault(handoff.CodeUnknownStart, t.Server, "this kind of server cannot tell")
	}
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	turn, err := reconciler.Reconcile(ctx, after, id)
	// The connection was lost again, not the answer.
	if err != nil && handoff.AsError(err).Code == handoff.CodeUnknownStart {
		err = handoff.Because(handoff.CodeAgentGone, t.Server, err)
	}
	return at, turn, err
}

// hold keeps what was attached until it is let go.
func (a *agents) hold(at handoff.Attached, err error) (handoff.Attached, error) {
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.open = append(a.open, at.Agent)
	}
	return at, err
}

// former lets go of all but the newest, which the caller closes.
func (a *agents) former() []handoff.Agent {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := max(len(a.open)-1, 0)
	old := slices.Clone(a.open[:n])
	a.open = a.open[n:]
	return old
}

// end closes all of them, and what was attached ahead and not used.
func (a *agents) end(log *zap.Logger) {
	if a.ahead != nil {
		<-a.ahead.ready
	}
	a.mu.Lock()
	old := a.open
	if a.ahead != nil && a.ahead.at.Agent != nil && !a.used {
		old = append(old, a.ahead.at.Agent)
	}
	a.open, a.used = nil, true
	a.mu.Unlock()
	closeAgents(log, old)
}

func closeAgents(log *zap.Logger, old []handoff.Agent) {
	for _, agent := range old {
		if err := agent.Close(); err != nil {
			log.Debug("detach failed", zap.Error(err))
		}
	}
}
