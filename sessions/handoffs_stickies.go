package sessions

import (
	"context"
	"strings"
	"time"

	"switchboard/handoff"
)

// stickyDoc begins the name of the document of a sticky thread; its server and project follow.
const stickyDoc = "sticky:"

// List returns the sticky threads of a caller, newest first.
func (h *Handoffs) List(ctx context.Context, c handoff.Caller) ([]handoff.Sticky, error) {
	state, err := h.state(ctx, c)
	if err != nil {
		return nil, err
	}
	all, last := []handoff.Sticky{}, time.Time{}
	for name, value := range state.Documents {
		field, is := strings.CutPrefix(name, stickyDoc)
		if !is {
			continue
		}
		sticky, set, ok := decodeSticky(field, value)
		if !ok { // one bad entry must not hide the others
			h.bad(c.String() + " " + name)
			continue
		}
		all = append(all, sticky)
		if set.After(last) {
			last = set
		}
	}
	if time.Since(last) > StickyFor { // the last change renewed the life of all of them
		all = all[:0]
	}
	sortStickies(all)
	return all, nil
}

// Set stores the sticky thread of its server and project. It renews the life of all stickies of the caller.
func (h *Handoffs) Set(ctx context.Context, c handoff.Caller, sticky handoff.Sticky) error {
	field, value, err := encodeSticky(sticky)
	if err != nil {
		return err
	}
	return h.change(ctx, c, func(State) Batch { return Batch{Put: map[string]string{stickyDoc + field: value}} })
}

// Clear forgets the sticky thread of exactly this server and project, if there is one. The target's thread is ignored.
func (h *Handoffs) Clear(ctx context.Context, c handoff.Caller, t handoff.Target) error {
	name := stickyDoc + stickyField(t)
	return h.change(ctx, c, func(s State) Batch {
		if _, ok := s.Documents[name]; !ok {
			return Batch{}
		}
		return Batch{Drop: []string{name}}
	})
}

// change commits the batch that do makes of a caller's state, unless it is empty.
func (h *Handoffs) change(ctx context.Context, c handoff.Caller, do func(State) Batch) error {
	if _, err := CallerName(c); err != nil {
		return err
	}
	s, err := h.take(ctx, c)
	if err != nil {
		return err
	}
	defer s.free()
	for range commitTries {
		if err := s.read(ctx, h.store, c); err != nil {
			return err
		}
		b := do(s.state)
		if len(b.Put)+len(b.Drop) == 0 {
			return nil
		}
		if done, err := s.commit(ctx, h.store, c, b); err != nil || done == Written {
			return err
		}
	}
	return otherWriter()
}
