package router

import (
	"context"
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
				let := make(chan struct{})
				close(let)
				m := &moody{shelf: shelf{let: let}, entries: map[string]ledger.Entry{}, full: mood == "full", mute: mood == "mute"}
				ctx, stop := context.WithCancel(t.Context())
				fleet := newCopier()
				r := NewRouter(Config{Fleet: fleet, Stickies: noStickies{}, Ledger: m})
				done := make(chan struct{})
				go func() { defer close(done); _ = r.Run(ctx) }()
				defer func() { stop(); <-done }()
				ask := func(words string) (handoff.Record, error) {
					return r.Give(t.Context(), ladderGrant, handoff.Request{
						Key: "k", Again: true, Target: handoff.Target{Server: "s", Thread: "t"}, Input: handoff.TextInput(words),
					})
				}
				for range 2 {
					if rec, err := ask("go"); err == nil || codeOfError(err) != handoff.CodeStoreDown {
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
				if _, err := ask("go"); codeOfError(err) != handoff.CodeConflict {
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
// before the beginning is written. It runs once.
func TestKeyOfWhatBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		close(let)
		target := handoff.Target{Server: "s", Thread: "t"}
		req := handoff.Request{Key: "k", Again: true, Target: target, Input: handoff.TextInput("go")}
		k := keyedBy(ladderCaller, "k", asked(req))
		began := time.Now().Add(-time.Minute)
		left := ledger.Entry{
			Key: k.key, Args: k.args, Owner: "former", Caller: ladderCaller, Status: handoff.StatusCompleted, Inherited: true,
			Accepted: began, Ended: began,
			Facts: ledger.Facts{
				ClientID: "r1", Target: target, Why: handoff.WhyNamed, Outcome: handoff.OutcomeCancelled,
				Code: handoff.CodeNotBegun, Prompt: "go",
			},
		}
		m := &moody{shelf: shelf{let: let, entries: []ledger.Entry{left}}, entries: map[string]ledger.Entry{k.key: left}}
		fleet := lateFleet{newCopier()}
		ctx, stop := context.WithCancel(t.Context())
		r := NewRouter(Config{Fleet: fleet, Stickies: noStickies{}, Ledger: m})
		done := make(chan struct{})
		go func() { defer close(done); _ = r.Run(ctx) }()
		defer func() { stop(); <-done }()
		<-r.recovered
		synctest.Wait()
		if _, err := r.Start(t.Context(), ladderGrant, handoff.Request{Instead: "r1", Key: "page", Again: true}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if id, err := r.Start(t.Context(), ladderGrant, req); err != nil || id != "r1" {
			t.Errorf("asked for again while it begins: %q, %v", id, err)
		}
		time.Sleep(10 * time.Second)
		close(fleet.let)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if fleet.started != 1 {
			t.Errorf("%d turns were started", fleet.started)
		}
	})
}
