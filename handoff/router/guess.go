package router

import (
	"context"
	"switchboard/handoff"
	"switchboard/handoff/tools"
	"time"

	"go.uber.org/zap"
)

// maxGuesses bounds how many threads a call attaches ahead; more are attached when their request comes.
const maxGuesses = 8

// guessKept is how long a thread that was attached ahead waits for its request, or is fresh enough to use.
const guessKept = 10 * time.Second

// A guess attaches the thread of a request that is still being written. It runs nothing and makes nothing:
// a wrong one costs a resume.
type guess struct {
	args  tools.CodexArguments // Set once: where the request seems to go
	taken chan struct{}        // holds a token when the request came for it
	found chan struct{}        // closed when target and err are set
	ready chan struct{}        // closed when at is set, or will never be

	target handoff.Target   // Set before found closes: the resolved names
	err    error            // Set before found closes
	thread handoff.Target   // Set before ready closes: what was attached
	at     handoff.Attached // Set before ready closes; no Agent: nothing was attached
	when   time.Time
}

// hint attaches ahead once the target is readable. It is repeated with every piece of the arguments.
func (s *serving) hint(h handoff.Hint) {
	if h.Tool != tools.Codex && h.Tool != tools.QueueNext || s.guesses[h.CallID] != nil || len(s.guesses) >= maxGuesses {
		return
	}
	args, ok := tools.ReadTarget(h.Partial)
	if !ok {
		return
	}
	g := &guess{args: args, taken: make(chan struct{}, 1), found: make(chan struct{}), ready: make(chan struct{})}
	s.guesses[h.CallID] = g
	forget := func() { s.call.post(func(s *serving) { delete(s.guesses, h.CallID) }) }
	if !s.r.start(func(ctx context.Context) { defer forget(); s.r.attachAhead(ctx, s.grant, s.book, g) }) {
		delete(s.guesses, h.CallID)
	}
}

// claim takes the guess of a request that has come, if it was right so far. A wrong one is let go.
func (s *serving) claim(callID string, args tools.CodexArguments) *guess {
	g := s.guesses[callID]
	delete(s.guesses, callID)
	if g == nil || g.args.Server != args.Server || g.args.Thread != args.Thread {
		return nil
	}
	select {
	case g.taken <- struct{}{}:
		return g
	default:
		return nil
	}
}

// attachAhead resolves and attaches for a guess, and lets go of it when no request comes for it.
func (r *Router) attachAhead(ctx context.Context, who handoff.Grant, b *book, g *guess) {
	limited, cancel := context.WithTimeout(ctx, ioTimeout)
	r.attachGuess(limited, who, b, g)
	cancel()
	if g.at.Agent == nil {
		return
	}
	wait := time.NewTimer(guessKept)
	defer wait.Stop()
	select {
	case <-g.taken: // its work has it now, and closes it
		return
	case <-wait.C:
	case <-ctx.Done():
	}
	select {
	case <-g.taken:
	case g.taken <- struct{}{}: // from here on nobody can take it
		if err := g.at.Agent.Close(); err != nil {
			r.log.Debug("detach failed", zap.Error(err))
		}
	}
}

func (r *Router) attachGuess(ctx context.Context, who handoff.Grant, b *book, g *guess) {
	defer close(g.ready)
	name, isCopy := cutPrefixFold(g.args.Thread, copyOf)
	g.target, g.err = r.fleet.Resolve(ctx, who, handoff.Target{Server: g.args.Server, Thread: name})
	close(g.found)
	t := g.target
	if g.err != nil || isCopy || t.Thread == handoff.NewThread {
		return
	}
	if t.Thread == "" {
		if err := r.loadStickies(ctx, who.Caller, b); err != nil {
			return
		}
		s, ok := b.sticky(keyOf(t))
		if !ok {
			return
		}
		t.Thread = s.Target.Thread
	}
	at, err := r.fleet.Attach(ctx, t)
	if err != nil {
		return // the request finds out by itself, and says it
	}
	g.thread, g.at, g.when = t, at, time.Now()
}

// resolved returns the names as they were resolved ahead.
func (g *guess) resolved(ctx context.Context) (handoff.Target, error) {
	select {
	case <-g.found:
		return g.target, g.err
	case <-ctx.Done():
		return handoff.Target{}, handoff.Fault(handoff.CodeUnreachable, g.args.Server, "not resolved in time")
	}
}

// attached returns the thread if it was attached ahead, is the one that is wanted, and nothing ran in it.
func (g *guess) attached(ctx context.Context, t handoff.Target) (handoff.Attached, bool) {
	select {
	case <-g.ready:
		fits := g.at.Agent != nil && g.thread == t && g.at.Running == "" && time.Since(g.when) < guessKept
		return g.at, fits
	case <-ctx.Done():
		return handoff.Attached{}, false
	}
}
