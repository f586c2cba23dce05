package threads

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"switchboard/handoff"
)

// A Memory is a store in memory.
type Memory struct {
	mu      sync.Mutex
	threads map[string]*kept // Guarded by mu
}

// kept is one thread with its turns and items.
type kept struct {
	Thread
	turns []Turn // oldest first
	items []Item // without the parent's
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{threads: map[string]*kept{}} }

// Advance makes one step.
func (m *Memory) Advance(_ context.Context, s Step) (Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, _ := See(memoryRows(m.threads), s) // reading memory never fails
	c, err := Decide(v, s)
	if err != nil {
		return Result{}, err
	}
	m.write(c)
	return c.Result, nil
}

// Adopt makes a copy of a thread of another store. The copy has all of its items itself, and no parent.
func (m *Memory) Adopt(r Record, s Fork) (Result, error) {
	v, _ := See(memoryRows{r.Thread.ID: {Thread: r.Thread, turns: r.Turns}}, s) // reading memory never fails
	c, err := Decide(v, s)
	if err != nil {
		return Result{}, err
	}
	t := c.Thread
	own := &kept{items: slices.Clone(r.Items[:t.Items])}
	for _, turn := range r.Turns {
		if turn.Until <= t.Items {
			turn.Thread = t.ID
			own.turns = append(own.turns, turn)
		}
	}
	t.Parent, t.ForkAt, t.Depth = "", 0, 0
	own.Thread = t
	m.mu.Lock()
	defer m.mu.Unlock()
	m.threads[t.ID] = own
	return Result{Thread: t, Forked: true}, nil
}

// Drop deletes a thread, of which there must be no copies.
func (m *Memory) Drop(thread string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.threads, thread)
}

// memoryRows reads the threads of a [Memory], whose mu is held.
type memoryRows map[string]*kept

// Thread implements [Rows].
func (m memoryRows) Thread(id string) (t Thread, _ error) {
	if k := m[id]; k != nil {
		t = k.Thread
	}
	return t, nil
}

// Turn implements [Rows].
func (m memoryRows) Turn(thread, id string) (t Turn, _ error) {
	if k := m[thread]; k != nil {
		if i := slices.IndexFunc(k.turns, func(t Turn) bool { return t.ID == id }); i >= 0 {
			t = k.turns[i]
		}
	}
	return t, nil
}

// write makes a change. The caller holds mu.
func (m *Memory) write(c Change) {
	for _, t := range c.Threads {
		if k := m.threads[t.ID]; k != nil {
			k.Thread = t
		} else {
			m.threads[t.ID] = &kept{Thread: t}
		}
	}
	for _, t := range c.Turns {
		k := m.threads[t.Thread]
		if i := slices.IndexFunc(k.turns, func(old Turn) bool { return old.ID == t.ID }); i >= 0 {
			k.turns[i] = t
		} else {
			k.turns = append(k.turns, t)
		}
	}
	k := m.threads[c.Thread.ID]
	k.items = append(k.items, c.Items...)
	switch {
	case c.Drop && c.Forked:
		delete(m.threads, k.ID)
	case c.Drop:
		k.items = k.items[:c.Result.Turn.From-k.ForkAt]
		k.turns = slices.DeleteFunc(k.turns, func(t Turn) bool { return t.ID == c.Result.Turn.ID })
	}
}

// Read returns a whole thread.
func (m *Memory) Read(_ context.Context, owner, thread string) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.threads[thread]
	if k == nil || k.Owner != owner {
		return Record{}, handoff.Fault(handoff.CodeSessionGone, "", "there is no such thread")
	}
	r := Record{Thread: k.Thread}
	for seen := k.Items; k != nil; k = m.threads[k.Parent] {
		r.Items = slices.Concat(k.items[:min(len(k.items), seen-k.ForkAt)], r.Items)
		own := slices.Clone(k.turns)
		r.Turns = slices.Concat(slices.DeleteFunc(own, func(t Turn) bool { return t.Until > seen }), r.Turns)
		seen = k.ForkAt
	}
	return r, nil
}

// List returns the threads of an owner in which anything ran, newest first, at most limit.
func (m *Memory) List(_ context.Context, owner string, limit int) ([]Thread, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Thread
	for _, k := range m.threads {
		if k.Owner == owner && k.Newest() != "" {
			all = append(all, k.Thread)
		}
	}
	slices.SortFunc(all, func(a, b Thread) int {
		return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(a.ID, b.ID))
	})
	return all[:min(len(all), max(limit, 0))], nil
}
