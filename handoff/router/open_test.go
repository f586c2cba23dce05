package router

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/work"
)

// TestEntryWithoutAThread: what a former life left without the name of its thread ends at once as unknown. No patience
// finds it.
func TestEntryWithoutAThread(t *testing.T) {
	entry := ledger.Entry{
		Key: "key", Caller: ladderCaller, Owner: "run", Status: handoff.StatusStarted, Attempt: 1,
		Accepted: time.Now(),
		Facts: ledger.Facts{
			ClientID: "former-1", Target: handoff.Target{Server: "s", Thread: handoff.NewThread}, Turn: "turn",
		},
	}
	r := running(t, Config{Fleet: nowhere{newCopier()}, Store: shelved(entry)})
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

// TestUnread: until what a former life left is read, nobody can say that there is no such work.
func TestUnread(t *testing.T) {
	s := shelved()
	s.read = make(chan struct{})
	r := running(t, Config{Fleet: newCopier(), Store: s})
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
	close(s.read)
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
		entry := ledger.Entry{
			Key: work.KeyOf(ladderCaller, req.Key), Caller: ladderCaller, Owner: "former-1", Args: work.ArgsOf(req),
			Status: handoff.StatusCompleted, Attempt: 1, Accepted: time.Now(), Ended: time.Now(),
			Facts: ledger.Facts{ClientID: "former-1", Target: req.Target, Outcome: handoff.OutcomeResult},
		}
		s := shelved(entry)
		s.read = make(chan struct{})
		ctx, r := t.Context(), running(t, Config{Fleet: newCopier(), Store: s})
		var all sync.WaitGroup
		if id, err := r.Start(ctx, ladderGrant, req); handoff.CodeOf(err) != handoff.CodeStoreDown {
			t.Errorf("before: %s, %v", id, err)
		}
		if err := r.Stop(ctx, ladderGrant, "former-1", handoff.StopOurs); handoff.CodeOf(err) != handoff.CodeStoreDown {
			t.Errorf("stopped before: %v", err)
		}
		all.Go(func() { // it was found, and waits to be told
			if err := r.Stop(ctx, ladderGrant, "former-1", handoff.StopOurs); handoff.CodeOf(err) != handoff.CodeWorkEnded {
				t.Errorf("stopped meanwhile: %v", err)
			}
		})
		all.Go(func() {
			if id, err := r.Start(ctx, ladderGrant, req); err != nil || id != "former-1" {
				t.Errorf("meanwhile: %s, %v", id, err)
			}
		})
		synctest.Wait()
		close(s.read)
		synctest.Wait()
		if id, err := r.Start(ctx, ladderGrant, req); err != nil || id != "former-1" {
			t.Errorf("after: %s, %v", id, err)
		}
		all.Wait()
	})
}

// TestUnkeptAskedAgain: the key of work of which no words are kept, and which a former life left open, waits until the
// store has that it is over.
func TestUnkeptAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		req := handoff.Request{
			Key: "k", Again: true, Unkept: true, Target: handoff.Target{Server: "s", Thread: "t"}, Input: handoff.TextInput("go"),
		}
		s := shelved(ledger.Entry{
			Key: work.KeyOf(ladderCaller, req.Key), Caller: ladderCaller, Owner: "former-1", Args: work.ArgsOf(req),
			Status: handoff.StatusStarted, Attempt: 1, Accepted: time.Now(),
			Facts: ledger.Facts{ClientID: "former-1", Target: req.Target, Turn: "turn", Unkept: true},
		})
		s.let = make(chan struct{})
		r := running(t, Config{Fleet: newCopier(), Store: s})
		if id, err := r.Start(t.Context(), ladderGrant, req); handoff.CodeOf(err) != handoff.CodeStoreDown {
			t.Errorf("before: %s, %v", id, err)
		}
		close(s.let)
		synctest.Wait()
		id, err := r.Start(t.Context(), ladderGrant, req)
		if rec, _ := r.Handoff(ladderGrant, string(id)); err != nil || rec.Outcome != handoff.OutcomeUnknown {
			t.Errorf("after: %+v, %v", rec, err)
		}
	})
}

// TestHeardForGood: who is answered that an outcome was heard is answered once the store has it, also when it was said
// before; a store that is away holds nobody up for long, and a call never.
func TestHeardForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entry := ledger.Entry{
			Key: "k", Caller: ladderCaller, Owner: "former-1", Status: handoff.StatusCompleted, Attempt: 1, Accepted: time.Now(), Ended: time.Now(),
			Facts: ledger.Facts{
				ClientID: "former-1", Target: handoff.Target{Server: "s", Thread: "t"}, Outcome: handoff.OutcomeResult,
			},
		}
		s := shelved(entry)
		s.let = make(chan struct{})
		ctx, r := t.Context(), running(t, Config{Fleet: newCopier(), Store: s})
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
		if len(s.sent) != 1 || answered.Load() != 0 {
			t.Errorf("%d batches, %d are answered before the store has it", len(s.sent), answered.Load())
		}
		time.Sleep(keptWithin)
		synctest.Wait()
		if answered.Load() != 2 {
			t.Error("a store that is away holds up the answer")
		}
		answers.Go(func() { _ = r.HeardForGood(ctx, ladderGrant, "former-1"); answered.Add(1) })
		synctest.Wait()
		close(s.let)
		synctest.Wait()
		if answered.Load() != 3 {
			t.Error("not answered although the store has it")
		}
	})
}

// TestReadInPart: what could not be read when it was taken up is read again, and until then is not written over: the
// whole request that waits, and a whole answer that nobody heard.
func TestReadInPart(t *testing.T) {
	for _, status := range []handoff.Status{handoff.StatusAccepted, handoff.StatusCompleted} {
		t.Run(string(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testReadInPart(t, status) })
		})
	}
}

func testReadInPart(t *testing.T, status handoff.Status) {
	whole := strings.Repeat("read it, ", 100) + "and do not push"
	e := ledger.Entry{
		Key: "k", Args: "a", Owner: "former", Caller: ladderCaller, Status: status, Accepted: time.Now(),
		Facts: ledger.Facts{ClientID: "r1", Target: handoff.Target{Server: "s", Thread: "t"}, Prompt: whole[:200]},
	}
	kept := ledger.Body{Request: wholeRequest(whole)}
	if status == handoff.StatusCompleted {
		e.Outcome, e.Ended, kept = handoff.OutcomeResult, time.Now(), ledger.Body{Prompt: whole, Text: "the whole answer"}
	}
	store := shelved()
	store.leave(e, kept)
	store.deaf = 3
	r := running(t, Config{Fleet: newCopier(), Store: store})
	time.Sleep(time.Minute)
	rec, err := r.Handoff(ladderGrant, "r1")
	if err != nil || rec.Text != kept.Text || status == handoff.StatusCompleted && rec.Prompt != whole {
		t.Errorf("%s: %+v, %v", status, rec, err)
	}
	synctest.Wait()
	if got := store.body(ladderCaller, "k").Request; got != kept.Request {
		t.Errorf("%s: the store has %q, want %q", status, got, kept.Request)
	}
	_ = r.Heard(t.Context(), ladderGrant, "r1")
	synctest.Wait()
	if got := store.body(ladderCaller, "k").Text; got != kept.Text {
		t.Errorf("%s: the store has the answer %q", status, got)
	}
}

// wholeRequest is a request of some words and a picture, as the store has it.
func wholeRequest(words string) string {
	return `{"input":[{"text":` + handoff.Encode(words) + `},{"image":"data:image/png;base64,AAAA"}]}`
}

// TestRecall: after a restart, work that had ended is listed again, sorted by its time, with its details.
func TestRecall(t *testing.T) {
	began := time.Now().Add(-time.Hour)
	a := shelved()
	a.away = 1
	for i := range maxRecalled + 5 {
		n := maxRecalled + 5 - i // the newest first
		key := fmt.Sprint("key-", n)
		body := ledger.Body{Prompt: "the whole prompt", Text: "the whole answer", Did: `{"into":"former-1"}`}
		a.leave(ledger.Entry{
			Key: key, Caller: ladderCaller, Owner: "former", Status: handoff.StatusDelivered,
			Accepted: began.Add(time.Duration(n) * time.Second), Ended: began.Add(time.Duration(n+1) * time.Second),
			Facts: ledger.Facts{
				ClientID: fmt.Sprint("former-", n), Target: handoff.Target{Server: "s", Thread: "t"},
				Outcome: handoff.OutcomeFailed, Tests: handoff.TestsFailed, Code: handoff.CodeAgentFailed, Prompt: "cut",
				Spoken: "said",
			},
		}, body)
	}
	r := running(t, Config{Fleet: newCopier(), Store: a})
	<-r.recovered
	now, err := r.Start(t.Context(), ladderGrant, handoff.Request{
		Target: handoff.Target{Server: "s", Thread: "t"}, Input: handoff.TextInput("go"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Recall(t.Context(), ladderCaller); err == nil {
		t.Fatal("a store that is away is read")
	}
	for range 2 {
		if err := r.Recall(t.Context(), ladderCaller); err != nil {
			t.Fatal(err)
		}
	}
	var ids, want []string
	all, _ := r.Handoffs(ladderGrant)
	for _, rec := range all {
		ids = append(ids, rec.ID)
	}
	want = append(want, string(now))
	for n := maxRecalled + 5; n > 5; n-- {
		want = append(want, fmt.Sprint("former-", n))
	}
	if !slices.Equal(ids, want) {
		t.Fatalf("got %v, want %v", ids, want)
	}
	rec, err := r.Handoff(ladderGrant, "former-9")
	if err != nil || rec.Prompt != "the whole prompt" || rec.Text != "the whole answer" ||
		rec.State != handoff.StatusDelivered || rec.Outcome != handoff.OutcomeFailed {
		t.Errorf("%+v, %v", rec, err)
	}
	if rec.Into != "former-1" || !rec.EndedAt.Equal(began.Add(10*time.Second)) || rec.Tests() != handoff.TestsFailed {
		t.Errorf("%+v", rec)
	}
	if past, ok, err := r.Past(t.Context(), ladderGrant, "key-9"); !ok || err != nil || past.Text != rec.Text {
		t.Errorf("past %+v, %v", past, err)
	}
	if _, ok, err := r.Past(t.Context(), ladderGrant, "none"); ok || err != nil {
		t.Errorf("work that never was: %v, %v", ok, err)
	}
}
