package sessionstest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// found fails the test unless this entry and these texts are stored under a key; zero values stand for none.
func found(t *testing.T, l Ledger, key string, want ledger.Entry, words ledger.Body) {
	t.Helper()
	e, ok, err := l.Find(t.Context(), owner, key)
	if err != nil || e != want || ok != (want.Status != "") {
		t.Fatalf("found %+v, %t, %v, want %+v", e, ok, err, want)
	}
	body, ok, err := l.Body(t.Context(), owner, key)
	if err != nil || body != words || ok != (words != ledger.Body{}) {
		t.Fatalf("the words are %+v, %t, %v, want %+v", body, ok, err, words)
	}
}

// testFind: an entry is found by its key at every status, also in the history, and only by its caller.
func testFind(t *testing.T, l Store) {
	found(t, l, "key", ledger.Entry{}, ledger.Body{})
	var e ledger.Entry
	for _, to := range ledgerPath {
		e = Advance(t, l, e, LedgerStep("key", "a", to))
		found(t, l, "key", e, ledger.Body{})
	}
	if e, ok, err := l.Find(t.Context(), handoff.Caller{Principal: "somebody else"}, "key"); ok || err != nil {
		t.Errorf("somebody else found %+v, %v", e, err)
	}
	if _, _, err := l.Find(t.Context(), handoff.Caller{}, "key"); err == nil {
		t.Error("a caller without a principal was accepted")
	}
}

// testFreeKey: when the key of a handoff that never began is used again, nothing of the former entry is left, neither
// in the history nor in the texts. An entry that ran stays.
func testFreeKey(t *testing.T, l Store) {
	for at, key := range []string{"unheard", "heard"} {
		freeKey(t, l, key, since.Add(time.Duration(at)*time.Minute))
	}
}

// freeKey reuses the key of a handoff that failed before it was sent; under the key "heard" the failure was delivered.
func freeKey(t *testing.T, l Ledger, key string, at time.Time) {
	t.Helper()
	var e ledger.Entry
	step := func(by string, to handoff.Status, words string) {
		t.Helper()
		s := LedgerStep(key, by, to)
		at = at.Add(time.Second)
		s.At, s.Args, s.Body.Prompt = at, words, words
		s.Again = s.New && by != "a"
		if s.To == handoff.StatusCompleted && by == "a" {
			s.Set = ledger.Facts{Outcome: handoff.OutcomeFailed, Code: handoff.CodeUnreachable, Spoken: words}
		}
		e = Advance(t, l, e, s)
	}
	former, now := "former words of "+key, "new words of "+key
	step("a", handoff.StatusAccepted, former)
	step("a", handoff.StatusCompleted, former)
	if key == "heard" {
		step("a", handoff.StatusDelivered, former)
	}
	step("b", handoff.StatusDispatching, now)
	if e.Owner != "b" || e.Args != now || e.Attempt != 1 || e.Outcome != "" {
		t.Fatalf("made anew: %+v", e)
	}
	found(t, l, key, e, ledger.Body{Prompt: now})
	opened(t, l, e)
	past(t, l, owner, ledger.HistoryQuery{Search: "former"})
	step("a", handoff.StatusDelivered, former) // the former owner comes late
	step("b", handoff.StatusStarted, now)
	step("b", handoff.StatusCompleted, now)
	ran := e
	if step("c", handoff.StatusDispatching, now); e != ran {
		t.Fatalf("what ran is %+v, was %+v", e, ran)
	}
	step("b", handoff.StatusDelivered, now)
	opened(t, l)
	if page, err := l.History(t.Context(), owner, ledger.HistoryQuery{Limit: 1}); err != nil || page.Entries[0] != e {
		t.Fatalf("the history has %+v, %v, want %+v", page, err, e)
	}
}

// testRequests: the whole request is kept, however long, while the handoff waits or is paused, and no longer.
func testRequests(t *testing.T, l Store) {
	long := strings.Repeat("picture \x00\xff 日本", ledger.MaxRequest/20)
	step := func(e ledger.Entry, key string, to handoff.Status, change func(*ledger.Step)) ledger.Entry {
		t.Helper()
		s := LedgerStep(key, "a", to)
		s.Body.Prompt = "words"
		if change != nil {
			change(&s)
		}
		return Advance(t, l, e, s)
	}
	withRequest := func(s *ledger.Step) { s.Body.Request = long }
	e := step(ledger.Entry{}, "sent", handoff.StatusAccepted, withRequest)
	found(t, l, "sent", e, ledger.Body{Prompt: "words", Request: long})
	e = Advance(t, l, e, LedgerStep("sent", "b", "")) // another life adopts it
	found(t, l, "sent", e, ledger.Body{Prompt: "words", Request: long})
	for _, to := range []handoff.Status{handoff.StatusDispatching, handoff.StatusCompleted} {
		key := "over " + string(to)
		e := step(ledger.Entry{}, key, handoff.StatusAccepted, withRequest)
		e = step(e, key, to, withRequest)
		found(t, l, key, e, ledger.Body{Prompt: "words"})
	}
	paused := func(s *ledger.Step) { s.Set.Outcome, s.Set.Code = handoff.OutcomeCancelled, handoff.CodePaused }
	e = step(ledger.Entry{}, "paused", handoff.StatusAccepted, withRequest)
	e = step(e, "paused", handoff.StatusCompleted, paused)
	found(t, l, "paused", e, ledger.Body{Prompt: "words", Request: long})
	e = step(e, "paused", handoff.StatusDelivered, nil)
	found(t, l, "paused", e, ledger.Body{Prompt: "words"})
	e = step(ledger.Entry{}, "too long", handoff.StatusAccepted,
		func(s *ledger.Step) { s.Body.Request = strings.Repeat("x", ledger.MaxRequest+1) })
	found(t, l, "too long", e, ledger.Body{Prompt: "words"})
}

// testNoWords: a handoff without kept texts has none in the store and is on no page of the history, but is found by
// its key.
func testNoWords(t *testing.T, l Store) {
	var e ledger.Entry
	for _, to := range ledgerPath {
		s := LedgerStep("key", "a", to)
		if s.To != handoff.StatusDelivered {
			s.Set.Unkept, s.Set.Prompt, s.Set.Title, s.Set.Spoken = true, "secret", "secret", "secret"
			s.Body = ledger.Body{Prompt: "secret", Text: "secret", Did: "secret", Request: "secret"}
		}
		if e = Advance(t, l, e, s); e.Prompt+e.Title+e.Spoken != "" || !e.Unkept {
			t.Fatalf("%s: %+v", to, e)
		}
		found(t, l, "key", e, ledger.Body{})
	}
	past(t, l, owner, ledger.HistoryQuery{})
	past(t, l, owner, ledger.HistoryQuery{Search: "secret"})
	opened(t, l)
}

// testOwned: for which caller a thread was made is written once, with the step before its first turn, and listed in
// that order. Threads that Switchboard did not make have no owner.
func testOwned(t *testing.T, l Store) {
	other := handoff.Caller{Principal: "other", User: "bob"}
	var want []ledger.Owned
	for i, why := range []string{handoff.WhyNew, handoff.WhyNamed, handoff.WhyReplaced, handoff.WhyContinued,
		handoff.WhyCopy, handoff.WhyAside, handoff.WhyMerged} {
		s := LedgerStep(fmt.Sprint("key-", i), "a", handoff.StatusDispatching)
		s.At = since.Add(time.Duration(i) * time.Second)
		s.Set.Target.Thread, s.Set.Why = fmt.Sprint("thread \"", i), why
		if i%2 == 0 {
			s.Caller = other
		}
		if ledger.Made(why) {
			want = append(want, ledger.Owned{Server: "bigpc", Thread: s.Set.Target.Thread, Caller: s.Caller})
		}
		for range 2 {
			if _, err := l.Advance(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
	}
	fresh := LedgerStep("fresh", "a", handoff.StatusDispatching)
	fresh.Set.Target.Thread, fresh.Set.Why = handoff.NewThread, handoff.WhyNew
	noted := LedgerStep("noted", "a", handoff.StatusAccepted)
	noted.Set.Target, noted.Set.Why = handoff.Target{Server: "bigpc", Thread: "noted"}, handoff.WhyNew
	for _, s := range []ledger.Step{fresh, noted} {
		if _, err := l.Advance(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := l.Owned(t.Context()); err != nil || !slices.Equal(got, want) || len(want) != 4 {
		t.Fatalf("owned are %+v, %v, want %+v", got, err, want)
	}
}
