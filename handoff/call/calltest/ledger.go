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
)

// A Ledger is the store of a ladder, in memory, as slow and as forgetful as the world says. Its words, one on each line
// of a world:
//
//	forgetful FROM TO                 it is unreachable then
//	emptied AT                        it forgets everything then
//	lingering DURATION [OUTCOME]      how long it takes to write an outcome, or that one alone
//	slow STATUS DURATION              how long it takes to write that status
//	adopting DURATION                 how long it takes to give a caller to another life
//	entry ID STATUS SERVER THREAD TURN [OUTCOME]
//	                                  work of an earlier life; TURN is - for none
//
// What is stored of a life is [Ledger.For].
type Ledger struct {
	Trace func(Event) // Set once: called with each handoff that is written
	// Set once: makes a turn of an earlier life, which still runs
	LeftTurn func(turn handoff.TurnID, thread, work string)

	world     *World                           // Set once, like all up to mu
	slow      map[handoff.Status]time.Duration //
	lingering time.Duration                    //
	lingers   handoff.Outcome                  // the outcome that lingering is about; "": each
	adopting  time.Duration                    //
	forgetful [2]time.Duration                 //

	mu      sync.Mutex
	emptied time.Duration // Guarded by mu, like all that follows; 0: never
	life    string        // that has the caller
	read    time.Time     // when it was read last
	kept    ledger.Kept   // what there is of the caller
}

// newLedger returns an empty ledger.
func newLedger(w *World) *Ledger {
	return &Ledger{
		world: w, slow: map[handoff.Status]time.Duration{}, kept: ledger.NewKept(),
		Trace: func(Event) {}, LeftTurn: func(handoff.TurnID, string, string) {},
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
	case "sticky":
		server, thread := first, more
		thread, title, _ := strings.Cut(thread, " ")
		l.put(handoff.Sticky{Target: handoff.Target{Server: server, Thread: thread}, Title: title,
			Since: l.world.Began.Add(-30 * time.Second)})
	case "entry":
		l.leave(strings.Fields(rest))
	default:
		return false
	}
	return true
}

func (l *Ledger) put(s handoff.Sticky) {
	field, value, err := ledger.EncodeSticky(s, l.world.Began)
	if err != nil {
		l.world.T.Fatal(err)
	}
	l.kept.Documents[ledger.StickyDoc+field] = value
}

// leave writes work of an earlier life of the router, or an old state of some: ID STATUS SERVER THREAD TURN [OUTCOME];
// TURN is - for none.
func (l *Ledger) leave(words []string) {
	id, status := words[0], handoff.Status(words[1])
	e := ledger.Entry{
		Key: "key-" + id, Caller: Grant.Caller, Owner: id, Args: "args", Status: status,
		Accepted: ledger.Millis(l.world.Began.Add(-time.Minute)),
		Facts: ledger.Facts{ClientID: id, Target: handoff.Target{Server: words[2], Thread: words[3]},
			Title: l.world.Titles[words[3]], Prompt: "run the tests"},
	}
	for _, known := range l.Entries() {
		if known.ClientID == id {
			e.Key, e.Args = known.Key, known.Args
		}
	}
	if status != handoff.StatusAccepted {
		e.Attempt = 1
	}
	if status == handoff.StatusCompleted {
		e.Ended, e.Outcome, e.Spoken = ledger.Millis(l.world.Began), handoff.Outcome(words[5]), "It ended before."
	}
	runs := status != handoff.StatusAccepted && words[4] != "-"
	if runs {
		e.Turn = handoff.TurnID(words[4])
	}
	l.Trace(Event{Kind: TraceLeft, ID: id, Entry: e})
	if runs {
		l.LeftTurn(e.Turn, words[3], id)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept.Documents[ledger.HandoffDoc+e.Key] = handoff.Encode(e)
	delete(l.kept.Past, e.Key)
	l.kept.Version = "left " + id
}

// unreachable returns an error while the ledger is forgetful.
func (l *Ledger) unreachable() error {
	if age := time.Since(l.world.Began); age >= l.forgetful[0] && age < l.forgetful[1] {
		return handoff.Fault(handoff.CodeUnreachable, "the store", "")
	}
	return nil
}

// For returns the store as one life of the router has it. Reading takes the caller: other lives write nothing more.
func (l *Ledger) For(life string) Held { return Held{l, life} }

// A Held is the store of one life. It implements [switchboard/handoff/router.Store],
// [switchboard/handoff/homes.Waiting] and [ledger.History].
type Held struct {
	*Ledger
	life string
}

// State implements [switchboard/handoff/router.Store].
func (l Held) State(ctx context.Context, _ handoff.Caller) (ledger.State, error) {
	l.mu.Lock()
	again := l.read.Equal(time.Now()) // reads at the same instant are recorded once
	l.read = time.Now()
	l.mu.Unlock()
	if !again {
		l.world.Record("store", "read", "stickies")
	}
	if err := l.world.Failure("store read", "the store"); err != nil {
		return ledger.State{}, err
	}
	if err := l.unreachable(); err != nil {
		return ledger.State{}, err
	}
	if err := l.world.Wait(ctx, l.adopting); err != nil {
		return ledger.State{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgetLocked()
	l.Ledger.life = l.life
	return l.kept.State, nil
}

// Waiting implements [switchboard/handoff/homes.Waiting]: there is one caller. They are read at once.
func (l Held) Waiting(_ context.Context, prefix string) (all []handoff.Caller, err error) {
	if err := l.unreachable(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgetLocked()
	for name := range l.kept.Documents {
		if strings.HasPrefix(name, prefix) {
			all, l.read = []handoff.Caller{Grant.Caller}, time.Now()
		}
	}
	return all, nil
}

// forgetLocked empties the store when its time has come.
func (l *Ledger) forgetLocked() {
	if l.emptied > 0 && time.Since(l.world.Began) >= l.emptied {
		l.emptied, l.kept = 0, ledger.NewKept()
		l.Trace(Event{Kind: TraceEmpty})
	}
}

// Commit implements [switchboard/handoff/router.Store].
func (l Held) Commit(ctx context.Context, _ handoff.Caller, b ledger.Batch) (ledger.Committed, error) {
	all := entriesOf(b)
	tell := func(code handoff.Code) {
		for _, e := range all {
			l.Trace(Event{ID: e.ClientID, Entry: e, Code: code})
		}
	}
	if err := l.unreachable(); err != nil {
		tell(handoff.CodeUnreachable)
		return 0, err
	}
	l.Trace(Event{Kind: TraceBusy})
	var takes time.Duration
	for _, e := range all {
		takes = max(takes, l.slow[e.Status])
		if e.Status == handoff.StatusCompleted && (l.lingers == "" || l.lingers == e.Outcome) {
			takes = max(takes, l.lingering)
		}
	}
	if err := l.world.Wait(ctx, takes); err != nil {
		tell(handoff.CodeUnreachable)
		return 0, err
	}
	done, err := l.write(b)
	if err != nil || done != ledger.Written {
		return done, err
	}
	tell("")
	for _, e := range all {
		if e.Stopping { // if the turn ends at once, it may go with that
			continue
		}
		what := strings.TrimSpace(string(e.Status) + " " + string(e.Outcome))
		if e.Status == handoff.StatusDelivered {
			what = string(e.Status)
		}
		if e.Attempt > 1 && e.Status == handoff.StatusDispatching {
			what += " again on " + e.Target.Thread
		}
		l.world.Record("store", "ledger "+e.ClientID, what)
	}
	l.tellPlaces(b)
	return done, nil
}

// entriesOf returns the handoffs that a batch writes, by their keys.
func entriesOf(b ledger.Batch) []ledger.Entry {
	docs := maps.Clone(b.Put)
	for _, c := range b.Changed {
		if c.Past != nil {
			docs[ledger.HandoffDoc+c.Key] = c.Past.Row
		}
	}
	return ledger.Entries(docs, func(string) {})
}

func (l Held) write(b ledger.Batch) (ledger.Committed, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgetLocked()
	if l.Ledger.life != l.life {
		return 0, handoff.Fault(handoff.CodeShutdown, "", "another life has the caller")
	}
	return l.kept.Commit(b), nil
}

// tellPlaces records what a batch says of the threads in use.
func (l Held) tellPlaces(b ledger.Batch) {
	for _, name := range slices.Sorted(maps.Keys(b.Put)) {
		if field, is := strings.CutPrefix(name, ledger.StickyDoc); is {
			s, _, _ := ledger.DecodeSticky(field, b.Put[name])
			named := ""
			if s.Named {
				named = " (named)"
			}
			l.world.Record("store", "set", place(s.Target)+" -> "+s.Target.Thread+named)
		}
	}
	for _, name := range b.Drop {
		if field, is := strings.CutPrefix(name, ledger.StickyDoc); is {
			l.world.Record("store", "clear", field)
		}
	}
}

// History implements [ledger.History]. It is empty: a call asks for none.
func (l *Ledger) History(context.Context, handoff.Caller, ledger.HistoryQuery) (ledger.HistoryPage, error) {
	return ledger.HistoryPage{}, nil
}

// Bodies implements [ledger.History].
func (l *Ledger) Bodies(_ context.Context, _ handoff.Caller, keys ...string) (map[string]ledger.Body, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	bodies := map[string]ledger.Body{}
	for _, key := range keys {
		if parts, ok := l.kept.Texts[key]; ok {
			bodies[key] = ledger.BodyOf(parts)
		}
	}
	return bodies, nil
}

// Find implements [ledger.History].
func (l *Ledger) Find(_ context.Context, _ handoff.Caller, key string) (ledger.Entry, bool, error) {
	for _, e := range l.Entries() {
		if e.Key == key {
			return e, true, nil
		}
	}
	return ledger.Entry{}, false, nil
}

// Entries returns all handoffs, in the order of their keys.
func (l *Ledger) Entries() []ledger.Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := ledger.Entries(l.kept.Documents, func(string) {})
	for _, row := range l.kept.Past {
		e, err := ledger.DecodeEntry(row.Row)
		if err != nil {
			l.world.T.Fatal(err)
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b ledger.Entry) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// Places returns the names of the documents of threads in use.
func (l *Ledger) Places() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Keys(l.kept.Documents)), func(name string) bool {
		return !strings.HasPrefix(name, ledger.StickyDoc)
	})
}

// summary returns the state of each handoff.
func (l *Ledger) summary() string {
	var out []string
	for _, e := range l.Entries() {
		out = append(out, strings.TrimSpace(e.ClientID+" "+string(e.Status)+" "+string(e.Outcome)))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
