package sessionstest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// LedgerStep returns a valid step of an owner to a status; "" adopts the entry.
func LedgerStep(key, by string, to handoff.Status) ledger.Step {
	s := ledger.Step{Key: key, Caller: owner, Owner: by, Args: "args", To: to, At: since}
	switch to {
	case "":
		s.Adopt = true
	case handoff.StatusAccepted:
		s.New = true
		s.Set = ledger.Facts{Print: "call", ClientID: key, Prompt: "fix it", Title: "auth refactor", Why: "continued"}
	case handoff.StatusDispatching:
		s.New, s.Attempt = true, 1
		s.Set = ledger.Facts{
			ClientID: key, Target: handoff.Target{Server: "bigpc", Project: "api", Thread: "t1"}, Watermark: "w1"}
	case handoff.StatusStarted:
		s.Set.Turn = "turn-1"
	case handoff.StatusCompleted:
		s.Set.Outcome, s.Set.Tests, s.Set.Spoken = handoff.OutcomeResult, handoff.TestsFailed, "One test fails."
	}
	return s
}

var ledgerPath = []handoff.Status{
	handoff.StatusAccepted, handoff.StatusDispatching, handoff.StatusStarted, handoff.StatusCompleted,
	handoff.StatusDelivered,
}

// Advance makes a step and fails the test unless the store answers as [ledger.Entry.Apply] does for e, the present
// entry. It returns the new entry.
func Advance(t *testing.T, l ledger.Ledger, e ledger.Entry, s ledger.Step) ledger.Entry {
	t.Helper()
	after, wantErr := e.Apply(s)
	want := after
	if _, err := s.Check(); err != nil { // no store is asked
		want = ledger.Entry{}
	}
	got, err := l.Advance(t.Context(), s)
	if got != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Fatalf("step %+v of\n%+v gave\n%+v, %v, want\n%+v, %v", s, e, got, err, want, wantErr)
	}
	return after
}

// opened fails the test unless exactly these are open, in this order, for the caller of the tests and for
// all.
func opened(t *testing.T, l ledger.Ledger, want ...ledger.Entry) {
	t.Helper()
	got, err := l.Open(t.Context(), owner)
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("open are %+v, %v, want %+v", got, err, want)
	}
	if got, err = l.OpenAll(t.Context()); err != nil || !slices.Equal(got, want) {
		t.Fatalf("open of all are %+v, %v, want %+v", got, err, want)
	}
}

// testLife walks through every status, each step written twice, and looks what is open meanwhile.
func testLife(t *testing.T, l Store) {
	opened(t, l)
	var e ledger.Entry
	for _, to := range ledgerPath {
		s := LedgerStep("key", "a", to)
		e = Advance(t, l, e, s)
		e = Advance(t, l, e, s)
		if e.Status != to {
			t.Fatalf("%s after a step to %s", e.Status, to)
		}
		if to == handoff.StatusDelivered {
			opened(t, l)
		} else {
			opened(t, l, e)
		}
	}
	e = Advance(t, l, e, LedgerStep("key", "a", handoff.StatusAccepted)) // the same request again: known, not open
	e = Advance(t, l, e, LedgerStep("key", "b", ""))
	if e.Owner != "b" || e.Status != handoff.StatusDelivered {
		t.Fatalf("adopted: %+v", e)
	}
	opened(t, l)
}

// testTable makes random steps and compares each answer with that of the table.
func testTable(t *testing.T, l Store) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		var e ledger.Entry
		for range 12 {
			bytes := [4]byte{}
			for i := range bytes {
				bytes[i] = byte(random.Uint32())
			}
			e = Advance(t, l, e, RandomStep(fmt.Sprint("key-", round), bytes))
		}
	}
}

// RandomStep decodes bytes to a step of any owner, status, attempt and texts. Most steps are valid.
func RandomStep(key string, b [4]byte) ledger.Step {
	pick := func(n byte, of ...string) string { return of[int(n)%len(of)] }
	to := append([]handoff.Status{""}, ledgerPath...)[int(b[0]%8)%6]
	s := LedgerStep(key, pick(b[0]/8, "a", "a", "b"), to)
	s.New, s.Args = b[0]/24%2 == 0, pick(b[0]/48, "args", "args", "args", "others")
	s.New = s.New && !s.Adopt
	s.Again = s.New && b[3]/8%2 == 0
	s.At = since.Add(time.Duration(b[1]) * time.Millisecond)
	if to == handoff.StatusDispatching {
		s.Attempt = 1 + int(b[1])%3
	}
	if to == handoff.StatusStarted {
		s.Set.Turn = handoff.TurnID(pick(b[1], "turn-1", "turn-1", "turn-2"))
	}
	if to == handoff.StatusCompleted {
		s.Set.Outcome = handoff.Outcome(pick(b[1], "result", "failed", "interrupted", "cancelled", "unknown"))
	}
	if !s.Adopt {
		s.Set.Title, s.Set.Code = pick(b[2], "", "one", "another", "\x00\xff"), handoff.Code(pick(b[2]/4, "", "busy"))
		s.Set.Watermark = handoff.TurnID(pick(b[2]/8, "", "w2"))
		s.Set.Target = handoff.Target{Server: pick(b[3], "", "laptop"), Project: pick(b[3]/2, "", "web"),
			Thread: pick(b[3]/4, "", "t2")}
	}
	return s
}

// testOneWinner: of many owners that start the same handoff at once, one succeeds.
func testOneWinner(t *testing.T, l Store) {
	const owners = 16
	errs := make([]error, owners)
	var all sync.WaitGroup
	for i := range owners {
		all.Go(func() {
			s := LedgerStep("key", fmt.Sprint("owner-", i), handoff.StatusDispatching)
			if _, errs[i] = l.Advance(t.Context(), s); errs[i] == nil {
				_, errs[i] = l.Advance(t.Context(), s)
			}
		})
	}
	all.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if handoff.CodeOf(err) != handoff.CodeTakenOver {
			t.Errorf("a loser was told %v", err)
		}
	}
	if won != 1 {
		t.Fatalf("%d won", won)
	}
}

func testOpenOrder(t *testing.T, l Store) {
	const n = 300
	var want []ledger.Entry
	for i := range n {
		s := LedgerStep(fmt.Sprintf("key-%03d", (i*7)%n), "a", handoff.StatusDispatching)
		s.At = since.Add(time.Duration(i) * time.Second)
		e := Advance(t, l, ledger.Entry{}, s)
		if i%3 == 0 { // these are delivered and gone
			for _, to := range ledgerPath[2:] {
				e = Advance(t, l, e, LedgerStep(e.Key, "a", to))
			}
		} else {
			want = append(want, e)
		}
	}
	opened(t, l, want...)
}

// testToldAgain writes entries into a store that came back empty. One step with all facts makes the entry what it was;
// the same step again changes nothing.
func testToldAgain(t *testing.T, l Store) {
	var want []ledger.Entry
	facts := LedgerStep("", "a", handoff.StatusDispatching).Set
	for i, to := range ledgerPath[1:] {
		key := fmt.Sprint("key-", i)
		s := LedgerStep(key, "a", to)
		s.New, s.At = true, since.Add(time.Duration(i)*time.Second)
		facts.ClientID, facts.Turn, facts.Outcome, facts.Tests, facts.Spoken = key, s.Set.Turn, s.Set.Outcome, s.Set.Tests,
			s.Set.Spoken
		if to == handoff.StatusDelivered { // no entry is made as delivered
			Advance(t, l, ledger.Entry{}, s)
			continue
		}
		s.Set = facts
		e := Advance(t, l, ledger.Entry{}, s)
		if e.Facts != facts || e.Status != to {
			t.Fatalf("told %+v: %+v", s, e)
		}
		again := s
		again.At = s.At.Add(time.Hour)
		if after := Advance(t, l, e, again); after != e {
			t.Fatalf("told twice: %+v, before %+v", after, e)
		}
		want = append(want, e)
	}
	opened(t, l, want...)
}

func testLedgerCallers(t *testing.T, l Store) {
	for i, c := range hostile() {
		s := LedgerStep("key", "a", handoff.StatusAccepted)
		s.Caller, s.Args, s.At = c, fmt.Sprint("args-", i), since.Add(time.Duration(i)*time.Second)
		if _, err := l.Advance(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range hostile() {
		got, err := l.Open(t.Context(), c)
		if err != nil || len(got) != 1 || got[0].Caller != c || got[0].Args != fmt.Sprint("args-", i) {
			t.Fatalf("%v has %+v, %v", c, got, err)
		}
	}
	all, err := l.OpenAll(t.Context())
	if err != nil || len(all) != len(hostile()) {
		t.Fatalf("all: %d, %v", len(all), err)
	}
	for i, c := range hostile() {
		if all[i].Caller != c {
			t.Errorf("%d is of %v, want %v", i, all[i].Caller, c)
		}
	}
}

func testLedgerWords(t *testing.T, l Store) {
	s := LedgerStep("key", "a\r\nDEL key", handoff.StatusDispatching)
	odd := "quote \" \\ \x00 日本語 , ,started, -1\r\n"
	s.Set = ledger.Facts{
		Print: odd, ClientID: odd, Target: handoff.Target{Server: odd, Project: odd, Thread: odd},
		Watermark: handoff.TurnID(odd),
		Turn:      handoff.TurnID(odd), Prompt: odd, Title: odd, Why: odd, Code: handoff.Code(odd), Spoken: odd,
		Asker: odd, Parent: handoff.RunID(odd), Giver: odd,
	}
	e := Advance(t, l, ledger.Entry{}, s)
	opened(t, l, e)
	if e.Facts != s.Set {
		t.Fatalf("%+v, want %+v", e.Facts, s.Set)
	}
	broken := LedgerStep("broken", "a", handoff.StatusDispatching) // no UTF-8
	broken.Set.Title, broken.Set.Target.Thread = "\xff", "t\xbf1"
	if e := Advance(t, l, ledger.Entry{}, broken); e.Title != "\ufffd" || e.Target.Thread != "t\ufffd1" {
		t.Fatalf("%+v", e)
	}
}

func testNoSteps(t *testing.T, l Store) {
	nobody := LedgerStep("key", "a", handoff.StatusAccepted)
	nobody.Caller = handoff.Caller{User: "alice"}
	third := LedgerStep("key", "a", handoff.StatusDispatching)
	third.Attempt = 3
	for _, s := range []ledger.Step{{}, nobody, third, LedgerStep("", "a", handoff.StatusAccepted)} {
		if _, err := l.Advance(t.Context(), s); handoff.CodeOf(err) != handoff.CodeInternal {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if _, err := l.Open(t.Context(), handoff.Caller{User: "alice"}); err == nil {
		t.Error("a caller without a principal was accepted")
	}
	opened(t, l)
}
