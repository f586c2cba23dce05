package call

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/call/calltest"
)

// A world has scripted agents. Besides the words of [calltest.World] it has:
//
//	running THREAD DURATION           somebody's turn runs there, so long from the beginning
//	later THREAD WHEN DURATION        somebody's turn begins there then, and runs so long
//	reconciles THREAD WHAT            its agent can find out: found | never | lost (the connection, again)
//	deaf THREAD                       a turn there takes words and hears none before it is interrupted
//	merges THREAD                     a turn of others is taken for over; a start gives its id back
//
// The steps of its turns are DURATION message TEXT | command TEXT | ask COMMAND | gone | asks TEXT |
// goes on | goal GOAL TEXT (it completes, and its goal stands so) |
// form FIELD [ONE|TWO] many may / FIELD (a form) | choose COMMAND [ONE|TWO] (a permission that is a choice) |
// asklost DURATION COMMAND (it is lost so long after it asked) | completed TEXT | failed TEXT | interrupted. A turn
// whose first step is "hidden" does not show itself before the next one.
type world struct {
	*calltest.World // Set once, like all up to mu
	reconciles      map[string]string
	merges          map[string]bool
	deaf            map[string]bool

	mu      sync.Mutex
	turns   map[handoff.TurnID]*fakeTurn // Guarded by mu, like all that follows
	newest  map[string]*fakeTurn         // by thread
	started int
	trace   []calltest.Event
	answers map[handoff.QuestionID]chan handoff.Decision
}

func newWorld(t *testing.T, text string) *world {
	w := &world{
		World: calltest.NewWorld(t), reconciles: map[string]string{}, merges: map[string]bool{}, deaf: map[string]bool{},
		turns: map[handoff.TurnID]*fakeTurn{}, newest: map[string]*fakeTurn{},
		answers: map[handoff.QuestionID]chan handoff.Decision{},
	}
	w.Machines, w.Ledger.Trace = w, w.note
	w.Ledger.LeftTurn = func(turn handoff.TurnID, thread, work string) {
		w.traceTurn(work)
		w.addTurn(turn, thread, w.Plans[thread])
	}
	for _, line := range calltest.Lines(text) {
		if !w.Word(line) {
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
	case "later":
		at, long, _ := strings.Cut(more, " ")
		time.AfterFunc(w.Duration(at), func() {
			w.addTurn("theirs-"+handoff.TurnID(at), first, []string{long + " completed Theirs after " + at + "."})
		})
	case "reconciles":
		w.reconciles[first] = more
	case "deaf":
		w.deaf[first] = true
	case "merges":
		w.merges[first] = true
		w.end(w.addTurn("theirs-"+handoff.TurnID(first), first, []string{"5s completed Theirs and yours."}))
	default:
		w.T.Fatalf("the world has no word %q", verb)
	}
}

// Known implements [calltest.Machines].
func (w *world) Known(_ context.Context, t handoff.Target) (handoff.Attached, error) {
	a := &fakeAgent{world: w, target: t}
	at := handoff.Attached{Agent: a, Workspace: "/src"}
	if w.reconciles[t.Thread] != "" {
		at.Agent = reconcilingAgent{a}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if turn := w.newest[t.Thread]; turn != nil {
		at.Newest = turn.ID
		if !turn.over {
			at.Running = turn.ID
		}
	}
	return at, nil
}

// Make implements [calltest.Machines].
func (w *world) Make(ctx context.Context, t handoff.Target, _ bool) (handoff.Attached, error) {
	return w.Known(ctx, t)
}

// Copy implements [calltest.Machines].
func (w *world) Copy(
	ctx context.Context, _ handoff.Target, _ handoff.TurnID, t handoff.Target,
) (handoff.Attached, error) {
	return w.Known(ctx, t)
}
