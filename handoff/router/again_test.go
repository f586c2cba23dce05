package router

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// A moody ledger decides as the stores do, and takes nothing or loses its answers while it is told to.
type moody struct {
	shelf

	mu      sync.Mutex
	entries map[string]ledger.Entry // Guarded by mu
	full    bool                    // Guarded by mu: it refuses
	// Guarded by mu: it writes that a start is about to be sent, and its answer is lost; nothing else
	mute bool
}

func (m *moody) Advance(_ context.Context, s ledger.Step) (ledger.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full || m.mute && s.To != handoff.StatusDispatching {
		return ledger.Entry{}, handoff.Fault(handoff.CodeUnreachable, "the store", "full")
	}
	after, err := m.entries[s.Key].Apply(s)
	if err == nil {
		m.entries[s.Key] = after
	}
	if m.mute {
		return ledger.Entry{}, handoff.Fault(handoff.CodeUnreachable, "the store", "no answer")
	}
	return after, err
}

// TestKeyOfARefusal: what was refused because nothing could be written down, or nobody knows whether it was, is begun
// when it is asked for again under its key, once, and also in other words; what ran is not.
func TestKeyOfARefusal(t *testing.T) {
	for _, mood := range []string{"full", "mute"} {
		t.Run(mood, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &moody{shelf: listed(), entries: map[string]ledger.Entry{}, full: mood == "full", mute: mood == "mute"}
				fleet := newCopier()
				r := running(t, Config{Fleet: fleet, Ledger: m})
				ask := func(words string) (handoff.Record, error) {
					return r.Give(t.Context(), ladderGrant, handoff.Request{
						Key: "k", Again: true, Target: handoff.Target{Server: "s", Thread: "t"}, Input: handoff.TextInput(words),
					})
				}
				for range 2 {
					if rec, err := ask("go"); err == nil || handoff.CodeOf(err) != handoff.CodeStoreDown {
						t.Fatalf("while it is %s: %+v, %v", mood, rec, err)
					}
				}
				m.mu.Lock()
				m.full, m.mute = false, false
				m.mu.Unlock()
				rec, err := ask("go on")
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if again, err := ask("go on"); err != nil || again.ID != rec.ID {
					t.Errorf("what runs, asked for again: %+v, %v", again, err)
				}
				if _, err := ask("go"); handoff.CodeOf(err) != handoff.CodeConflict {
					t.Errorf("other words: %v", err)
				}
				close(fleet.let)
				synctest.Wait()
				for range 2 {
					again, err := ask("go on")
					if err != nil || again.ID != rec.ID || again.Outcome != handoff.OutcomeResult || again.Text == "" ||
						again.State != handoff.StatusCompleted {
						t.Errorf("what has ended and nobody heard, asked for again: %+v, %v", again, err)
					}
				}
			})
		})
	}
}

// A lateFleet takes two seconds to find a session.
type lateFleet struct{ *copier }

func (f lateFleet) Resolve(ctx context.Context, g handoff.Grant, t handoff.Target) (handoff.Target, error) {
	time.Sleep(2 * time.Second)
	return f.copier.Resolve(ctx, g, t)
}

// TestKeyOfWhatBegins: what a former life left unbegun is begun by its caller, and asked for again under its key
// before the beginning is written, or the other way about. It runs once.
func TestKeyOfWhatBegins(t *testing.T) {
	for _, byKey := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { testKeyOfWhatBegins(t, byKey) })
	}
}

func testKeyOfWhatBegins(t *testing.T, byKey bool) {
	target := handoff.Target{Server: "s", Thread: "t"}
	req := handoff.Request{Key: "k", Again: true, Target: target, Input: handoff.TextInput("go")}
	k := ledgerKeyOf(ladderCaller, "k", requestHash(req))
	began := time.Now().Add(-time.Minute)
	left := ledger.Entry{
		Key: k.key, Args: k.args, Owner: "former", Caller: ladderCaller, Status: handoff.StatusCompleted, Inherited: true,
		Accepted: began, Ended: began,
		Facts: ledger.Facts{
			ClientID: "r1", Target: target, Why: handoff.WhyNamed, Outcome: handoff.OutcomeCancelled,
			Code: handoff.CodeNotBegun, Prompt: "go",
		},
	}
	m := &moody{shelf: listed(left), entries: map[string]ledger.Entry{k.key: left}}
	fleet := lateFleet{newCopier()}
	r := running(t, Config{Fleet: fleet, Ledger: m})
	<-r.recovered
	synctest.Wait()
	begin := handoff.Request{Instead: "r1", Key: "page", Again: true}
	first, then, code := begin, req, handoff.Code("")
	if byKey {
		first, then, code = req, begin, handoff.CodeJoined
	}
	id, err := r.Start(t.Context(), ladderGrant, first)
	if err != nil {
		t.Fatal(err)
	}
	if !byKey {
		id = "r1" // which has the key, and whose beginning the other is
	}
	time.Sleep(time.Second)
	if same, err := r.Start(t.Context(), ladderGrant, then); handoff.CodeOf(err) != code || same != id {
		t.Errorf("asked for again while it begins: %q, %v", same, err)
	}
	time.Sleep(10 * time.Second)
	close(fleet.let)
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	if fleet.started != 1 {
		t.Errorf("%d turns were started", fleet.started)
	}
}

// A heldLedger is a moody one that holds each step until it is let.
type heldLedger struct {
	moody
	let   chan struct{}
	steps []string // owners and where to, in order; to be read once the writers are done
}

func newHeldLedger() *heldLedger {
	return &heldLedger{moody: moody{entries: map[string]ledger.Entry{}}, let: make(chan struct{})}
}

func (h *heldLedger) Advance(ctx context.Context, s ledger.Step) (ledger.Entry, error) {
	<-h.let
	h.mu.Lock()
	h.steps = append(h.steps, s.Owner+" "+string(s.To))
	h.mu.Unlock()
	return h.moody.Advance(ctx, s)
}

// TestNoteOfWhatHasEnded: a promise that is on its way into the ledger when its run ends, or when another has its key,
// is not written any more. Else the key would be refused to other words, and a later life would ask whether to begin
// what was refused or stopped.
func TestNoteOfWhatHasEnded(t *testing.T) {
	failed := ledger.Facts{Outcome: handoff.OutcomeFailed, Code: handoff.CodeStoreDown}
	for name, end := range map[string]func(second, third *ledgerWriter){
		"ended":    func(second, _ *ledgerWriter) { second.completed(failed); second.delivered("") },
		"followed": func(second, third *ledgerWriter) { third.takeOver(second) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHeldLedger()
				c := NewRouter(Config{Caller: ladderCaller, Ledger: h}).caller(ladderCaller)
				writer := func(owner, args string) *ledgerWriter { return c.newLedgerWriter("key", owner, args, true) }
				first, second, third := writer("first", "go"), writer("second", "go"), writer("third", "go on")
				first.enqueue(first.newStep(handoff.StatusCompleted, 0, failed))
				second.takeOver(first)
				var note error
				go func() { note = second.note(t.Context(), ledger.Facts{Prompt: "go"}) }()
				synctest.Wait() // first's outcome, which comes before it, is on its way
				end(second, third)
				close(h.let)
				synctest.Wait()
				if e := h.entries["key"]; note == nil || e.Owner != "first" || e.Status != handoff.StatusCompleted {
					t.Errorf("noted: %v; the entry is %+v", note, e)
				}
				third.takeOver(second)
				if err := third.dispatch(t.Context(), 1, ledger.Facts{Prompt: "go on"}); err != nil {
					t.Errorf("in other words: %v", err)
				}
			})
		})
	}
}

// TestPendingComesFirst: a step that is waited for comes after all that is pending, which is written once: what a
// former run said again later could make the entry anew, and a turn that never ran could be taken for the newest.
func TestPendingComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeldLedger()
		c := NewRouter(Config{Caller: ladderCaller, Ledger: h}).caller(ladderCaller)
		first, second := c.newLedgerWriter("key", "first", "go", true), c.newLedgerWriter("key", "second", "go on", true)
		first.enqueue(first.newStep(handoff.StatusCompleted, 0, ledger.Facts{
			Outcome: handoff.OutcomeFailed, Code: handoff.CodeStoreDown,
		}))
		second.takeOver(first)
		go first.write(t.Context())
		synctest.Wait() // it is on its way
		go func() {
			for attempt := 1; attempt <= 2; attempt++ {
				if err := second.dispatch(t.Context(), attempt, ledger.Facts{}); err != nil {
					t.Error(err)
				}
				second.started(handoff.TurnID(fmt.Sprint(attempt)), "")
			}
			second.write(t.Context())
		}()
		synctest.Wait()
		close(h.let)
		synctest.Wait()
		want := []string{"first completed", "second dispatching", "second started", "second dispatching", "second started"}
		if e := h.entries["key"]; !slices.Equal(h.steps, want) || e.Turn != "2" {
			t.Errorf("%q; the entry is %+v", h.steps, e)
		}
	})
}
