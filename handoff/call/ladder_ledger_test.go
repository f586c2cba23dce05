package call

import (
	"context"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/call/calltest"
	"switchboard/handoff/ledger"
	"switchboard/handoff/ledger/ledgertest"
)

// addEntry is what a former life of the router left behind, or how work stood a while ago.
func (w *world) addEntry(words []string) {
	id, status, target := words[0], handoff.Status(words[1]), handoff.Target{Server: words[2], Thread: words[3]}
	facts := ledger.Facts{ClientID: id, Target: target, Title: w.Titles[target.Thread], Prompt: "run the tests"}
	step := ledger.Step{Key: "key-" + id, Caller: calltest.Grant.Caller, Owner: id, Args: "args", At: w.Began.Add(-time.Minute)}
	w.mu.Lock()
	for _, e := range w.trace {
		if e.Entry.ClientID == id {
			step.Key, step.Args = e.Entry.Key, e.Entry.Args
		}
	}
	w.mu.Unlock()
	take := func(to handoff.Status, set ledger.Facts) {
		s := step
		s.To, s.Set, s.New = to, set, to == handoff.StatusDispatching || to == handoff.StatusAccepted
		if to == handoff.StatusDispatching {
			s.Attempt = 1
		}
		if _, _, err := w.apply(s); err != nil {
			w.T.Fatal(err)
		}
	}
	if status == handoff.StatusAccepted {
		take(handoff.StatusAccepted, facts)
		return
	}
	take(handoff.StatusDispatching, facts)
	if words[4] != "-" {
		turn := handoff.TurnID(words[4])
		w.traceTurn(id)
		w.addTurn(turn, target.Thread, w.Plans[target.Thread])
		take(handoff.StatusStarted, ledger.Facts{Turn: turn})
	}
	if status == handoff.StatusCompleted {
		step.At = w.Began
		take(handoff.StatusCompleted, ledger.Facts{Outcome: handoff.Outcome(words[5]), Spoken: "It ended before."})
	}
}

// apply is the ledger's own table over a map. It tells whether the very same step was written before.
func (w *world) apply(s ledger.Step) (_ ledger.Entry, repeated bool, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.emptied > 0 && time.Since(w.Began) >= w.emptied {
		w.emptied = 0
		clear(w.ledger)
		clear(w.written)
		w.trace = append(w.trace, ledgertest.Event{Kind: ledgertest.TraceEmpty})
	}
	repeated = w.written[s.Key] == s
	e, err := w.ledger[s.Key].Apply(s)
	event := ledgertest.Event{Step: s, Entry: e}
	if err == nil {
		w.ledger[s.Key], w.written[s.Key] = e, s
		if s.Body.Prompt != "" {
			w.bodies[s.Key] = s.Body
		}
	} else {
		event.Code = handoff.AsError(err).Code
	}
	w.trace = append(w.trace, event)
	return e, repeated, err
}

// Advance writes a step, if the ledger is there.
func (w *world) Advance(ctx context.Context, s ledger.Step) (ledger.Entry, error) {
	if age := time.Since(w.Began); age >= w.forgetful[0] && age < w.forgetful[1] {
		w.traceMute(s)
		return ledger.Entry{}, handoff.Fault(handoff.CodeUnreachable, "the store", "")
	}
	if s.To == handoff.StatusCompleted && w.lingering > 0 && (w.lingers == "" || w.lingers == s.Set.Outcome) {
		late := time.AfterFunc(time.Second-time.Millisecond, func() { w.traceMute(s) }) // who waits longer than that may go on
		err := w.Wait(ctx, w.lingering)
		late.Stop()
		if err != nil {
			return ledger.Entry{}, err
		}
	}
	if s.Adopt {
		if err := w.Wait(ctx, w.adopting); err != nil {
			return ledger.Entry{}, err
		}
	}
	if err := w.Wait(ctx, w.slow[s.To]); err != nil {
		return ledger.Entry{}, err
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

// History is empty: a call asks for none.
func (w *world) History(context.Context, handoff.Caller, ledger.HistoryQuery) (ledger.HistoryPage, error) {
	return ledger.HistoryPage{}, nil
}

// Body returns the whole words of the newest step that had some.
func (w *world) Body(_ context.Context, _ handoff.Caller, key string) (ledger.Body, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	body, ok := w.bodies[key]
	return body, ok, nil
}

// OpenAll returns every entry that is not delivered.
func (w *world) OpenAll(context.Context) ([]ledger.Entry, error) {
	if age := time.Since(w.Began); age >= w.forgetful[0] && age < w.forgetful[1] {
		return nil, handoff.Fault(handoff.CodeUnreachable, "the store", "")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var open []ledger.Entry
	for _, e := range w.ledger {
		if e.Status != handoff.StatusDelivered {
			open = append(open, e)
		}
	}
	slices.SortFunc(open, func(a, b ledger.Entry) int { return strings.Compare(a.Key, b.Key) })
	return open, nil
}

// Open is OpenAll, there is one caller.
func (w *world) Open(ctx context.Context, _ handoff.Caller) ([]ledger.Entry, error) {
	return w.OpenAll(ctx)
}

// Notify records what is told outside of calls.
func (w *world) Notify(n handoff.Notice) {
	w.record("page", "notice", string(n.Kind)+" "+n.Handoff+" "+n.Text)
}

// Audit records decisions before they are given.
func (w *world) Audit(ctx context.Context, rec handoff.AuditRecord) error {
	if err := w.World.Audit(ctx, rec); err != nil {
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
