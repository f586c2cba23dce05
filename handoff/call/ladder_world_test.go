package call

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/call/calltest"
	"switchboard/handoff/ledger/ledgertest"
)

// A world is a fleet, a directory and a store for ladders. Besides the words of [calltest.World] and
// [calltest.Ledger] it has:
//
//	running THREAD DURATION           somebody's turn runs there, so long from the beginning
//	sessions N                        lists have many more than one
//	dead SERVER                       lists do not reach it
//	reconciles THREAD WHAT               its agent can find out: found | never | lost (the connection, again)
//	entry ID STATUS SERVER THREAD TURN [OUTCOME]
//	                                  what a former life left in the ledger; TURN is - for none
//	deaf THREAD                       a turn there takes words and hears none before it is interrupted
//	merges THREAD                     a turn of others is taken for over; a start gives its id back
//	returns THREAD OTHER              a resume gives back another thread
//
// The steps of its turns are DURATION message TEXT | command TEXT | ask COMMAND | gone | asks TEXT |
// asklost DURATION COMMAND (it is lost so long after it asked) | completed TEXT | failed TEXT | interrupted. A turn
// whose first step is "hidden" does not show itself before the next one.
type world struct {
	*calltest.World                  // Set once
	ledger          *calltest.Ledger // Set once

	children   map[string]bool                              // Set once: machines whose work ends with the process
	many       int                                          // Set once: sessions that a list has beside the first
	dead       string                                       // Set once: a machine that lists do not reach
	reconciles map[string]string                            // Set once
	merges     map[string]bool                              // Set once
	deaf       map[string]bool                              // Set once
	returns    map[string]string                            // Set once
	mu         sync.Mutex                                   //
	rungs      []rung                                       // Guarded by mu
	turns      map[handoff.TurnID]*fakeTurn                 // Guarded by mu
	newest     map[string]*fakeTurn                         // Guarded by mu: by thread
	started    int                                          // Guarded by mu
	trace      []ledgertest.Event                           // Guarded by mu
	closing    atomic.Bool                                  // the process ends
	over       atomic.Bool                                  // the ladder has ended
	read       atomic.Int64                                 // when stickies were read last, in nanoseconds from 1
	answers    map[handoff.QuestionID]chan handoff.Decision // Guarded by mu
}

func newWorld(t *testing.T, text string) *world {
	w := &world{
		World: calltest.NewWorld(t), children: map[string]bool{}, reconciles: map[string]string{}, merges: map[string]bool{},
		deaf:    map[string]bool{},
		returns: map[string]string{},
		turns:   map[handoff.TurnID]*fakeTurn{}, newest: map[string]*fakeTurn{},
		answers: map[handoff.QuestionID]chan handoff.Decision{},
	}
	w.ledger = calltest.NewLedger(w.World)
	w.ledger.Trace, w.ledger.Record = w.note, w.record
	w.ledger.Left = func(turn handoff.TurnID, thread, work string) {
		w.traceTurn(work)
		w.addTurn(turn, thread, w.Plans[thread])
	}
	for _, line := range calltest.Lines(text) {
		if !w.Word(line) && !w.ledger.Word(line) {
			w.word(line)
		}
	}
	return w
}

func (w *world) word(line string) {
	verb, rest, _ := strings.Cut(line, " ")
	first, more, _ := strings.Cut(rest, " ")
	switch verb {
	case "running":
		w.addTurn("theirs-"+handoff.TurnID(first), first, []string{more + " completed Theirs."})
	case "child":
		w.children[first] = true
	case "entry":
		w.ledger.Leave(strings.Fields(rest))
	case "sessions":
		w.many = len(first) * 40
	case "dead":
		w.dead = first
	case "reconciles":
		w.reconciles[first] = more
	case "deaf":
		w.deaf[first] = true
	case "merges":
		w.merges[first] = true
		w.end(w.addTurn("theirs-"+handoff.TurnID(first), first, []string{"5s completed Theirs and yours."}))
	case "returns":
		w.returns[first] = more
	default:
		w.T.Fatalf("the world has no word %q", verb)
	}
}

func (w *world) record(column, what, text string) {
	if w.over.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	line := strings.TrimSpace(what + ": " + text)
	r := rung{at: time.Since(w.Began), column: column, index: len(w.rungs), text: line}
	if column == "agent" || column == "say" || column == "store" {
		r.who = what
	}
	if what == "notice" { // told beside what the page asks and gets
		r.who = what
	}
	if text == "detach" { // beside what goes on, so after it
		r.who += " ~"
	}
	w.rungs = append(w.rungs, r)
}

// ladder returns what was recorded, and ends that.
func (w *world) ladder() string {
	w.over.Store(true)
	w.mu.Lock()
	defer w.mu.Unlock()
	sortRungs(w.rungs)
	var b strings.Builder
	for _, r := range w.rungs {
		if r.column == "end" {
			fmt.Fprintf(&b, "end   %s\n", strings.TrimPrefix(r.text, ": "))
			continue
		}
		fmt.Fprintf(&b, "%6d  %-6s %s\n", r.at.Milliseconds(), r.column, r.text)
	}
	return b.String()
}

func (w *world) Attach(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	w.record("agent", t.Server, "resume "+t.Thread)
	if err := w.Reach(ctx, t); err != nil {
		return handoff.Attached{}, err
	}
	if other := w.returns[t.Thread]; other != "" {
		t.Thread = other
	}
	return w.attached(t), nil
}

func (w *world) Create(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	return w.create(ctx, t, "create "+t.Project, "fresh")
}

func (w *world) CreateEphemeral(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	return w.create(ctx, t, "create ephemeral "+t.Project, "aside")
}

func (w *world) create(ctx context.Context, t handoff.Target, what, name string) (handoff.Attached, error) {
	w.record("agent", t.Server, what)
	t, err := w.Make(ctx, t, name)
	if err != nil {
		return handoff.Attached{}, err
	}
	return w.attached(t), nil
}

// Registered knows aliases.
func (w *world) Registered(server string) handoff.Registered {
	known := w.World.Registered(server)
	known.EndsWithUs = w.children[server]
	return known
}

// Fork makes a copy; it is recorded as one.
func (w *world) Fork(ctx context.Context, t handoff.Target, _ handoff.TurnID) (handoff.Attached, error) {
	w.record("agent", t.Server, "copy "+t.Thread)
	if err := w.Wait(ctx, w.AttachTakes); err != nil {
		return handoff.Attached{}, err
	}
	from := t.Thread
	t.Thread = "copy-" + from
	at := w.attached(t)
	at.Title = w.Titles[from]
	return at, nil
}

func (w *world) attached(t handoff.Target) handoff.Attached {
	at := handoff.Attached{Target: t, Title: w.Titles[t.Thread], Workspace: "/src", VoiceApprovals: w.Voice}
	a := &fakeAgent{world: w, target: t}
	switch {
	case w.reconciles[t.Thread] != "":
		at.Agent = reconcilingAgent{a}
	default:
		at.Agent = a
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if turn := w.newest[t.Thread]; turn != nil {
		at.Newest = turn.ID
		if !turn.over {
			at.Running = turn.ID
		}
	}
	return at
}

// List is recorded once an instant: a call and work that is taken up beside it may both find nothing read.
func (w *world) List(context.Context, handoff.Caller) ([]handoff.Sticky, error) {
	if w.read.Swap(int64(time.Since(w.Began))+1) != int64(time.Since(w.Began))+1 {
		w.record("store", "read", "stickies")
	}
	if err := w.Failure("store read", "the store"); err != nil {
		return nil, err
	}
	return slices.Collect(maps.Values(w.Stickies)), nil
}

func (w *world) Set(_ context.Context, _ handoff.Caller, s handoff.Sticky) error {
	named := ""
	if s.Named {
		named = " (named)"
	}
	w.record("store", "set", place(s.Target)+" -> "+s.Target.Thread+named)
	return nil
}

// place is "bigpc" or "bigpc/api".
func place(t handoff.Target) string {
	if t.Project == "" {
		return t.Server
	}
	return t.Server + "/" + t.Project
}

func (w *world) Clear(_ context.Context, _ handoff.Caller, t handoff.Target) error {
	w.record("store", "clear", place(t))
	return nil
}

func (w *world) Servers(context.Context, handoff.Grant) []handoff.ServerInfo {
	var out []handoff.ServerInfo
	for _, s := range w.Names() {
		health := handoff.HealthUp
		if s == w.dead {
			health = handoff.HealthDown
		}
		out = append(out, handoff.ServerInfo{Name: s, Kind: "codex", Health: health})
	}
	return out
}

func (w *world) Sessions(context.Context, handoff.Grant, handoff.SessionQuery) (handoff.SessionList, error) {
	list := handoff.SessionList{Items: []handoff.SessionInfo{{ID: "t1", Label: "auth refactor", Title: "Auth refactor",
		Server: "bigpc", Age: "5 minutes ago", Status: handoff.SessionIdle}}}
	for i := range w.many {
		list.Items = append(list.Items,
			handoff.SessionInfo{ID: fmt.Sprintf("thread-%04d", i), Title: strings.Repeat("long title ", 9), Server: "bigpc",
				Age: "yesterday"})
	}
	if w.dead != "" {
		list.Errors = []handoff.ServerProblem{{Server: w.dead, Code: handoff.CodeUnreachable,
			Message: w.dead + " is not answering."}}
	}
	return list, nil
}

func (w *world) Read(_ context.Context, _ handoff.Grant, t handoff.Target, _ int) (handoff.Transcript, error) {
	if err := w.Failure("read "+t.Thread, t.Thread); err != nil {
		return handoff.Transcript{}, err
	}
	return handoff.Transcript{Server: t.Server, ID: t.Thread, Title: "Auth refactor",
		Lines: []handoff.Line{{Role: "agent", Text: "One test fails."}}}, nil
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
	var out []string
	for _, e := range w.ledger.Entries() {
		out = append(out, strings.TrimSpace(e.ClientID+" "+string(e.Status)+" "+string(e.Outcome)))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
