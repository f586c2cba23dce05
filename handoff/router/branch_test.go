package router

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"testing"

	"switchboard/handoff"
)

// A copier is a fleet of one server whose threads can be copied. Turns run until the test ends them.
type copier struct {
	byName
	mu      sync.Mutex
	turns   map[string][]handoff.TurnID // by thread, oldest first
	running map[string]handoff.TurnID   // by thread
	started int
	refuse  bool
	aside   []string      // threads of which nothing is kept
	let     chan struct{} // closed: turns end
}

func newCopier() *copier {
	return &copier{
		turns: map[string][]handoff.TurnID{"t": {"1", "2"}}, running: map[string]handoff.TurnID{}, let: make(chan struct{}),
	}
}

func (c *copier) Attach(_ context.Context, t handoff.Target) (handoff.Attached, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	turns := c.turns[t.Thread]
	if len(turns) == 0 {
		return handoff.Attached{}, handoff.Fault(handoff.CodeSessionGone, t.Thread, "")
	}
	return handoff.Attached{
		Agent: &copied{c, t.Thread}, Target: t, Newest: turns[len(turns)-1], Running: c.running[t.Thread],
	}, nil
}

func (c *copier) Create(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	return c.Fork(ctx, t, "")
}

func (c *copier) Fork(_ context.Context, t handoff.Target, last handoff.TurnID) (handoff.Attached, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse {
		return handoff.Attached{}, handoff.Fault(handoff.CodeUnsupported, t.Server, "")
	}
	turns := slices.Clone(c.turns[t.Thread])
	t.Thread = fmt.Sprintf("copy %d", len(c.turns))
	c.turns[t.Thread] = turns[:slices.Index(turns, last)+1]
	return handoff.Attached{Agent: &copied{c, t.Thread}, Target: t, Newest: last}, nil
}

// An asideCopier also makes copies of which nothing is kept.
type asideCopier struct{ *copier }

func (c asideCopier) CreateEphemeral(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	return c.Create(ctx, t)
}

func (c asideCopier) ForkEphemeral(
	ctx context.Context, t handoff.Target, last handoff.TurnID,
) (handoff.Attached, error) {
	a, err := c.Fork(ctx, t, last)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.aside = append(c.aside, a.Target.Thread)
	return a, err
}

type copied struct {
	c      *copier
	thread string
}

func (a *copied) Start(context.Context, handoff.Turn) (handoff.TurnID, error) {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	a.c.started++
	id := handoff.TurnID(fmt.Sprintf("turn %d", a.c.started))
	a.c.turns[a.thread] = append(a.c.turns[a.thread], id)
	return id, nil
}

func (a *copied) Follow(ctx context.Context, id handoff.TurnID) iter.Seq2[handoff.Update, error] {
	return func(yield func(handoff.Update, error) bool) {
		if !yield(handoff.Started{Turn: id}, nil) {
			return
		}
		select {
		case <-a.c.let:
			yield(handoff.TurnEnded{Text: "done"}, nil)
		case <-ctx.Done():
			yield(nil, ctx.Err())
		}
	}
}

func (a *copied) Close() error { return nil }

// outcome follows a handoff to its end.
func outcome(t *testing.T, r *Router, id handoff.ID) handoff.Record {
	t.Helper()
	var rec handoff.Record
	for e, err := range r.Follow(t.Context(), ladderGrant, id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		rec = e.Record
	}
	return rec
}

func after(turn handoff.TurnID) handoff.Request {
	return handoff.Request{
		Target: handoff.Target{Server: "s", Thread: "t"}, Input: handoff.TextInput("go on"), After: turn,
	}
}

// TestGoingOnAfterATurn: of several requests at once that follow the newest turn, one goes on in the thread, and each
// of the others in a copy of its own.
func TestGoingOnAfterATurn(t *testing.T) {
	c := newCopier()
	r := running(t, Config{Fleet: c})
	var ids []handoff.ID
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			id, err := r.Start(t.Context(), ladderGrant, after("2"))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			ids = append(ids, id)
		})
	}
	all.Wait()
	for { // all of them at work at once, or the later ones would find the thread idle and further
		c.mu.Lock()
		n := c.started
		c.mu.Unlock()
		if n == len(ids) {
			break
		}
		runtime.Gosched()
	}
	close(c.let)
	threads, turns := map[string]int{}, map[handoff.TurnID]bool{}
	for _, id := range ids {
		rec := outcome(t, r, id)
		if rec.Outcome != handoff.OutcomeResult || rec.TurnID == "" || (rec.Why == handoff.WhyCopy) == (rec.ThreadID == "t") {
			t.Errorf("%+v", rec)
		}
		threads[rec.ThreadID]++
		turns[rec.TurnID] = true
	}
	if len(threads) != len(ids) || threads["t"] != 1 || len(turns) != len(ids) {
		t.Errorf("threads %v, turns %v", threads, turns)
	}
	if used, err := r.Stickies(t.Context(), ladderGrant); err != nil || len(used) != 1 || used[0].ThreadID != "t" {
		t.Errorf("in use is %+v, %v", used, err)
	}
}

// TestGoingOnFromAnOlderTurn: the copy has no later turns, and the thread is not changed. If no copy can be made,
// nothing runs.
func TestGoingOnFromAnOlderTurn(t *testing.T) {
	c := newCopier()
	close(c.let)
	r := newClient(t, Config{Fleet: c})
	rec := r.outcome(after("1"))
	if got, want := c.turns[rec.ThreadID], []handoff.TurnID{"1", "turn 1"}; rec.Why != handoff.WhyCopy ||
		!slices.Equal(got, want) {
		t.Errorf("%s has %v, want %v", rec.ThreadID, got, want)
	}
	c.running["t"] = "theirs"
	if rec := r.outcome(after("2")); rec.Why != handoff.WhyCopy || len(c.turns["t"]) != 2 {
		t.Errorf("with work of others there: %+v", rec)
	}
	c.refuse = true
	if rec := r.outcome(after("1")); rec.Outcome != handoff.OutcomeFailed || rec.Fault.Code != handoff.CodeUnsupported ||
		c.started != 2 {
		t.Errorf("without copies: %+v", rec)
	}
}

// TestGoingOnAside: a side question that follows a turn, also the newest, goes to an ephemeral copy, and the thread is
// not changed. If no such copy can be made, nothing runs.
func TestGoingOnAside(t *testing.T) {
	c := newCopier()
	close(c.let)
	req := after("2")
	req.Mode, req.Unkept = handoff.ModeAside, true
	r := newClient(t, Config{Fleet: asideCopier{c}})
	for _, busy := range []handoff.TurnID{"", "theirs"} {
		c.running["t"] = busy
		rec := r.outcome(req)
		if rec.Outcome != handoff.OutcomeResult || !slices.Contains(c.aside, rec.ThreadID) || len(c.turns["t"]) != 2 {
			t.Errorf("while %q runs: %+v", busy, rec)
		}
	}
	if used, err := r.Stickies(t.Context(), ladderGrant); err != nil || len(used) != 0 || len(c.aside) != 2 {
		t.Errorf("in use is %+v, copies %v, %v", used, c.aside, err)
	}
	if rec := newClient(t, Config{Fleet: c}).outcome(req); rec.Outcome != handoff.OutcomeFailed ||
		rec.Fault.Code != handoff.CodeUnsupported || c.started != 2 {
		t.Errorf("without such copies: %+v", rec)
	}
}

// TestUnkept: the store gets nothing of unkept work, and the router forgets it once its outcome was heard.
func TestUnkept(t *testing.T) {
	c := newCopier()
	close(c.let)
	kept := shelved()
	r := newClient(t, Config{Fleet: c, Store: kept})
	req := after("2")
	req.Unkept = true
	id := r.start(req)
	if rec := outcome(t, r.Router, id); rec.Text != "done" {
		t.Errorf("%+v", rec)
	}
	if err := r.Heard(t.Context(), ladderGrant, id); err != nil {
		t.Fatal(err)
	}
	<-r.recovered // before, nothing is known not to be there
	if _, err := r.Handoff(ladderGrant, string(id)); handoff.CodeOf(err) != handoff.CodeNotFound {
		t.Errorf("found after it was heard: %v", err)
	}
	kept.change(func() {
		for _, b := range kept.sent {
			if len(b.Changed) > 0 {
				t.Errorf("the store was told of it: %+v", b)
			}
		}
	})
}
