package responses

import (
	"context"
	"sync"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/threads"
)

// A lossyStore makes steps and loses the answers to some.
type lossyStore struct {
	threads.Store

	mu    sync.Mutex
	loses func(threads.Step) bool // Guarded by mu
	left  int                     // Guarded by mu: how many more answers to those are lost
	blind bool                    // Guarded by mu: the next read fails
}

func (l *lossyStore) Read(ctx context.Context, owner, thread string) (threads.Record, error) {
	l.mu.Lock()
	blind := l.blind
	l.blind = false
	l.mu.Unlock()
	if blind {
		return threads.Record{}, handoff.Fault(handoff.CodeUnreachable, "the store", "")
	}
	return l.Store.Read(ctx, owner, thread)
}

// lose loses the next n answers to steps of a kind.
func (l *lossyStore) lose(n int, steps func(threads.Step) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loses, l.left = steps, n
}

func (l *lossyStore) Advance(ctx context.Context, s threads.Step) (threads.Result, error) {
	r, err := l.Store.Advance(ctx, s)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left == 0 || !l.loses(s) {
		return r, err
	}
	l.left--
	return threads.Result{}, handoff.Fault(handoff.CodeUnreachable, "the store", "the answer was lost")
}

// Steps whose answers are lost.
func claims(s threads.Step) bool { _, ok := s.(threads.Claim); return ok }
func ends(s threads.Step) bool   { _, ok := s.(threads.End); return ok }
func steers(s threads.Step) bool { a, ok := s.(threads.Append); return ok && a.Steer != nil }
func hears(s threads.Step) bool  { a, ok := s.(threads.Append); return ok && a.Heard > 0 }

// forGood is as often as a step is tried.
const forGood = stepTries

// lossy returns a lookout whose store loses answers.
func lossy(t *testing.T) (*lookout, *lossyStore) {
	store := &lossyStore{Store: threads.NewMemory()}
	return newLookout(t, store), store
}

// TestLostAnswersOfTheStore: a step whose answer was lost is tried again, and counts once.
func TestLostAnswersOfTheStore(t *testing.T) {
	for name, lost := range map[string]func(threads.Step) bool{"a claim": claims, "a steer": steers,
		"what was heard": hears, "an end": ends} {
		t.Run(name, func(t *testing.T) {
			l, store := lossy(t)
			store.lose(1, lost)
			if err := l.steer(l.turn, "third"); err != nil {
				t.Errorf("a steer: %v", err)
			}
			l.goOn()
			if _, end := l.end(l.turn); end.Status != handoff.TurnCompleted || len(end.Undelivered) > 0 ||
				end.Text != "done: third" {
				t.Errorf("%+v", end)
			}
			if end := l.say(handoff.Text("go on")); end.Text != "done: go on" {
				t.Errorf("then %+v", end)
			}
			requests := l.rig.fake.Requests()
			if got := words(requests[1].Input); len(requests) != 3 || got != "o:call_1 u:first u:second u:third" {
				t.Errorf("%d requests, the second has %s", len(requests), got)
			}
			if got := words(requests[2].Input); got != "u:go on" {
				t.Errorf("the third has %s", got)
			}
		})
	}
}

// TestUnsureStart: an uncertain start runs once, however often it is tried again or reconciled, also at once.
func TestUnsureStart(t *testing.T) {
	for name, c := range map[string]struct{ reconcile, read, refused bool }{
		"reconciled first": {reconcile: true}, "started again": {},
		"written, not read, reconciled": {reconcile: true, read: true}, "written, not read": {read: true},
		"not written": {refused: true}, "not written, reconciled": {refused: true, reconcile: true},
	} {
		t.Run(name, func(t *testing.T) {
			store := &refusingStore{lossyStore{Store: threads.NewMemory()}}
			k := newTalk(t, newRig(t, newFake(t, looksOnce("")), func(cfg *Config) {
				if cfg.Threads = &store.lossyStore; c.refused {
					cfg.Threads = store
				}
			}))
			if store.blind = c.read; !c.read {
				store.lose(forGood, claims)
			}
			turn := handoff.Turn{ID: "a", Input: handoff.TextInput("go")}
			_, err := k.Agent.Start(t.Context(), turn)
			k.code("the start", err, handoff.CodeUnknownStart)
			unsure := k.rig.server.unsureStart(turnID(k.Target.Thread, "a"))
			var work sync.WaitGroup
			for i := range 8 {
				work.Go(func() {
					var id handoff.TurnID
					var err error
					if c.reconcile || i%2 > 0 {
						id, err = k.Agent.(handoff.Reconciler).Reconcile(t.Context(), "", "a")
					} else {
						id, err = k.Agent.Start(t.Context(), turn)
					}
					if want := turnID(k.Target.Thread, "a"); id != want || err != nil {
						t.Errorf("it is %q, %v, want %q", id, err, want)
					}
				})
			}
			work.Wait()
			must(t, k.rig.server.start(t.Context(), unsure, func(*run) { t.Error("it is begun again") }))
			for range 2 {
				if _, end := k.end(k.start(turn)); end.Status != handoff.TurnCompleted || end.Text != "done: go" {
					t.Errorf("%+v", end)
				}
			}
			if got := words(k.rig.fake.Requests()[0].Input); len(k.rig.fake.Requests()) != 1 || got != "u:go" {
				t.Errorf("%d requests, the first has %s", len(k.rig.fake.Requests()), got)
			}
		})
	}
}

// TestUnsureStartTooLate: a start that was written and counts as lost, since another one took its place, is not gone on
// with.
func TestUnsureStartTooLate(t *testing.T) {
	store := &lossyStore{Store: threads.NewMemory()}
	k := newTalk(t, newRig(t, newFake(t, looksOnce("")), func(cfg *Config) { cfg.Threads = store }))
	store.lose(forGood, claims)
	_, err := k.Agent.Start(t.Context(), handoff.Turn{ID: "a", Input: handoff.TextInput("go")})
	k.code("the start", err, handoff.CodeUnknownStart)
	unsure := k.rig.server.unsureStart(turnID(k.Target.Thread, "a"))
	k.say(handoff.Text("something else"))
	must(t, k.rig.server.start(t.Context(), unsure, func(*run) { t.Error("it is begun") }))
	id, err := k.Agent.(handoff.Reconciler).Reconcile(t.Context(), "", "a")
	must(t, err)
	if _, end := k.end(id); end.Status != handoff.TurnInterrupted || len(k.rig.fake.Requests()) != 1 {
		t.Errorf("%+v after %d requests", end, len(k.rig.fake.Requests()))
	}
}

// TestUnsureSteer: words whose write is uncertain count as accepted: the model gets them once.
func TestUnsureSteer(t *testing.T) {
	l, store := lossy(t)
	store.lose(forGood, steers)
	l.code("the steer", l.steer(l.turn, "third"), handoff.CodeUnknownStart)
	l.goOn()
	if _, end := l.end(l.turn); end.Text != "done: third" || len(end.Undelivered) > 0 {
		t.Errorf("%+v", end)
	}
	if got := words(l.rig.fake.Requests()[1].Input); got != "o:call_1 u:first u:second u:third" {
		t.Errorf("the model heard %s", got)
	}
}

// TestStoreAway: a running turn waits for a store that is away. What its tools did is not lost, and not done again.
func TestStoreAway(t *testing.T) {
	store := &refusingStore{lossyStore{Store: threads.NewMemory()}}
	l := newLookout(t, store)
	store.lose(3*forGood, func(s threads.Step) bool { a, ok := s.(threads.Append); return ok && len(a.Items) > 0 })
	l.goOn()
	if _, end := l.end(l.turn); end.Status != handoff.TurnCompleted || end.Text != "done: second" {
		t.Errorf("%+v", end)
	}
	requests := l.rig.fake.Requests()
	if got := words(requests[len(requests)-1].Input); len(requests) != 2 || got != "o:call_1 u:first u:second" {
		t.Errorf("%d requests, the last has %s", len(requests), got)
	}
}

// away has the store lose all answers to steps of a kind, and returns a function that waits until it has lost many.
func (l *lossyStore) away(t *testing.T, steps func(threads.Step) bool) (many func()) {
	const all = 1 << 20
	l.lose(all, steps)
	return func() {
		for lost := 0; lost <= forGood; time.Sleep(time.Millisecond) {
			if t.Context().Err() != nil {
				t.Fatal("it does not wait for the store")
			}
			l.mu.Lock()
			lost = all - l.left
			l.mu.Unlock()
		}
	}
}

// TestUnsureHearing: words that are in the thread are not returned as undelivered, even if their write was uncertain
// until the turn was stopped.
func TestUnsureHearing(t *testing.T) {
	l, store := lossy(t)
	lost := store.away(t, hears)
	l.goOn()
	lost()
	l.interrupt()
	for _, when := range []string{"as it ended", "as it is kept"} {
		if _, end := l.end(l.turn); end.Status != handoff.TurnInterrupted || len(end.Undelivered) > 0 {
			t.Errorf("%s: %+v", when, end)
		}
	}
	l.say(handoff.Text("go on"))
	requests := l.rig.fake.Requests()
	last := words(requests[len(requests)-1].Input)
	if want := "o:call_1 u:first u:second u:go on"; last != want {
		t.Errorf("then it sends %s, want %s", last, want)
	}
}

// TestUnwrittenHearing: words that were never written are returned as undelivered, and are not in the thread.
func TestUnwrittenHearing(t *testing.T) {
	store := &refusingStore{lossyStore{Store: threads.NewMemory()}}
	l := newLookout(t, store)
	lost := store.away(t, hears)
	l.goOn()
	lost()
	l.interrupt()
	l.handedBack(handoff.TurnInterrupted, "o:call_1 u:go on")
}

// A refusingStore does not make the steps whose answers it loses.
type refusingStore struct{ lossyStore }

func (r *refusingStore) Advance(ctx context.Context, s threads.Step) (threads.Result, error) {
	r.mu.Lock()
	lost := r.left > 0 && r.loses(s)
	if lost {
		r.left--
	}
	r.mu.Unlock()
	if lost {
		return threads.Result{}, handoff.Fault(handoff.CodeUnreachable, "the store", "")
	}
	return r.Store.Advance(ctx, s)
}

// TestUnsureStartOfWhatRuns: a second start of a running turn, while the store does not answer, takes no claim back:
// the turn goes on.
func TestUnsureStartOfWhatRuns(t *testing.T) {
	l, store := lossy(t)
	store.lose(forGood, claims)
	_, err := l.Agent.Start(t.Context(), handoff.Turn{ID: "a", Input: handoff.TextInput("go")})
	l.code("the second start", err, handoff.CodeUnknownStart)
	if id, err := l.Agent.(handoff.Reconciler).Reconcile(t.Context(), "", "a"); id != l.turn || err != nil {
		t.Errorf("reconciled: %q, %v", id, err)
	}
	l.goOn()
	if _, end := l.end(l.turn); end.Status != handoff.TurnCompleted || end.Text != "done: second" {
		t.Errorf("%+v", end)
	}
}
