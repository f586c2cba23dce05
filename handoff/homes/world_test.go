package homes

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// A world is a fleet on which every turn runs until it is let go, and a store.
type world struct {
	let   chan struct{} // closed: turns end
	begin chan struct{} // Set once: a turn begins when it can be received from; nil: at once
	asks  bool          // Set once: each turn asks something

	mu      sync.Mutex
	made    int                     // Guarded by mu: threads
	started int                     // Guarded by mu: turns
	turns   map[string]int          // Guarded by mu: by what they were given
	away    bool                    // Guarded by mu: the store does not answer
	full    bool                    // Guarded by mu: it can only be read
	entries map[string]ledger.Entry // Guarded by mu: by key
	adopted map[string]int          // Guarded by mu: how often entries of each caller were
	audited []handoff.AuditRecord   // Guarded by mu
}

func newWorld() *world {
	return &world{let: make(chan struct{}), entries: map[string]ledger.Entry{}, adopted: map[string]int{},
		turns: map[string]int{}}
}

func (w *world) Resolve(_ context.Context, _ handoff.Grant, t handoff.Target) (handoff.Target, error) {
	return t, nil
}

func (w *world) Attach(_ context.Context, t handoff.Target) (handoff.Attached, error) {
	return handoff.Attached{Agent: w.agent(), Target: t, Newest: "before"}, nil
}

func (w *world) Create(_ context.Context, t handoff.Target) (handoff.Attached, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made++
	t.Thread = fmt.Sprint("made ", w.made)
	return handoff.Attached{Agent: w.agent(), Target: t}, nil
}

func (w *world) agent() handoff.Agent {
	if w.asks {
		return asker{agent{w}}
	}
	return agent{w}
}

// Audit implements [handoff.Auditor].
func (w *world) Audit(_ context.Context, rec handoff.AuditRecord) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.audited = append(w.audited, rec)
	return nil
}

type agent struct{ w *world }

func (a agent) Start(_ context.Context, turn handoff.Turn) (handoff.TurnID, error) {
	if a.w.begin != nil {
		<-a.w.begin
	}
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	a.w.started++
	a.w.turns[handoff.InputText(turn.Input)]++
	return handoff.TurnID(fmt.Sprint("turn ", a.w.started)), nil
}

func (a agent) Follow(ctx context.Context, _ handoff.TurnID) iter.Seq2[handoff.Update, error] {
	return func(yield func(handoff.Update, error) bool) {
		select {
		case <-a.w.let:
			yield(handoff.TurnEnded{Status: handoff.TurnCompleted, Text: "Done."}, nil)
		case <-ctx.Done():
			yield(nil, ctx.Err())
		}
	}
}

func (agent) Close() error { return nil }

// An asker is an agent that asks something first, and takes every answer.
type asker struct{ agent }

func (a asker) Follow(ctx context.Context, id handoff.TurnID) iter.Seq2[handoff.Update, error] {
	return func(yield func(handoff.Update, error) bool) {
		if yield(handoff.Question{ID: "q", Turn: id, Decisions: []handoff.Decision{handoff.DecisionDecline}}, nil) {
			a.agent.Follow(ctx, id)(yield)
		}
	}
}

func (asker) Steer(context.Context, handoff.TurnID, []handoff.Part) error        { return nil }
func (asker) Interrupt(context.Context, handoff.TurnID) error                    { return nil }
func (asker) Decide(context.Context, handoff.QuestionID, handoff.Decision) error { return nil }

func (w *world) List(context.Context, handoff.Caller) ([]handoff.Sticky, error) { return nil, nil }
func (w *world) Set(context.Context, handoff.Caller, handoff.Sticky) error      { return nil }
func (w *world) Clear(context.Context, handoff.Caller, handoff.Target) error    { return nil }

func (w *world) answers() error {
	if w.away {
		return handoff.Fault(handoff.CodeUnreachable, "the store", "")
	}
	return nil
}

func (w *world) Advance(_ context.Context, s ledger.Step) (ledger.Entry, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away || w.full {
		return ledger.Entry{}, handoff.Fault(handoff.CodeUnreachable, "the store", "")
	}
	after, err := w.entries[s.Key].Apply(s)
	if err == nil {
		w.entries[s.Key] = after
		if s.Adopt {
			w.adopted[s.Caller.String()]++
		}
	}
	return after, err
}

func (w *world) open(of func(handoff.Caller) bool) (open []ledger.Entry, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.entries {
		if of(e.Caller) && e.Status != handoff.StatusDelivered {
			open = append(open, e)
		}
	}
	return open, w.answers()
}

func (w *world) Open(_ context.Context, c handoff.Caller) ([]ledger.Entry, error) {
	return w.open(func(other handoff.Caller) bool { return other == c })
}

func (w *world) OpenAll(context.Context) ([]ledger.Entry, error) {
	return w.open(func(handoff.Caller) bool { return true })
}

func (w *world) Owned(context.Context) ([]ledger.Owned, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return nil, w.answers()
}

// goAway takes the store away, or brings it back.
func (w *world) goAway(away bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = away
}

// fill fills the store, or makes room.
func (w *world) fill(full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.full = full
}

// An ear attends.
type ear struct{}

func (ear) Hear(handoff.RunEvent) bool   { return true }
func (ear) Outbox([]handoff.Record) bool { return true }
