package router

import (
	"context"
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
	of   map[handoff.Caller]*ledger.Kept
}

// shelved returns a shelf with handoffs of an earlier life.
func shelved(entries ...ledger.Entry) *shelf {
	s := &shelf{of: map[handoff.Caller]*ledger.Kept{}}
	for _, e := range entries {
		s.leave(e, ledger.Body{})
	}
	return s
}

// leave adds a handoff of an earlier life.
func (s *shelf) leave(e ledger.Entry, body ledger.Body) {
	k := s.ofLocked(e.Caller)
	k.Texts[e.Key] = map[string]string{ledger.PartPrompt: body.Prompt, ledger.PartText: body.Text, ledger.PartDid: body.Did,
		ledger.PartRequest: body.Request}
	if e.Status == handoff.StatusDelivered {
		k.Past[e.Key] = e.Row(e.Ended)
		return
	}
	k.Version, k.Documents[ledger.HandoffDoc+e.Key] = "left", handoff.Encode(e)
}

func (s *shelf) ofLocked(c handoff.Caller) *ledger.Kept {
	if s.of[c] == nil {
		s.of[c] = new(ledger.NewKept())
	}
	return s.of[c]
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
	return s.ofLocked(c).State, nil
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
	done := s.ofLocked(c).Commit(b)
	if s.mute {
		s.full = true
		return 0, handoff.Fault(handoff.CodeUnreachable, "the store", "no answer")
	}
	return done, nil
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
	for _, row := range s.ofLocked(c).Past {
		e, err := ledger.DecodeEntry(row.Row)
		if err != nil {
			return ledger.HistoryPage{}, err
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(x, y ledger.Entry) int { return y.Accepted.Compare(x.Accepted) })
	return ledger.HistoryPage{Entries: all[:min(q.Limit, len(all))]}, nil
}

func (s *shelf) Bodies(_ context.Context, c handoff.Caller, keys ...string) (map[string]ledger.Body, error) {
	time.Sleep(s.slow)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deaf--; s.deaf >= 0 {
		return nil, handoff.Fault(handoff.CodeInternal, "", "the disk cannot be read")
	}
	bodies := map[string]ledger.Body{}
	for _, key := range keys {
		if texts, ok := s.ofLocked(c).Texts[key]; ok {
			bodies[key] = ledger.BodyOf(texts)
		}
	}
	return bodies, nil
}

func (s *shelf) Find(_ context.Context, c handoff.Caller, key string) (ledger.Entry, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.ofLocked(c).Past[key].Row
	if open, ok := s.ofLocked(c).Documents[ledger.HandoffDoc+key]; ok {
		text = open
	}
	if text == "" {
		return ledger.Entry{}, false, nil
	}
	e, err := ledger.DecodeEntry(text)
	return e, err == nil, err
}

// body returns the whole words of a key.
func (s *shelf) body(c handoff.Caller, key string) ledger.Body {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ledger.BodyOf(s.ofLocked(c).Texts[key])
}
