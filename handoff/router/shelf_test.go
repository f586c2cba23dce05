package router

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// A shelf is a store in memory, with its history. Its moods are set by tests.
type shelf struct {
	mu   sync.Mutex
	full bool           // Guarded by mu, like all below: it takes nothing
	mute bool           // it takes the next batch, and its answer is lost; it takes no other then
	deaf int            // how many reads of a body fail
	away int            // how many reads of the history fail
	let  chan struct{}  // until it is closed, no batch is taken; nil: at once
	read chan struct{}  // the same for reads of the state
	slow time.Duration  // how long a read of a body takes
	sent []ledger.Batch // that came, also those that were not taken
	of   map[handoff.Caller]*kept
}

// kept is what a shelf has of a caller.
type kept struct {
	state  ledger.State
	past   map[string]string // rows, by key
	bodies map[string]ledger.Body
}

// shelved returns a shelf with handoffs of an earlier life.
func shelved(entries ...ledger.Entry) *shelf {
	s := &shelf{of: map[handoff.Caller]*kept{}}
	for _, e := range entries {
		s.leave(e, ledger.Body{})
	}
	return s
}

// leave adds a handoff of an earlier life.
func (s *shelf) leave(e ledger.Entry, body ledger.Body) {
	k := s.ofLocked(e.Caller)
	if k.bodies[e.Key] = body; e.Status == handoff.StatusDelivered {
		k.past[e.Key] = handoff.Encode(e)
		return
	}
	k.state.Version, k.state.Documents[ledger.HandoffDoc+e.Key] = "left", handoff.Encode(e)
}

func (s *shelf) ofLocked(c handoff.Caller) *kept {
	k := s.of[c]
	if k == nil {
		k = &kept{ledger.State{Documents: map[string]string{}}, map[string]string{}, map[string]ledger.Body{}}
		s.of[c] = k
	}
	return k
}

// change sets moods.
func (s *shelf) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

func (s *shelf) State(ctx context.Context, c handoff.Caller) (ledger.State, error) {
	if err := s.waits(ctx, &s.read); err != nil {
		return ledger.State{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.ofLocked(c).state
	return ledger.State{Version: now.Version, Documents: maps.Clone(now.Documents)}, nil
}

// waits until a channel is closed, or nil.
func (s *shelf) waits(ctx context.Context, until *chan struct{}) error {
	s.mu.Lock()
	wait := *until
	s.mu.Unlock()
	if wait == nil {
		return nil
	}
	select {
	case <-wait:
		return nil
	case <-ctx.Done():
		return handoff.Fault(handoff.CodeUnreachable, "the store", "")
	}
}

func (s *shelf) Commit(ctx context.Context, c handoff.Caller, b ledger.Batch) (ledger.Committed, error) {
	s.change(func() { s.sent = append(s.sent, b) })
	if err := s.waits(ctx, &s.let); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full {
		return 0, handoff.Fault(handoff.CodeUnreachable, "the store", "full")
	}
	done := s.ofLocked(c).commit(b)
	if s.mute {
		s.full = true
		return 0, handoff.Fault(handoff.CodeUnreachable, "the store", "no answer")
	}
	return done, nil
}

func (k *kept) commit(b ledger.Batch) ledger.Committed {
	if k.state.Version != b.Was {
		return ledger.Outdated
	}
	for _, c := range b.Changed {
		if c.Free && k.past[c.Key] != "" {
			return ledger.NotFree
		}
	}
	k.state.Version = b.Now
	maps.Copy(k.state.Documents, b.Put)
	for _, name := range b.Drop {
		delete(k.state.Documents, name)
	}
	for _, c := range b.Changed {
		body := k.bodies[c.Key]
		if c.Clear {
			delete(k.past, c.Key)
			body = ledger.Body{}
		}
		for part, text := range c.Texts {
			*map[string]*string{ledger.PartPrompt: &body.Prompt, ledger.PartText: &body.Text, ledger.PartDid: &body.Did,
				ledger.PartRequest: &body.Request}[part] = text
		}
		if k.bodies[c.Key] = body; c.Past != nil {
			k.past[c.Key] = c.Past.Row
		}
	}
	if len(k.state.Documents) == 0 {
		k.state.Version = ""
	}
	return ledger.Written
}

func (s *shelf) History(
	_ context.Context, c handoff.Caller, q ledger.HistoryQuery,
) (ledger.HistoryPage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away--; s.away >= 0 {
		return ledger.HistoryPage{}, handoff.Fault(handoff.CodeUnreachable, "the store", "")
	}
	var all []ledger.Entry
	for _, row := range s.ofLocked(c).past {
		e, err := ledger.DecodeEntry(row)
		if err != nil {
			return ledger.HistoryPage{}, err
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(x, y ledger.Entry) int { return y.Accepted.Compare(x.Accepted) })
	return ledger.HistoryPage{Entries: all[:min(q.Limit, len(all))]}, nil
}

func (s *shelf) Body(_ context.Context, c handoff.Caller, key string) (ledger.Body, bool, error) {
	time.Sleep(s.slow)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deaf--; s.deaf >= 0 {
		return ledger.Body{}, false, handoff.Fault(handoff.CodeInternal, "", "the disk cannot be read")
	}
	body, ok := s.ofLocked(c).bodies[key]
	return body, ok, nil
}

func (s *shelf) Find(_ context.Context, c handoff.Caller, key string) (ledger.Entry, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row, ok := s.ofLocked(c).past[key]
	if !ok {
		return ledger.Entry{}, false, nil
	}
	e, err := ledger.DecodeEntry(row)
	return e, err == nil, err
}

// body returns the whole words of a key.
func (s *shelf) body(c handoff.Caller, key string) ledger.Body {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ofLocked(c).bodies[key]
}
