package ledger_test

import (
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/ledger/ledgertest"
)

// entryAt is an entry of owner "a" in a status, made by legal steps.
func entryAt(t *testing.T, status handoff.Status) ledger.Entry {
	t.Helper()
	var e ledger.Entry
	for _, to := range ledgertest.Statuses[1:] {
		if e.Status == status {
			break
		}
		var err error
		if e, err = e.Apply(ledgertest.StepTo("a", to)); err != nil {
			t.Fatalf("to %s: %v", to, err)
		}
	}
	return e
}

// Every pair of ledgertest.Statuses, for the owner, a stranger and who adopted the entry.
func TestLedgerTable(t *testing.T) {
	const ok, past, bad = handoff.Code(""), handoff.CodeTakenOver, handoff.CodeInternal
	table := map[handoff.Status][3][5]handoff.Code{ // to accepted, dispatching, started, completed, delivered
		handoff.StatusAccepted:    {{ok, ok, ok, ok, bad}, {past, past, past, past, past}, {ok, bad, bad, ok, bad}},
		handoff.StatusDispatching: {{past, ok, ok, ok, bad}, {past, past, past, past, past}, {past, ok, ok, ok, bad}},
		handoff.StatusStarted:     {{past, past, ok, ok, bad}, {past, past, past, past, past}, {past, past, ok, ok, bad}},
		handoff.StatusCompleted:   {{past, past, past, ok, ok}, {past, past, past, past, past}, {past, past, past, ok, ok}},
		handoff.StatusDelivered: {
			{past, past, past, past, ok}, {past, past, past, past, past}, {past, past, past, past, ok},
		},
	}
	for from, rows := range table {
		for who, row := range rows {
			for i, want := range row {
				e, owner := entryAt(t, from), "a"
				if who > 0 {
					owner = "b"
				}
				if who == 2 {
					var err error
					if e, err = e.Apply(ledgertest.StepTo("b", "")); err != nil || e.Owner != "b" || !e.Inherited || e.Status != from {
						t.Fatalf("adopt %s: %+v, %v", from, e, err)
					}
				}
				to := ledgertest.Statuses[i+1]
				after, err := e.Apply(ledgertest.StepTo(owner, to))
				if handoff.CodeOf(err) != want {
					t.Errorf("%s to %s by %d: %v, want code %q", from, to, who, err, want)
				}
				if err != nil && after != e || err == nil && after.Status != to {
					t.Errorf("%s to %s by %d: %+v", from, to, who, after)
				}
			}
		}
	}
}

func TestLedgerNothingThere(t *testing.T) {
	for i, want := range []handoff.Code{handoff.CodeNotFound, "", "", "", "", handoff.CodeNotFound} {
		s := ledgertest.StepTo("a", ledgertest.Statuses[i])
		s.New = i > 0
		if _, err := (ledger.Entry{}).Apply(s); handoff.CodeOf(err) != want {
			t.Errorf("new %q: %v, want %q", s.To, err, want)
		}
		s.New = false
		if _, err := (ledger.Entry{}).Apply(s); handoff.CodeOf(err) != handoff.CodeNotFound {
			t.Errorf("%q: %v", s.To, err)
		}
	}
	cancelled := ledgertest.StepTo("a", handoff.StatusCompleted)
	cancelled.New, cancelled.Set.Outcome = true, handoff.OutcomeCancelled
	if e, err := (ledger.Entry{}).Apply(cancelled); err != nil || e.Accepted != e.Ended || e.Ended.IsZero() {
		t.Errorf("cancelled at once: %+v, %v", e, err)
	}
}

// A turn that was acknowledged and then found under another id is found there by the next life too.
func TestLedgerOtherTurn(t *testing.T) {
	for _, owner := range []string{"a", "b"} {
		e := entryAt(t, handoff.StatusStarted)
		if owner == "b" {
			e, _ = e.Apply(ledgertest.StepTo("b", ""))
		}
		other := ledgertest.StepTo(owner, handoff.StatusStarted)
		other.Set.Turn = "turn-2"
		after, err := e.Apply(other)
		if err != nil || after.Turn != "turn-2" || after.Status != handoff.StatusStarted || after.Watermark != e.Watermark {
			t.Errorf("%+v, %v", after, err)
		}
	}
}

// The first outcome stays, whatever is written later.
func TestLedgerOneOutcome(t *testing.T) {
	e := entryAt(t, handoff.StatusCompleted)
	other := ledgertest.StepTo("a", handoff.StatusCompleted)
	other.Set = ledger.Facts{Outcome: handoff.OutcomeResult, Spoken: "done"}
	if after, err := e.Apply(other); err != nil || after != e {
		t.Fatalf("%+v, %v", after, err)
	}
}

func TestLedgerConflict(t *testing.T) {
	for _, from := range ledgertest.Statuses[1:] {
		e := entryAt(t, from)
		for _, to := range ledgertest.Statuses {
			s := ledgertest.StepTo("a", to)
			s.Args = "others"
			if after, err := e.Apply(s); handoff.CodeOf(err) != handoff.CodeConflict || after != e {
				t.Errorf("%s to %q: %v", from, to, err)
			}
		}
	}
}

// The start may be sent once more, by who sent the first one, and the fresh watermark counts.
func TestLedgerAttempts(t *testing.T) {
	again := ledgertest.StepTo("a", handoff.StatusDispatching)
	again.Attempt, again.Set.Watermark = 2, ""
	e := entryAt(t, handoff.StatusDispatching)
	if _, err := entryAt(t, handoff.StatusAccepted).Apply(again); handoff.CodeOf(err) != handoff.CodeInternal {
		t.Errorf("a second attempt without a first: %v", err)
	}
	inherited, err := e.Apply(ledgertest.StepTo("b", ""))
	if err != nil {
		t.Fatal(err)
	}
	stranger := again
	stranger.Owner = "b"
	if _, err := inherited.Apply(stranger); handoff.CodeOf(err) != handoff.CodeInternal {
		t.Errorf("an inherited start was sent again: %v", err)
	}
	if e, err = e.Apply(again); err != nil || e.Attempt != 2 || e.Watermark != "" || e.Target.Thread != "t1" {
		t.Fatalf("again: %+v, %v", e, err)
	}
	if _, err := e.Apply(again); err != nil {
		t.Errorf("the same again: %v", err)
	}
	if late, err := entryAt(t, handoff.StatusStarted).Apply(again); err != nil || late.Turn != "" || late.Attempt != 2 {
		t.Errorf("acknowledged, but it never ran: %+v, %v", late, err)
	}
	if _, err := e.Apply(ledgertest.StepTo("a", handoff.StatusDispatching)); handoff.CodeOf(err) != handoff.CodeTakenOver {
		t.Errorf("the first attempt after the second: %v", err)
	}
	second := e
	if e, err = e.Apply(ledgertest.StepTo("a", handoff.StatusStarted)); err != nil || e.Attempt != 2 {
		t.Fatalf("started: %+v, %v", e, err)
	}
	if _, err := e.Apply(again); err == nil || second.Status != handoff.StatusDispatching {
		t.Error("a second start was sent a second time")
	}
	again.Attempt = 3
	if _, err := second.Apply(again); handoff.CodeOf(err) != handoff.CodeInternal {
		t.Errorf("a third attempt: %v", err)
	}
}

func TestLedgerFacts(t *testing.T) {
	e := entryAt(t, handoff.StatusStarted)
	s := ledgertest.StepTo("a", handoff.StatusCompleted)
	s.Set.Spoken, s.Set.Prompt = strings.Repeat("ü", 4000), strings.Repeat("x", 201)
	done, err := e.Apply(s)
	if err != nil {
		t.Fatal(err)
	}
	if done.Turn != "turn-1" || done.Watermark != "w" || done.Target.Server != "bigpc" || done.ClientID != "key" {
		t.Errorf("words were lost: %+v", done)
	}
	if len(done.Spoken) > 4096 || len(done.Spoken) < 4090 ||
		len(done.Prompt) > 200 || !strings.HasSuffix(done.Prompt, "…") {
		t.Errorf("not bounded: %d and %d bytes", len(done.Spoken), len(done.Prompt))
	}
	if want := ledgertest.StepTo("a", "").At.Truncate(time.Millisecond); !done.Accepted.Equal(want) || done.Ended != want {
		t.Errorf("times %v and %v", done.Accepted, done.Ended)
	}
}

func TestLedgerStepsThatAreNone(t *testing.T) {
	long := strings.Repeat("x", 513)
	for name, change := range map[string]func(*ledger.Step){
		"no key":              func(s *ledger.Step) { s.Key = "" },
		"no owner":            func(s *ledger.Step) { s.Owner = "" },
		"no arguments":        func(s *ledger.Step) { s.Args = "" },
		"no caller":           func(s *ledger.Step) { s.Caller.Principal = "" },
		"nowhere":             func(s *ledger.Step) { s.To = "" },
		"somewhere":           func(s *ledger.Step) { s.To = "somewhere" },
		"adopt and move":      func(s *ledger.Step) { s.Adopt = true },
		"adopt and write":     func(s *ledger.Step) { s.Adopt, s.To = true, "" },
		"no turn":             func(s *ledger.Step) { s.Set.Turn = "" },
		"an outcome too soon": func(s *ledger.Step) { s.Set.Outcome = handoff.OutcomeResult },
		"no outcome":          func(s *ledger.Step) { s.To = handoff.StatusCompleted },
		"an attempt too late": func(s *ledger.Step) { s.Attempt = 1 },
		"no attempt":          func(s *ledger.Step) { s.To = handoff.StatusDispatching },
		"a third attempt":     func(s *ledger.Step) { s.To, s.Attempt = handoff.StatusDispatching, 3 },
		"a negative attempt":  func(s *ledger.Step) { s.To, s.Attempt = handoff.StatusDispatching, -1 },
		"no time":             func(s *ledger.Step) { s.At = time.Time{} },
		"a long id":           func(s *ledger.Step) { s.Set.Target.Thread = long },
	} {
		s := ledgertest.StepTo("a", handoff.StatusStarted)
		change(&s)
		if _, err := s.Check(); handoff.CodeOf(err) != handoff.CodeInternal {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLedgerKey(t *testing.T) {
	seen := map[string]string{}
	for _, one := range [][2]string{
		{"s1", "c1"}, {"s1", "c2"}, {"s2", "c1"}, {"s1 c", "1"}, {"s1", "c 1"}, {"", "s1 c1"},
	} {
		key := ledger.Key(one[0], one[1])
		if len(key) != 20 || strings.Trim(key, "abcdefghijklmnopqrstuvwxyz234567") != "" ||
			key != ledger.Key(one[0], one[1]) {
			t.Errorf("key %q", key)
		}
		if seen[key] != "" {
			t.Errorf("%q has the key of %q", one, seen[key])
		}
		seen[key] = one[0] + "|" + one[1]
	}
}

// TestLedgerFreeKey: a key is given anew only when nothing was sent under it and nobody wanted it so, and only to
// another owner; then what was asked before does not count.
func TestLedgerFreeKey(t *testing.T) {
	for name, tt := range map[string]struct {
		outcome   handoff.Outcome
		code      handoff.Code
		attempt   int
		turn      handoff.TurnID
		delivered bool
		want      bool
	}{
		"failed before it was sent":      {handoff.OutcomeFailed, handoff.CodeUnreachable, 0, "", true, true},
		"the store was down":             {handoff.OutcomeFailed, handoff.CodeStoreDown, 1, "", true, true},
		"not begun":                      {handoff.OutcomeCancelled, handoff.CodeNotBegun, 0, "", false, true},
		"the process ended":              {handoff.OutcomeCancelled, handoff.CodeShutdown, 0, "", false, true},
		"not begun, and dropped":         {handoff.OutcomeCancelled, handoff.CodeNotBegun, 0, "", true, false},
		"paused":                         {handoff.OutcomeCancelled, handoff.CodePaused, 0, "", false, false},
		"cancelled":                      {handoff.OutcomeCancelled, "", 0, "", true, false},
		"refused by the agent":           {handoff.OutcomeFailed, handoff.CodeOverloaded, 1, "", true, false},
		"failed":                         {handoff.OutcomeFailed, handoff.CodeAgentFailed, 1, "turn", true, false},
		"a turn, in a store of long ago": {handoff.OutcomeFailed, handoff.CodeStoreDown, 0, "turn", true, false},
		"unknown":                        {handoff.OutcomeUnknown, handoff.CodeAgentGone, 1, "", true, false},
		"done":                           {handoff.OutcomeResult, "", 1, "turn", true, false},
		"still open":                     {"", "", 0, "", false, false},
	} {
		e := entryAt(t, handoff.StatusAccepted)
		e.Outcome, e.Code, e.Attempt, e.Turn = tt.outcome, tt.code, tt.attempt, tt.turn
		switch {
		case tt.delivered:
			e.Status = handoff.StatusDelivered
		case tt.outcome != "":
			e.Status = handoff.StatusCompleted
		}
		for _, to := range []handoff.Status{handoff.StatusAccepted, handoff.StatusDispatching} {
			s := ledgertest.StepTo("b", to)
			s.New, s.Again, s.Args, s.Set.Prompt = true, true, "other words", "other words"
			after, err := e.Apply(s)
			if (err == nil) != tt.want || err == nil &&
				(after.Owner != "b" || after.Args != s.Args || after.Outcome != "" || after.Code != "" || after.Status != to) {
				t.Errorf("%s, to %s: %+v, %v", name, to, after, err)
			}
			if s.Again = false; tt.want {
				if _, err := e.Apply(s); err == nil {
					t.Errorf("%s: a former owner's step made it anew", name)
				}
			}
		}
		if same := ledgertest.StepTo("a", handoff.StatusCompleted); tt.want { // its own owner says it once more
			if same.New, same.Again = true, true; e.Anew(same) {
				t.Errorf("%s: its owner makes it anew", name)
			}
		}
	}
}
