package router

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// A shelf is a ledger that lists what it was given, once it is let.
type shelf struct {
	entries []ledger.Entry
	let     chan struct{}
}

// listed is a shelf that lists entries at once.
func listed(entries ...ledger.Entry) shelf {
	let := make(chan struct{})
	close(let)
	return shelf{entries, let}
}

func (s *shelf) Advance(_ context.Context, step ledger.Step) (ledger.Entry, error) {
	for _, e := range s.entries {
		if e.Key == step.Key {
			return e, nil
		}
	}
	return ledger.Entry{Key: step.Key, Status: step.To}, nil
}

func (s *shelf) Open(context.Context, handoff.Caller) ([]ledger.Entry, error) { return nil, nil }

func (s *shelf) OpenAll(ctx context.Context) ([]ledger.Entry, error) {
	select {
	case <-s.let:
		return s.entries, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestLateNote: what was promised is noted beside the loop, and may come to it after the start was written. What is
// known by then stays: an entry with no thread could not be found again after a crash.
func TestLateNote(t *testing.T) {
	r := NewRouter(Config{Caller: ladderCaller, Ledger: &shelf{}})
	l := r.caller(ladderCaller).newLedgerWriter("key", "run", "args", false)
	thread := handoff.Target{Server: "s", Thread: "t"}
	l.newStep(handoff.StatusDispatching, 1, ledger.Facts{Target: thread, Watermark: "before", Title: "made"})
	l.newStep(handoff.StatusAccepted, 0, ledger.Facts{
		Target: handoff.Target{Server: "s", Thread: handoff.NewThread}, Prompt: "go", Title: "asked",
	})
	got := l.newStep(handoff.StatusStarted, 0, ledger.Facts{Turn: "turn"}).Set
	want := ledger.Facts{Target: thread, Watermark: "before", Title: "made", Prompt: "go", Turn: "turn"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestEntryWithoutAThread: what a former life left without the name of its thread ends at once as unknown. No patience
// finds it.
func TestEntryWithoutAThread(t *testing.T) {
	entry := ledger.Entry{
		Key: "key", Caller: ladderCaller, Owner: "run", Status: handoff.StatusStarted, Attempt: 1,
		Facts: ledger.Facts{
			ClientID: "former-1", Target: handoff.Target{Server: "s", Thread: handoff.NewThread}, Turn: "turn",
		},
	}
	kept := listed(entry)
	r := running(t, Config{Fleet: nowhere{newCopier()}, Ledger: &kept})
	<-r.recovered
	if rec := outcome(t, r, "former-1"); rec.Outcome != handoff.OutcomeUnknown {
		t.Errorf("%+v", rec)
	}
}

// nowhere is a fleet that refuses targets without a thread, as the real one does.
type nowhere struct{ *copier }

func (nowhere) Attach(_ context.Context, t handoff.Target) (handoff.Attached, error) {
	return handoff.Attached{}, handoff.Fault(handoff.CodeMalformed, "a thread id is needed", "")
}

// TestUnreadLedger: until what a former life left is read, nobody can say that there is no such work.
func TestUnreadLedger(t *testing.T) {
	s := &shelf{let: make(chan struct{})}
	r := running(t, Config{Fleet: newCopier(), Ledger: s})
	asker := handoff.Grant{Caller: ladderCaller, Approve: handoff.ApproveAll, Page: true}
	if _, err := r.Handoff(ladderGrant, "former-1"); handoff.CodeOf(err) != handoff.CodeStoreDown {
		t.Errorf("before: %v", err)
	}
	if err := r.Decide(t.Context(), asker, "q", handoff.DecisionDecline); handoff.CodeOf(err) != handoff.CodeStoreDown {
		t.Errorf("answered before: %v", err)
	}
	if _, err := r.Question(ladderGrant, ""); handoff.CodeOf(err) != handoff.CodeStoreDown {
		t.Errorf("asked for before: %v", err)
	}
	if all, err := r.Handoffs(ladderGrant); handoff.CodeOf(err) != handoff.CodeStoreDown || len(all) > 0 {
		t.Errorf("all before: %v, %v", all, err)
	}
	close(s.let)
	<-r.recovered
	if err := r.Decide(t.Context(), asker, "q", handoff.DecisionDecline); handoff.CodeOf(err) != handoff.CodeNotPending {
		t.Errorf("answered after: %v", err)
	}
	if _, err := r.Handoffs(ladderGrant); err != nil {
		t.Errorf("all after: %v", err)
	}
	if _, err := r.Handoff(ladderGrant, "former-1"); handoff.CodeOf(err) != handoff.CodeNotFound {
		t.Errorf("after: %v", err)
	}
}

// TestAskedAgain: what a former life took is not begun once more by whoever asks again before that was read, nor lost
// from sight. While it cannot be read, they are told so.
func TestAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		req := handoff.Request{
			Key: "k", Again: true, Target: handoff.Target{Server: "s", Thread: "t"}, Input: handoff.TextInput("go"),
		}
		asked := ledger.Hash(handoff.Encode([]any{req.Target, req.Mode, req.After, req.Input}))
		entry := ledger.Entry{
			Key: ledger.Key("runs of "+ladderCaller.String(), req.Key), Caller: ladderCaller, Owner: "former-1", Args: asked,
			Status: handoff.StatusCompleted, Attempt: 1,
			Facts: ledger.Facts{ClientID: "former-1", Target: req.Target, Outcome: handoff.OutcomeResult},
		}
		s := &shelf{[]ledger.Entry{entry}, make(chan struct{})}
		ctx, r := t.Context(), running(t, Config{Fleet: newCopier(), Ledger: s})
		var work sync.WaitGroup
		if id, err := r.Start(ctx, ladderGrant, req); handoff.CodeOf(err) != handoff.CodeStoreDown {
			t.Errorf("before: %s, %v", id, err)
		}
		if err := r.Stop(ctx, ladderGrant, "former-1"); handoff.CodeOf(err) != handoff.CodeStoreDown {
			t.Errorf("stopped before: %v", err)
		}
		work.Go(func() { // it was found, and waits to be told
			if err := r.Stop(ctx, ladderGrant, "former-1"); handoff.CodeOf(err) != handoff.CodeWorkEnded {
				t.Errorf("stopped meanwhile: %v", err)
			}
		})
		work.Go(func() {
			if id, err := r.Start(ctx, ladderGrant, req); err != nil || id != "former-1" {
				t.Errorf("meanwhile: %s, %v", id, err)
			}
		})
		synctest.Wait()
		close(s.let)
		synctest.Wait()
		if id, err := r.Start(ctx, ladderGrant, req); err != nil || id != "former-1" {
			t.Errorf("after: %s, %v", id, err)
		}
		work.Wait()
	})
}

// A slowShelf keeps the step to delivered until it is let.
type slowShelf struct {
	shelf
	asked chan struct{} // gets one for each such step
}

func (s *slowShelf) Advance(ctx context.Context, step ledger.Step) (ledger.Entry, error) {
	if step.To == handoff.StatusDelivered {
		s.asked <- struct{}{}
		select {
		case <-s.let:
		case <-ctx.Done():
			return ledger.Entry{}, handoff.Fault(handoff.CodeUnreachable, "the store", "")
		}
	}
	return s.shelf.Advance(ctx, step)
}

func (s *slowShelf) OpenAll(context.Context) ([]ledger.Entry, error) { return s.entries, nil }

// TestHeardAtOnce: an outcome that is heard the moment it is shown is written as heard behind the outcome, never before
// it, which the ledger would refuse.
func TestHeardAtOnce(t *testing.T) {
	m := &moody{shelf: listed(), entries: map[string]ledger.Entry{}}
	fleet := newCopier()
	close(fleet.let)
	ctx, r := t.Context(), running(t, Config{Fleet: fleet, Ledger: m})
	for n := range 100 {
		id, err := r.Start(ctx, ladderGrant, handoff.Request{
			Key: fmt.Sprint("k", n), Again: true, Target: handoff.Target{Server: "s", Thread: "t"},
			Input: handoff.TextInput("go"),
		})
		if err != nil {
			t.Fatal(err)
		}
		for {
			if rec, err := r.Handoff(ladderGrant, string(id)); err != nil || rec.Outcome != "" {
				break
			}
		}
		if err := r.HeardForGood(ctx, ladderGrant, id); err != nil {
			t.Fatal(err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.entries {
		if e.Status != handoff.StatusDelivered {
			t.Errorf("what was heard is %s", e.Status)
		}
	}
}

// TestHeardForGood: who is answered that an outcome was heard is answered once the ledger has it, also when it was said
// before; a store that is away holds nobody up for long, and a call never.
func TestHeardForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entry := ledger.Entry{
			Key: "k", Caller: ladderCaller, Owner: "former-1", Status: handoff.StatusCompleted, Attempt: 1,
			Facts: ledger.Facts{
				ClientID: "former-1", Target: handoff.Target{Server: "s", Thread: "t"}, Outcome: handoff.OutcomeResult,
			},
		}
		s := &slowShelf{shelf{[]ledger.Entry{entry}, make(chan struct{})}, make(chan struct{}, 8)}
		ctx, r := t.Context(), running(t, Config{Fleet: newCopier(), Ledger: s})
		var answers sync.WaitGroup
		synctest.Wait()
		if err := r.HeardForGood(ctx, ladderGrant, "nothing"); handoff.CodeOf(err) != handoff.CodeNotFound {
			t.Errorf("of no work: %v", err)
		}
		began := time.Now()
		var answered atomic.Int64
		if err := r.Heard(ctx, ladderGrant, "former-1"); err != nil || time.Since(began) > 0 {
			t.Errorf("a call waits %s, %v", time.Since(began), err)
		}
		for range 2 {
			answers.Go(func() {
				if err := r.HeardForGood(ctx, ladderGrant, "former-1"); err != nil {
					t.Error(err)
				}
				answered.Add(1)
			})
			synctest.Wait()
		}
		if len(s.asked) != 1 || answered.Load() != 0 {
			t.Errorf("%d steps, %d are answered before the ledger has it", len(s.asked), answered.Load())
		}
		time.Sleep(ackWithin)
		synctest.Wait()
		if answered.Load() != 2 {
			t.Error("a store that is away holds up the answer")
		}
		answers.Go(func() { _ = r.HeardForGood(ctx, ladderGrant, "former-1"); answered.Add(1) })
		synctest.Wait()
		close(s.let)
		synctest.Wait()
		if answered.Load() != 3 {
			t.Error("not answered although the ledger has it")
		}
	})
}
