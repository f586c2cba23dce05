package threads

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"switchboard/handoff"
)

// A Memory is a store in memory. A copy in it has all of its items itself, and no parent.
type Memory struct {
	mu      sync.Mutex
	records records // Guarded by mu
}

// records are whole threads by id. They implement [Rows].
type records map[string]*Record

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{records: records{}} }

// Advance makes one step.
func (m *Memory) Advance(_ context.Context, s Step) (Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.advance(m.records, s)
}

// Adopt makes a copy of a thread of another store.
func (m *Memory) Adopt(r Record, s Fork) (Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Turns = slices.Clone(r.Turns)
	return m.advance(records{r.Thread.ID: &r}, s)
}

// advance makes a step that is decided by rows and, if it is a copy, made from them. The caller holds mu.
func (m *Memory) advance(from records, s Step) (Result, error) {
	v, _ := See(from, s) // reading memory never fails
	c, err := Decide(v, s)
	if err != nil || c.Same {
		return c.Result, err
	}
	for _, t := range c.Turns {
		r := from[t.Thread]
		if i := slices.IndexFunc(r.Turns, func(old Turn) bool { return old.ID == t.ID }); i >= 0 {
			r.Turns[i] = t
		} else {
			r.Turns = append(r.Turns, t)
		}
	}
	for _, t := range c.Threads {
		r := from[t.ID]
		switch {
		case c.Forked && t.ID == c.Thread.ID:
			m.records[t.ID] = from[ThreadOf(s)].copied(t)
		case r == nil:
			from[t.ID] = &Record{Thread: t}
		default:
			r.Thread = t
		}
	}
	if len(c.Items) > 0 {
		r := m.records[c.Thread.ID]
		r.Items = append(r.Items, c.Items...)
	}
	return c.Result, nil
}

// copied returns a copy of the record up to the end of t, as t.
func (r *Record) copied(t Thread) *Record {
	t.Parent, t.ForkAt, t.Depth = "", 0, 0
	c := &Record{Thread: t, Items: slices.Clone(r.Items[:t.Items])}
	for _, turn := range r.Turns {
		if turn.Until <= t.Items {
			turn.Thread = t.ID
			c.Turns = append(c.Turns, turn)
		}
	}
	return c
}

// Drop deletes a thread.
func (m *Memory) Drop(thread string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, thread)
}

// Thread implements [Rows].
func (m records) Thread(id string) (t Thread, _ error) {
	if r := m[id]; r != nil {
		t = r.Thread
	}
	return t, nil
}

// Turn implements [Rows].
func (m records) Turn(thread, id string) (t Turn, _ error) {
	if r := m[thread]; r != nil {
		if i := slices.IndexFunc(r.Turns, func(t Turn) bool { return t.ID == id }); i >= 0 {
			t = r.Turns[i]
		}
	}
	return t, nil
}

// Read returns a whole thread.
func (m *Memory) Read(_ context.Context, owner, thread string) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[thread]
	if r == nil || r.Thread.Owner != owner {
		return Record{}, handoff.Fault(handoff.CodeSessionGone, "", "there is no such thread")
	}
	return Record{Thread: r.Thread, Turns: slices.Clone(r.Turns), Items: slices.Clip(r.Items)}, nil
}

// List returns the threads of an owner in which anything ran, newest first, at most limit.
func (m *Memory) List(_ context.Context, owner string, limit int) ([]Thread, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Thread
	for _, r := range m.records {
		if r.Thread.Owner == owner && r.Thread.Newest() != "" {
			all = append(all, r.Thread)
		}
	}
	slices.SortFunc(all, func(a, b Thread) int {
		return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(a.ID, b.ID))
	})
	return all[:min(len(all), max(limit, 0))], nil
}
