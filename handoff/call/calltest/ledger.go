package calltest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/ledger/ledgertest"
)

// A Ledger is the ledger of a ladder, in memory, as slow and as forgetful as the world says. It implements
// [ledger.Ledger] and [ledger.History]. Its words, one on each line of a world:
//
//	forgetful FROM TO                 it is unreachable then
//	emptied AT                        it forgets everything then
//	lingering DURATION [OUTCOME]      how long it takes to write an outcome, or that one alone
//	slow STATUS DURATION              how long it takes to write that status
//	adopting DURATION                 how long it takes to give an entry another owner
//	entry ID STATUS SERVER THREAD TURN [OUTCOME]
//	                                  an entry of an earlier life; TURN is - for none
type Ledger struct {
	Trace func(ledgertest.Event) // Set once: called with each step
	// Set once: makes a turn of an earlier life, which still runs
	LeftTurn func(turn handoff.TurnID, thread, work string)

	world     *World                           // Set once, like all up to mu
	slow      map[handoff.Status]time.Duration //
	lingering time.Duration                    //
	lingers   handoff.Outcome                  // the outcome that lingering is about; "": each
	adopting  time.Duration                    //
	forgetful [2]time.Duration                 //

	mu      sync.Mutex
	emptied time.Duration           // Guarded by mu, like all that follows; 0: never
	entries map[string]ledger.Entry // by key
	newest  map[string]ledger.Step  // the newest of each entry
	bodies  map[string]ledger.Body  // whole words
	keys    map[string]ledger.Step  // by work: its first step, also when it is forgotten
}

// newLedger returns an empty ledger.
func newLedger(w *World) *Ledger {
	return &Ledger{
		world: w, slow: map[handoff.Status]time.Duration{}, entries: map[string]ledger.Entry{},
		newest: map[string]ledger.Step{}, bodies: map[string]ledger.Body{},
		keys:  map[string]ledger.Step{},
		Trace: func(ledgertest.Event) {}, LeftTurn: func(handoff.TurnID, string, string) {},
	}
}

// word reads a line of a world. It returns false if the line is not about the ledger.
func (l *Ledger) word(line string) bool {
	verb, rest, _ := strings.Cut(line, " ")
	first, more, _ := strings.Cut(rest, " ")
	switch verb {
	case "forgetful":
		l.forgetful = [2]time.Duration{l.world.Duration(first), l.world.Duration(more)}
	case "emptied":
		l.emptied = l.world.Duration(first)
	case "lingering":
		l.lingering, l.lingers = l.world.Duration(first), handoff.Outcome(more)
	case "slow":
		l.slow[handoff.Status(first)] = l.world.Duration(more)
	case "adopting":
		l.adopting = l.world.Duration(first)
	case "entry":
		l.leave(strings.Fields(rest))
	default:
		return false
	}
	return true
}

// leave writes an entry of an earlier life of the router, or an old state of one: ID STATUS SERVER THREAD TURN
// [OUTCOME]; TURN is - for none.
func (l *Ledger) leave(words []string) {
	id, status, target := words[0], handoff.Status(words[1]), handoff.Target{Server: words[2], Thread: words[3]}
	facts := ledger.Facts{ClientID: id, Target: target, Title: l.world.Titles[target.Thread], Prompt: "run the tests"}
	step := ledger.Step{Key: "key-" + id, Caller: Grant.Caller, Owner: id, Args: "args",
		At: l.world.Began.Add(-time.Minute)}
	l.mu.Lock()
	if known, ok := l.keys[id]; ok {
		step.Key, step.Args = known.Key, known.Args
	}
	l.mu.Unlock()
	take := func(to handoff.Status, set ledger.Facts) {
		s := step
		s.To, s.Set, s.New = to, set, to == handoff.StatusDispatching || to == handoff.StatusAccepted
		if to == handoff.StatusDispatching {
			s.Attempt = 1
		}
		if _, _, err := l.apply(s); err != nil {
			l.world.T.Fatal(err)
		}
	}
	if status == handoff.StatusAccepted {
		take(handoff.StatusAccepted, facts)
		return
	}
	take(handoff.StatusDispatching, facts)
	if words[4] != "-" {
		turn := handoff.TurnID(words[4])
		l.LeftTurn(turn, target.Thread, id)
		take(handoff.StatusStarted, ledger.Facts{Turn: turn})
	}
	if status == handoff.StatusCompleted {
		step.At = l.world.Began
		take(handoff.StatusCompleted, ledger.Facts{Outcome: handoff.Outcome(words[5]), Spoken: "It ended before."})
	}
}

// apply applies a step. repeated is true if the entry's newest step is the very same.
func (l *Ledger) apply(s ledger.Step) (_ ledger.Entry, repeated bool, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.emptied > 0 && time.Since(l.world.Began) >= l.emptied {
		l.emptied = 0
		clear(l.entries)
		clear(l.newest)
		l.Trace(ledgertest.Event{Kind: ledgertest.TraceEmpty})
	}
	repeated = l.newest[s.Key] == s
	e, err := l.entries[s.Key].Apply(s)
	event := ledgertest.Event{Step: s, Entry: e}
	if err == nil {
		l.entries[s.Key], l.newest[s.Key] = e, s
		if _, known := l.keys[e.ClientID]; !known {
			l.keys[e.ClientID] = s
		}
		if s.Body.Prompt != "" {
			l.bodies[s.Key] = s.Body
		}
		if body := l.bodies[s.Key]; !s.Keeps() {
			body.Request = ""
			l.bodies[s.Key] = body
		}
	} else {
		event.Code = handoff.AsError(err).Code
	}
	l.Trace(event)
	return e, repeated, err
}

// unreachable returns an error while the ledger is forgetful.
func (l *Ledger) unreachable() error {
	if age := time.Since(l.world.Began); age >= l.forgetful[0] && age < l.forgetful[1] {
		return handoff.Fault(handoff.CodeUnreachable, "the store", "")
	}
	return nil
}

// traceUnanswered traces a step that is not answered in time.
func (l *Ledger) traceUnanswered(s ledger.Step) {
	l.Trace(ledgertest.Event{Step: s, Code: handoff.CodeUnreachable})
}

// Advance implements [ledger.Ledger].
func (l *Ledger) Advance(ctx context.Context, s ledger.Step) (ledger.Entry, error) {
	if err := l.unreachable(); err != nil {
		l.traceUnanswered(s)
		return ledger.Entry{}, err
	}
	// A writer that waits longer than this may go on.
	defer time.AfterFunc(time.Second-time.Millisecond, func() { l.traceUnanswered(s) }).Stop()
	if s.To == handoff.StatusCompleted && l.lingering > 0 && (l.lingers == "" || l.lingers == s.Set.Outcome) {
		if err := l.world.Wait(ctx, l.lingering); err != nil {
			return ledger.Entry{}, err
		}
	}
	if s.Adopt {
		if err := l.world.Wait(ctx, l.adopting); err != nil {
			return ledger.Entry{}, err
		}
	}
	if err := l.world.Wait(ctx, l.slow[s.To]); err != nil {
		return ledger.Entry{}, err
	}
	e, repeated, err := l.apply(s)
	if repeated { // the writer repeats steps, in case that the store has lost them
		return e, nil
	}
	what := strings.TrimSpace(string(s.To) + " " + string(s.Set.Outcome))
	if s.Adopt {
		what = "adopted"
	}
	if s.Attempt > 1 {
		what += " again on " + s.Set.Target.Thread
	}
	if err != nil {
		what += ": " + err.Error()
	}
	l.world.Record("store", "ledger "+e.ClientID, what)
	return e, err
}

// History implements [ledger.History]. It is empty: a call asks for none.
func (l *Ledger) History(context.Context, handoff.Caller, ledger.HistoryQuery) (ledger.HistoryPage, error) {
	return ledger.HistoryPage{}, nil
}

// Body implements [ledger.History]. It returns the body of the newest step that had one.
func (l *Ledger) Body(_ context.Context, _ handoff.Caller, key string) (ledger.Body, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	body, ok := l.bodies[key]
	return body, ok, nil
}

// Find implements [ledger.History].
func (l *Ledger) Find(_ context.Context, _ handoff.Caller, key string) (ledger.Entry, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.entries[key]
	return e, ok, nil
}

// Entries returns all entries, in the order of their keys.
func (l *Ledger) Entries() []ledger.Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Values(l.entries), func(a, b ledger.Entry) int { return strings.Compare(a.Key, b.Key) })
}

// summary returns the state of each entry.
func (l *Ledger) summary() string {
	var out []string
	for _, e := range l.Entries() {
		out = append(out, strings.TrimSpace(e.ClientID+" "+string(e.Status)+" "+string(e.Outcome)))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// OpenAll implements [ledger.Ledger].
func (l *Ledger) OpenAll(context.Context) ([]ledger.Entry, error) {
	if err := l.unreachable(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(l.Entries(), func(e ledger.Entry) bool { return e.Status == handoff.StatusDelivered }), nil
}

// Open implements [ledger.Ledger]: there is one caller.
func (l *Ledger) Open(ctx context.Context, _ handoff.Caller) ([]ledger.Entry, error) {
	return l.OpenAll(ctx)
}
