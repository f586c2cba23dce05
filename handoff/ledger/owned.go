package ledger

import (
	"context"
	"slices"

	"switchboard/handoff"
)

// MaxOwned bounds of how many threads it is kept for whom they were made; beyond it the oldest are forgotten, and
// seen by everybody who may use their server.
const MaxOwned = 100_000

// Owned says for whom a thread was made.
type Owned struct {
	Server, Thread string
	Caller         handoff.Caller
}

// Owners knows for whom threads were made: each step to dispatching that names such a thread is written with it, so
// that it is known before the thread is used. The first one keeps it.
type Owners interface {
	// Owned returns what is known, the oldest first.
	Owned(ctx context.Context) ([]Owned, error)
}

// Made reports whether a thread that is used for a reason was made for its caller.
func Made(why string) bool {
	return slices.Contains([]string{handoff.WhyNew, handoff.WhyReplaced, handoff.WhyCopy, handoff.WhyAside}, why)
}

// Makes reports whether a step names a thread that was made for its caller.
func (s Step) Makes() bool {
	t := s.Set.Target.Thread
	return s.To == handoff.StatusDispatching && Made(s.Set.Why) && t != "" && t != handoff.NewThread
}
