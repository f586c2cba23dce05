package responses

import (
	"context"
	"strings"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers"
)

// asidePrefix begins the ids of ephemeral threads, which are never stored.
const asidePrefix = "aside_"

func isAside(thread string) bool { return strings.HasPrefix(thread, asidePrefix) }

// asides is a store that keeps ephemeral threads in memory, and all others in the store that it wraps.
type asides struct {
	threads.Store                 // Set once
	memory        *threads.Memory // Set once
	name          string          // Set once: name of the server
}

// fault names the server in an error of a store that does not answer: for a caller, the machine does not answer.
func (a asides) fault(err error) error {
	if err != nil && handoff.AsError(err).Code == handoff.CodeUnreachable {
		return handoff.Because(handoff.CodeUnreachable, a.name, err)
	}
	return err
}

// Advance implements [threads.Store].
func (a asides) Advance(ctx context.Context, s threads.Step) (threads.Result, error) {
	if isAside(threads.ThreadOf(s)) {
		return a.memory.Advance(ctx, s)
	}
	r, err := a.Store.Advance(ctx, s)
	return r, a.fault(err)
}

// Read implements [threads.Store].
func (a asides) Read(ctx context.Context, owner, thread string) (threads.Record, error) {
	if isAside(thread) {
		return a.memory.Read(ctx, owner, thread)
	}
	r, err := a.Store.Read(ctx, owner, thread)
	return r, a.fault(err)
}

// CreateEphemeral makes a thread that ends with its attachment and that nobody else finds.
func (c *conn) CreateEphemeral(ctx context.Context, dir string) (handoff.Attached, error) {
	return c.create(ctx, dir, newID("aside"))
}

// ForkEphemeral copies a thread, as [conn.Fork] does, into one that ends with its attachment.
func (c *conn) ForkEphemeral(ctx context.Context, thread string, last handoff.TurnID) (handoff.Attached, error) {
	record, err := c.read(ctx, thread)
	if err != nil {
		return handoff.Attached{}, err
	}
	made, err := c.server.asides.memory.Adopt(record, c.fork(record.Thread, last, "aside"))
	if err != nil {
		return handoff.Attached{}, err
	}
	return c.attached(made.Thread), nil
}

// leave drops an ephemeral thread whose attachment was closed, after its running turn if there is one.
func (s *Server) leave(thread string) {
	if !isAside(thread) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.runs[thread]; r != nil {
		r.detached = true
		return
	}
	s.asides.memory.Drop(thread)
}

var _ servers.Ephemeral = (*conn)(nil)
