package router

import (
	"context"
	"slices"
	"sync"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/work"
)

// agents holds the attachments of a handoff.
type agents struct {
	fleet handoff.Fleet // Set once
	ahead *prefetch     // Set once: may be nil

	mu   sync.Mutex
	open []handoff.Agent // Guarded by mu: not closed, oldest first
	used bool            // Guarded by mu: the attachment of ahead was added to open
	over bool            // Guarded by mu: all were closed, and so are those that come late
}

// attach attaches a thread. The first call uses the prefetch, if that has the thread.
func (a *agents) attach(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	if a.ahead != nil {
		if at, ok := a.ahead.awaitAttached(ctx, t); ok {
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

// again attaches a thread without the prefetch, and fails if the server attaches another one.
func (a *agents) again(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	ctx, cancel := context.WithTimeout(ctx, work.SendTakes)
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

// lookFor attaches a thread again, and asks the agent for the turn that the start of the handoff with this id has
// made; "": it has made none. after is the newest turn before the start.
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
	ctx, cancel := context.WithTimeout(ctx, work.SendTakes)
	defer cancel()
	turn, err := reconciler.Reconcile(ctx, after, id)
	// Only the connection was lost again: the agent may still tell.
	if err != nil && handoff.AsError(err).Code == handoff.CodeUnknownStart {
		err = handoff.Because(handoff.CodeAgentGone, t.Server, err)
	}
	return at, turn, err
}

// hold adds an attachment, unless there is an error, and returns both.
func (a *agents) hold(at handoff.Attached, err error) (handoff.Attached, error) {
	if err == nil {
		a.mu.Lock()
		late := a.over
		if !late {
			a.open = append(a.open, at.Agent)
		}
		a.mu.Unlock()
		if late {
			_ = at.Agent.Close() // nobody follows it
		}
	}
	return at, err
}

// former removes all attachments but the newest, and returns them, for the caller to close.
func (a *agents) former() []handoff.Agent {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := max(len(a.open)-1, 0)
	old := slices.Clone(a.open[:n])
	a.open = a.open[n:]
	return old
}

// end closes all attachments, also that of a prefetch which was not used.
func (a *agents) end(log *zap.Logger) {
	if a.ahead != nil {
		<-a.ahead.ready
	}
	a.mu.Lock()
	old := a.open
	if a.ahead != nil && a.ahead.at.Agent != nil && !a.used {
		old = append(old, a.ahead.at.Agent)
	}
	a.open, a.used, a.over = nil, true, true
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
