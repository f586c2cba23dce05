package handoff

import (
	"context"
	"slices"
	"strings"
	"time"
)

// addEntry is what a former life of the router left behind, or how work stood a while ago.
func (w *world) addEntry(words []string) {
	id, status, target := words[0], Status(words[1]), Target{Server: words[2], Thread: words[3]}
	facts := LedgerFacts{ClientID: id, Target: target, Title: w.titles[target.Thread], Prompt: "run the tests"}
	step := LedgerStep{Key: "key-" + id, Caller: ladderCaller, Owner: id, Args: "args", At: w.began.Add(-time.Minute)}
	w.mu.Lock()
	for _, e := range w.trace {
		if e.Entry.ClientID == id {
			step.Key, step.Args = e.Entry.Key, e.Entry.Args
		}
	}
	w.mu.Unlock()
	take := func(to Status, set LedgerFacts) {
		s := step
		s.To, s.Set, s.New = to, set, to == StatusDispatching || to == StatusAccepted
		if to == StatusDispatching {
			s.Attempt = 1
		}
		if _, _, err := w.apply(s); err != nil {
			w.t.Fatal(err)
		}
	}
	if status == StatusAccepted {
		take(StatusAccepted, facts)
		return
	}
	take(StatusDispatching, facts)
	if words[4] != "-" {
		turn := TurnID(words[4])
		w.traceTurn(id)
		w.addTurn(turn, target.Thread, w.plans[target.Thread])
		take(StatusStarted, LedgerFacts{Turn: turn})
	}
	if status == StatusCompleted {
		step.At = w.began
		take(StatusCompleted, LedgerFacts{Outcome: Outcome(words[5]), Spoken: "It ended before."})
	}
}

// apply is the ledger's own table over a map. It tells whether the very same step was written before.
func (w *world) apply(s LedgerStep) (_ LedgerEntry, repeated bool, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.emptied > 0 && time.Since(w.began) >= w.emptied {
		w.emptied = 0
		clear(w.ledger)
		clear(w.written)
		w.trace = append(w.trace, LedgerEvent{Kind: TraceEmpty})
	}
	repeated = w.written[s.Key] == s
	e, err := w.ledger[s.Key].Apply(s)
	event := LedgerEvent{Step: s, Entry: e}
	if err == nil {
		w.ledger[s.Key], w.written[s.Key] = e, s
	} else {
		event.Code = AsError(err).Code
	}
	w.trace = append(w.trace, event)
	return e, repeated, err
}

// Advance writes a step, if the ledger is there.
func (w *world) Advance(ctx context.Context, s LedgerStep) (LedgerEntry, error) {
	if age := time.Since(w.began); age >= w.forgetful[0] && age < w.forgetful[1] {
		w.traceMute(s)
		return LedgerEntry{}, Fault(CodeUnreachable, "the store", "")
	}
	if s.To == StatusCompleted && w.lingering > 0 && (w.lingers == "" || w.lingers == s.Set.Outcome) {
		late := time.AfterFunc(time.Second-time.Millisecond, func() { w.traceMute(s) }) // who waits longer than that may go on
		err := w.wait(ctx, w.lingering)
		late.Stop()
		if err != nil {
			return LedgerEntry{}, err
		}
	}
	if s.Adopt {
		if err := w.wait(ctx, w.adopting); err != nil {
			return LedgerEntry{}, err
		}
	}
	if err := w.wait(ctx, w.slow[s.To]); err != nil {
		return LedgerEntry{}, err
	}
	e, repeated, err := w.apply(s)
	if repeated { // told again in case that it was forgotten
		return e, nil
	}
	id, what := e.ClientID, strings.TrimSpace(string(s.To)+" "+string(s.Set.Outcome))
	if s.Adopt {
		what = "adopted"
	}
	if s.Attempt > 1 {
		what += " again on " + s.Set.Target.Thread
	}
	if err != nil {
		what += ": " + err.Error()
	}
	w.record("store", "ledger "+id, what)
	return e, err
}

// OpenAll returns every entry that is not delivered.
func (w *world) OpenAll(context.Context) ([]LedgerEntry, error) {
	if age := time.Since(w.began); age >= w.forgetful[0] && age < w.forgetful[1] {
		return nil, Fault(CodeUnreachable, "the store", "")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var open []LedgerEntry
	for _, e := range w.ledger {
		if e.Status != StatusDelivered {
			open = append(open, e)
		}
	}
	slices.SortFunc(open, func(a, b LedgerEntry) int { return strings.Compare(a.Key, b.Key) })
	return open, nil
}

// Open is OpenAll, there is one caller.
func (w *world) Open(ctx context.Context, _ Caller) ([]LedgerEntry, error) { return w.OpenAll(ctx) }

// Notify records what is told outside of calls.
func (w *world) Notify(n Notice) {
	w.record("page", "notice", string(n.Kind)+" "+n.Handoff+" "+n.Text)
}

// Audit records decisions before they are given.
func (w *world) Audit(ctx context.Context, rec AuditRecord) error {
	if err := w.wait(ctx, w.audit); err != nil {
		return err
	}
	if err := w.failure("audit x", "the audit"); err != nil {
		return err
	}
	w.record("agent", "audit", strings.TrimSpace(string(rec.Decision)+" by "+rec.By+" "+rec.Tier))
	return nil
}

// inLedger tells how the ledger stands at the end.
func (w *world) inLedger() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, e := range w.ledger {
		out = append(out, strings.TrimSpace(e.ClientID+" "+string(e.Status)+" "+string(e.Outcome)))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
