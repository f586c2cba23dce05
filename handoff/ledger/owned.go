package ledger

import (
	"context"
	"slices"

	"switchboard/handoff"
)

// MaxOwned bounds the threads whose owners are kept. Beyond it the oldest are forgotten; everybody who may use the
// server then sees these threads.
const MaxOwned = 100_000

// Owned says for which caller a thread was made.
type Owned struct {
	Server, Thread string
	Caller         handoff.Caller
}

// Owners knows for which callers threads were made. The store writes the owner together with the
// handoff that is about to use the thread, so before it is used. The first owner of a thread stays.
type Owners interface {
	// Owned returns all owners, the oldest first.
	Owned(ctx context.Context) ([]Owned, error)
}

// Made reports whether a thread with this Why was made for its caller.
func Made(why string) bool {
	return slices.Contains([]string{handoff.WhyNew, handoff.WhyReplaced, handoff.WhyCopy, handoff.WhyAside}, why)
}
