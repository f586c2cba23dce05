package router

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// archive is a ledger with a history, which cannot be read at first.
type archive struct {
	shelf
	past   []ledger.Entry
	bodies map[string]ledger.Body
	away   int
}

func (a *archive) History(_ context.Context, _ handoff.Caller, q ledger.HistoryQuery) (ledger.HistoryPage, error) {
	if a.away--; a.away >= 0 {
		return ledger.HistoryPage{}, handoff.Fault(handoff.CodeUnreachable, "the store", "")
	}
	return ledger.HistoryPage{Entries: a.past[:min(q.Limit, len(a.past))]}, nil
}

func (a *archive) Body(_ context.Context, _ handoff.Caller, key string) (ledger.Body, bool, error) {
	b, ok := a.bodies[key]
	return b, ok, nil
}

func (a *archive) Find(_ context.Context, _ handoff.Caller, key string) (ledger.Entry, bool, error) {
	for _, e := range a.past {
		if e.Key == key {
			return e, true, nil
		}
	}
	return ledger.Entry{}, false, nil
}

// TestRecall: after a restart, work that had ended is listed again, sorted by its time, with its details. Records that
// are open, or known already, are not replaced.
func TestRecall(t *testing.T) {
	began := time.Now().Add(-time.Hour)
	a := &archive{shelf: listed(), bodies: map[string]ledger.Body{}, away: 1}
	exit := 1
	did := encodeDetails(handoff.Record{
		Items: []handoff.RecordItem{
			{ID: "c", Kind: handoff.ItemCommand, Text: "go test ./...", Output: "FAIL", Exit: &exit, State: itemFailed},
			{
				ID: "e", Kind: handoff.ItemFileChange, State: itemDone,
				Changes: []handoff.FileChange{{Path: "a.go", Diff: "@@\n-a\n+b\n", Added: 1, Removed: 1}},
			},
		},
		Usage:       &handoff.Usage{Input: 7},
		Answers:     []handoff.RecordAnswer{{By: handoff.ByPage, Command: "git push", At: began}},
		Error:       &handoff.RecordError{Code: handoff.CodeAgentFailed, Detail: "the whole story"},
		Undelivered: []string{"and push it"},
		Into:        "former-1", Server: "s",
	})
	for i := range maxRecalled + 5 {
		n := maxRecalled + 5 - i // the newest first
		key := fmt.Sprint("key-", n)
		a.past = append(a.past, ledger.Entry{
			Key: key, Caller: ladderCaller, Status: handoff.StatusDelivered,
			Accepted: began.Add(time.Duration(n) * time.Second), Ended: began.Add(time.Duration(n+1) * time.Second),
			Facts: ledger.Facts{
				ClientID: fmt.Sprint("former-", n), Target: handoff.Target{Server: "s", Thread: "t"},
				Outcome: handoff.OutcomeFailed, Tests: handoff.TestsFailed, Code: handoff.CodeAgentFailed, Prompt: "cut",
				Spoken: "said",
			},
		})
		a.bodies[key] = ledger.Body{Prompt: "the whole prompt", Text: "the whole answer", Did: did}
	}
	delete(a.bodies, "key-8")
	r := running(t, Config{Fleet: newCopier(), Ledger: a})
	<-r.recovered
	b := r.caller(ladderCaller)
	b.open(handoff.Record{ID: "now", CreatedAt: time.Now(), Server: "s", State: handoff.StatusStarted}, nil)
	b.open(
		handoff.Record{
			ID: "former-50", CreatedAt: began.Add(50 * time.Second), Server: "s", Prompt: "here already",
			State: handoff.StatusDelivered,
		},
		nil,
	)
	if err := r.Recall(t.Context(), ladderCaller); err == nil || len(b.registry.list()) != 2 {
		t.Fatalf("a store that is away: %v, %d records", err, len(b.registry.list()))
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
	want = append(want, "now")
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
	if len(rec.Items) != 2 || *rec.Items[0].Exit != 1 || rec.Items[0].Output != "FAIL" ||
		!strings.Contains(rec.Items[1].Changes[0].Diff, "+b") {
		t.Errorf("items %+v", rec.Items)
	}
	if rec.Usage.Input != 7 || !slices.Equal(rec.Undelivered, []string{"and push it"}) ||
		rec.Answers[0].Command != "git push" || rec.Error.Detail != "the whole story" ||
		rec.Into != "former-1" || !rec.EndedAt.Equal(began.Add(10*time.Second)) {
		t.Errorf("%+v", rec)
	}
	if past, ok, err := r.Past(t.Context(), ladderGrant, "key-9"); !ok || err != nil || past.Text != rec.Text ||
		handoff.Encode(past.Items) != handoff.Encode(rec.Items) || past.Error.Detail != "the whole story" ||
		past.Server != "s" {
		t.Errorf("past %+v, %v", past, err)
	}
	if _, ok, err := r.Past(t.Context(), ladderGrant, "none"); ok || err != nil {
		t.Errorf("work that never was: %v, %v", ok, err)
	}
	if rec, _ := r.Handoff(ladderGrant, "former-8"); len(rec.Items) > 0 || rec.Tests() != handoff.TestsFailed {
		t.Errorf("the tests of work of which no items are kept: %+v", rec)
	}
	if rec, _ := r.Handoff(ladderGrant, "former-50"); rec.Prompt != "here already" {
		t.Errorf("what is known was replaced: %+v", rec)
	}
}

// TestDeedsAreBounded: of many items the newest are kept whole and the others cut, within the bound of the ledger.
func TestDeedsAreBounded(t *testing.T) {
	for name, output := range map[string]string{
		"text": strings.Repeat("x", maxOutput), "escaped": strings.Repeat("\x01", maxOutput),
	} {
		rec := handoff.Record{Tested: handoff.TestsFailed} // by an item that had no room
		for i := range maxItems {
			rec.Items = append(rec.Items, handoff.RecordItem{
				ID: fmt.Sprint(i), Kind: handoff.ItemCommand, Text: "go test", Output: output, State: itemDone,
				Changes: []handoff.FileChange{{Path: "a", Diff: strings.Repeat("+", 1000)}},
			})
		}
		rec.Items = append(rec.Items, handoff.RecordItem{ID: "last", Kind: handoff.ItemCommand, Output: "ok"})
		kept := encodeDetails(rec)
		if len(kept) > ledger.MaxBody || !json.Valid([]byte(kept)) {
			t.Fatalf("%s: %d bytes", name, len(kept))
		}
		var back handoff.Record
		restoreDetails(&back, ledger.Body{Did: kept})
		if n := len(back.Items); n < 20 || back.Items[n-1].Output != "ok" || !back.Items[0].Changes[0].Cut {
			t.Errorf("%s: %d items", name, n)
		}
		if back.Tests() != handoff.TestsFailed {
			t.Errorf("%s: the tests %s", name, back.Tests())
		}
		if name == "text" && len(back.Items[len(back.Items)-2].Output) != maxOutput {
			t.Errorf("the newest is cut to %d", len(back.Items[len(back.Items)-2].Output))
		}
	}
}

// A slowArchive takes a second to read a body.
type slowArchive struct{ *archive }

func (a slowArchive) Body(ctx context.Context, c handoff.Caller, key string) (ledger.Body, bool, error) {
	time.Sleep(time.Second)
	return a.archive.Body(ctx, c, key)
}

// TestRestoredOnce: several requests at once repeat one of an earlier life, while the history is read. Its work is
// listed once.
func TestRestoredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		req := handoff.Request{
			Key: "k", Again: true, Target: handoff.Target{Server: "s", Thread: "t"}, Input: handoff.TextInput("go"),
		}
		k := ledgerKeyOf(ladderCaller, "k", requestHash(req))
		began := time.Now().Add(-time.Hour)
		a := &archive{shelf: listed(), past: []ledger.Entry{{
			Key: k.key, Args: k.args, Caller: ladderCaller, Status: handoff.StatusDelivered, Accepted: began, Ended: began,
			Facts: ledger.Facts{ClientID: "former", Target: req.Target, Outcome: handoff.OutcomeResult, Prompt: "go"},
		}}}
		r := running(t, Config{Fleet: newCopier(), Ledger: slowArchive{a}})
		<-r.recovered
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 400 * time.Millisecond)
				if id, err := r.Start(t.Context(), ladderGrant, req); err != nil || id != "former" {
					t.Errorf("asked for again: %q, %v", id, err)
				}
			})
		}
		all.Go(func() {
			if err := r.Recall(t.Context(), ladderCaller); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		if list, _ := r.Handoffs(ladderGrant); len(list) != 1 {
			t.Errorf("%d are listed: %+v", len(list), list)
		}
	})
}
