package homes

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/router"
)

// A world is a fleet on which every turn runs until it is let go, and a store.
type world struct {
	let   chan struct{} // closed: turns end
	begin chan struct{} // Set once: a turn begins when it can be received from; nil: at once
	asks  bool          // Set once: each turn asks something

	mu       sync.Mutex
	made     int                             // Guarded by mu: threads
	started  int                             // Guarded by mu: turns
	turns    map[string]int                  // Guarded by mu: by what they were given
	followed map[handoff.TurnID]int          // Guarded by mu: how often each turn was
	away     bool                            // Guarded by mu: the store does not answer
	full     bool                            // Guarded by mu: it can only be read
	kept     map[handoff.Caller]*ledger.Kept // Guarded by mu: what it has
	audited  []handoff.AuditRecord           // Guarded by mu
}

func newWorld() *world {
	return &world{let: make(chan struct{}), kept: map[handoff.Caller]*ledger.Kept{}, turns: map[string]int{},
		followed: map[handoff.TurnID]int{}}
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

func (a agent) Follow(ctx context.Context, id handoff.TurnID) iter.Seq2[handoff.Update, error] {
	return func(yield func(handoff.Update, error) bool) {
		a.w.mu.Lock()
		a.w.followed[id]++
		a.w.mu.Unlock()
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

// State implements [router.Store].
func (w *world) State(_ context.Context, c handoff.Caller) (ledger.State, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away {
		return ledger.State{}, storeAway()
	}
	return w.ofLocked(c).State, nil
}

func (w *world) ofLocked(c handoff.Caller) *ledger.Kept {
	if w.kept[c] == nil {
		w.kept[c] = new(ledger.NewKept())
	}
	return w.kept[c]
}

// Commit implements [router.Store].
func (w *world) Commit(_ context.Context, c handoff.Caller, b ledger.Batch) (ledger.Committed, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away || w.full {
		return 0, storeAway()
	}
	return w.ofLocked(c).Commit(b), nil
}

// Waiting implements [Waiting].
func (w *world) Waiting(_ context.Context, prefix string) (left []handoff.Caller, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away {
		return nil, storeAway()
	}
	for c, kept := range w.kept {
		if slices.ContainsFunc(slices.Collect(maps.Keys(kept.Documents)), func(name string) bool {
			return strings.HasPrefix(name, prefix)
		}) {
			left = append(left, c)
		}
	}
	return left, nil
}

func storeAway() error { return handoff.Fault(handoff.CodeUnreachable, "the store", "") }

// entriesOf returns the open work of a caller, as a store has it.
func entriesOf(t *testing.T, store router.Store, user string) []ledger.Entry {
	t.Helper()
	state, err := store.State(t.Context(), grantOf(user).Caller)
	if err != nil {
		t.Fatal(err)
	}
	return ledger.Entries(state.Documents, func(name string) { t.Errorf("%s cannot be read", name) })
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

func (ear) Hear(handoff.Event) bool      { return true }
func (ear) Outbox([]handoff.Record) bool { return true }
