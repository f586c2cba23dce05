package router

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/work"
)

// A merger is a machine of one thread that puts two starts into one turn where the first turn has not shown itself
// yet, or runs. It is its own fleet.
type merger struct {
	byName
	mu     sync.Mutex
	began  []time.Time // of its turns
	merged int

	slow  time.Duration // how long attaching takes
	blind bool          // it does not tell which turns it had
}

// leaseFresh is how long a lease of the gate is fresh.
const leaseFresh = ledger.GateFor - work.SendTakes - work.StoreTakes

// How long a turn takes to show itself, and to end.
const mergerShows, mergerEnds = 20 * time.Millisecond, time.Second

func mergerTurn(n int) handoff.TurnID { return handoff.TurnID(fmt.Sprintf("turn %d", n)) }

func (m *merger) Attach(_ context.Context, t handoff.Target) (handoff.Attached, error) {
	time.Sleep(m.slow)
	m.mu.Lock()
	defer m.mu.Unlock()
	at := handoff.Attached{Agent: m, Target: t}
	for n, began := range m.began {
		if past := time.Since(began); past >= mergerShows {
			if at.Newest = mergerTurn(n); past < mergerEnds {
				at.Running = at.Newest
			}
			if m.blind {
				at.Newest = at.Running
			}
		}
	}
	return at, nil
}

func (m *merger) Create(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	t.Thread = "made"
	return m.Attach(ctx, t)
}

func (m *merger) Start(context.Context, handoff.Turn) (handoff.TurnID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.began) - 1; n >= 0 && time.Since(m.began[n]) < mergerEnds {
		m.merged++
		return mergerTurn(n), nil
	}
	m.began = append(m.began, time.Now())
	return mergerTurn(len(m.began) - 1), nil
}

func (m *merger) Follow(ctx context.Context, id handoff.TurnID) iter.Seq2[handoff.Update, error] {
	return func(yield func(handoff.Update, error) bool) {
		m.mu.Lock()
		var n int
		_, _ = fmt.Sscanf(string(id), "turn %d", &n)
		began := m.began[n]
		m.mu.Unlock()
		time.Sleep(time.Until(began.Add(mergerShows)))
		if !yield(handoff.Started{Turn: id}, nil) {
			return
		}
		select {
		case <-time.After(time.Until(began.Add(mergerEnds))):
			yield(handoff.TurnEnded{Text: string(id)}, nil)
		case <-ctx.Done():
			yield(nil, ctx.Err())
		}
	}
}

func (m *merger) Close() error { return nil }

func (m *merger) turns() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.began)
}

// A sharedGate is the start gate of the one thread, as a store keeps it that takes a millisecond.
type sharedGate struct {
	mu           sync.Mutex
	gate         ledger.Gate
	until        time.Time
	takes, frees int
	away         bool // it takes nothing
	lost         bool // it comes back empty
	mute         bool // its answers are lost

	during func(take int) // Set once: what happens while it is taken; nil: nothing
}

var errGateAway = handoff.Fault(handoff.CodeUnreachable, "the store", "")

func (s *sharedGate) TakeGate(_ context.Context, _ handoff.Target, holder string) (ledger.Gate, error) {
	time.Sleep(time.Millisecond)
	if s.during != nil {
		s.during(s.asked()[0] + 1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.takes++; s.away {
		return ledger.Gate{}, errGateAway
	}
	if s.lost || !time.Now().Before(s.until) {
		s.gate, s.lost = ledger.Gate{}, false
	}
	if s.gate = s.gate.Take(holder); s.gate.Holder == holder {
		s.until = time.Now().Add(ledger.GateFor)
	}
	if s.mute {
		return ledger.Gate{}, errGateAway
	}
	return s.gate, nil
}

func (s *sharedGate) FreeGate(_ context.Context, _ handoff.Target, holder string, last handoff.TurnID) error {
	time.Sleep(time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frees++; s.away {
		return errGateAway
	}
	if s.gate.Holder == "" || s.gate.Holder == holder {
		s.until = time.Now().Add(ledger.GateFor)
	}
	s.gate = s.gate.Free(holder, last)
	return nil
}

// fails sets a fault.
func (s *sharedGate) fails(fault *bool, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*fault = on
}

// asked is how often the gate was to be taken, and freed.
func (s *sharedGate) asked() [2]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return [2]int{s.takes, s.frees}
}

// holder is who has the gate.
func (s *sharedGate) holder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gate.Holder
}

// An island is an instance with one caller, who gives work to the thread.
type island struct{ client }

func newIsland(t *testing.T, name string, m *merger, gate *sharedGate, mayAct func() bool) island {
	return runIsland(t.Context(), t, Config{
		Fleet: m, Gates: gate, Caller: handoff.Caller{Principal: name}, MayAct: mayAct,
	})
}

func runIsland(ctx context.Context, t *testing.T, cfg Config) island {
	c, r := cfg.Caller, NewRouter(cfg)
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return island{client{r, handoff.Grant{Caller: c}, t}}
}

func (n island) gives(thread, key string) handoff.ID {
	n.t.Helper()
	return n.start(handoff.Request{
		Key: key, Target: handoff.Target{Server: "s", Thread: thread}, Input: handoff.TextInput("go"), Mode: handoff.ModeNext,
	})
}

// gated runs a test with two instances, and looks in the end that nothing was merged and that nobody keeps the gate.
func gated(t *testing.T, test func(t *testing.T, m *merger, gate *sharedGate, anna, bert island)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m, gate := &merger{}, &sharedGate{}
		test(t, m, gate, newIsland(t, "anna", m, gate, nil), newIsland(t, "bert", m, gate, nil))
		synctest.Wait()
		if m.merged > 0 {
			t.Errorf("%d starts were merged", m.merged)
		}
		if holder := gate.holder(); holder != "" {
			t.Errorf("%s keeps the gate", holder)
		}
	})
}

// TestGateBetweenTwo: of two who start a turn at the same moment one waits, until the other's turn has ended. Whoever
// comes alone asks for the gate once; in a thread of its own nobody asks for it.
func TestGateBetweenTwo(t *testing.T) {
	gated(t, func(t *testing.T, m *merger, gate *sharedGate, anna, bert island) {
		anna.gives("t", "a")
		time.Sleep(2 * mergerEnds)
		anna.gives(handoff.NewThread, "b")
		time.Sleep(2 * mergerEnds)
		if n := m.turns(); gate.asked() != [2]int{1, 1} || n != 2 {
			t.Errorf("alone: the gate was taken and freed %v, %d turns", gate.asked(), n)
		}
		ids := map[handoff.ID]island{anna.gives("t", "c"): anna, bert.gives("t", "c"): bert}
		time.Sleep(mergerEnds / 2)
		waiting := 0
		for id, n := range ids {
			if rec := n.record(id); rec.State == handoff.StatusAccepted && rec.Waits == "theirs" {
				waiting++
			}
		}
		if waiting != 1 || m.turns() != 3 {
			t.Errorf("%d wait, %d turns", waiting, m.turns())
		}
		time.Sleep(4 * mergerEnds)
		texts := map[string]bool{}
		for id, n := range ids {
			texts[n.record(id).Text] = true
		}
		if !texts["turn 2"] || !texts["turn 3"] {
			t.Errorf("the answers: %v", texts)
		}
		anna.gives("t", "d")
		time.Sleep(mergerShows / 2) // it is acknowledged by now
		bert.gives("t", "d")
		time.Sleep(4 * mergerEnds)
	})
}

// TestGateAfterPrefetch: what was attached before another instance started a turn is attached again, and the turn is
// waited for.
func TestGateAfterPrefetch(t *testing.T) {
	gated(t, func(t *testing.T, m *merger, gate *sharedGate, anna, bert island) {
		bert.Prefetch(bert.grant, "b", handoff.Target{Server: "s", Thread: "t"})
		synctest.Wait()
		anna.gives("t", "a")
		time.Sleep(mergerEnds / 2)
		id := bert.gives("t", "b")
		time.Sleep(mergerEnds / 4)
		if rec, holder := bert.record(id), gate.holder(); rec.Waits != "theirs" || holder != "" {
			t.Errorf("while the other's turn runs %q has the gate: %+v", holder, rec)
		}
		time.Sleep(3 * mergerEnds)
		if rec := bert.record(id); rec.Text != "turn 1" {
			t.Errorf("in the end: %+v", rec)
		}
	})
}

// TestGateStoreAway: without the store nothing is started, and a gate is given back of which the answer was lost.
func TestGateStoreAway(t *testing.T) {
	gated(t, func(t *testing.T, m *merger, gate *sharedGate, anna, _ island) {
		for _, fault := range []*bool{&gate.away, &gate.mute} {
			gate.fails(fault, true)
			id := anna.gives("t", "")
			time.Sleep(mergerEnds)
			gate.fails(fault, false)
			if rec := anna.record(id); rec.Fault == nil || rec.Fault.Code != handoff.CodeStoreDown || m.turns() > 0 {
				t.Errorf("%d turns; %+v", m.turns(), rec)
			}
		}
	})
}

// TestGateOfTheDead: whoever had the gate and is gone keeps it for a time. Words that wait for it are stopped like
// others.
func TestGateOfTheDead(t *testing.T) {
	gated(t, func(t *testing.T, m *merger, gate *sharedGate, anna, bert island) {
		thread := handoff.Target{Server: "s", Thread: "t"}
		if _, err := gate.TakeGate(t.Context(), thread, "dead"); err != nil {
			t.Fatal(err)
		}
		stopped, id := anna.gives("t", "a"), bert.gives("t", "b")
		time.Sleep(ledger.GateFor / 2)
		if err := anna.Stop(t.Context(), anna.grant, string(stopped), handoff.StopOurs); err != nil {
			t.Fatal(err)
		}
		time.Sleep(ledger.GateFor / 4)
		if rec := anna.record(stopped); rec.Outcome != handoff.OutcomeCancelled || m.turns() > 0 {
			t.Errorf("%d turns; stopped: %+v", m.turns(), rec)
		}
		time.Sleep(ledger.GateFor / 2)
		if rec := bert.record(id); rec.Outcome != handoff.OutcomeResult {
			t.Errorf("after the gate's time: %+v", rec)
		}
	})
}

// TestGateAskedAgain: where the gate is asked for again because attaching took long, and tells of a turn that what was
// attached does not, that turn is waited for.
func TestGateAskedAgain(t *testing.T) {
	gated(t, func(t *testing.T, m *merger, gate *sharedGate, anna, _ island) {
		m.slow = leaseFresh + time.Second
		thread, began := handoff.Target{Server: "s", Thread: "t"}, false
		gate.during = func(take int) {
			if take != 2 || began {
				return
			}
			began = true
			gate.fails(&gate.lost, true) // else nobody could start a turn meanwhile
			if _, err := gate.TakeGate(t.Context(), thread, "another"); err != nil {
				t.Error(err)
			}
			turn, _ := m.Start(t.Context(), handoff.Turn{})
			_ = gate.FreeGate(t.Context(), thread, "another", turn)
		}
		id := anna.gives("t", "a")
		time.Sleep(m.slow + mergerEnds/2)
		if rec := anna.record(id); rec.Waits != "theirs" {
			t.Errorf("while the other turn runs: %+v", rec)
		}
		time.Sleep(10 * m.slow)
		if rec := anna.record(id); rec.Text != "turn 1" {
			t.Errorf("in the end: %+v", rec)
		}
	})
}

// TestGateOfTheEnded: an instance that ends while it asks for the gate gives it back: as the thread is attached, where
// it asks again because that took long, and as it waits for another instance.
func TestGateOfTheEnded(t *testing.T) {
	for _, tt := range []struct {
		slow time.Duration // to attach
		dead bool          // another instance has the gate
		take int           // during which it ends
	}{{take: 1}, {slow: leaseFresh + time.Second, take: 2}, {dead: true, take: 3}} {
		gated(t, func(t *testing.T, m *merger, gate *sharedGate, _, _ island) {
			if m.slow = tt.slow; tt.dead {
				if _, err := gate.TakeGate(t.Context(), handoff.Target{}, "dead"); err != nil {
					t.Fatal(err)
				}
			}
			ctx, end := context.WithCancel(t.Context())
			defer end()
			gate.during = func(take int) {
				if take == tt.take {
					end()
					time.Sleep(time.Second) // what it had of the gate before is given back
					gate.fails(&gate.lost, true)
				}
			}
			runIsland(ctx, t, Config{
				Fleet: m, Gates: gate, Caller: handoff.Caller{Principal: "ends"},
			}).gives("t", "a")
			time.Sleep(2*leaseFresh + ledger.GateFor/4)
			if asked := gate.asked(); m.turns() > 0 || asked[0] != tt.take {
				t.Errorf("%+v: %d turns, the gate was taken and freed %v", tt, m.turns(), asked)
			}
		})
	}
}

// TestGateLapses: a process that stands still between taking the gate and the start has lost it: others may have
// started something.
func TestGateLapses(t *testing.T) {
	gated(t, func(t *testing.T, m *merger, gate *sharedGate, anna, _ island) {
		var once sync.Once
		slow := newIsland(t, "slow", m, gate, func() bool {
			once.Do(func() { time.Sleep(ledger.GateFor + time.Second) })
			return true
		})
		id := slow.gives("t", "a")
		time.Sleep(ledger.GateFor + time.Second - mergerShows/2)
		other := anna.gives("t", "b")
		time.Sleep(10 * mergerEnds)
		if rec := slow.record(id); rec.Text != "turn 1" {
			t.Errorf("the slow one: %+v", rec)
		}
		if rec := anna.record(other); rec.Text != "turn 0" {
			t.Errorf("the other: %+v", rec)
		}
	})
}

// TestGateOfASlowMachine: a machine that is slow to attach, and does not tell which turns it had, is given work all the
// same. Where the gate is somebody else's when that is done, the words wait for them.
func TestGateOfASlowMachine(t *testing.T) {
	gated(t, func(t *testing.T, m *merger, gate *sharedGate, anna, bert island) {
		m.slow, m.blind = leaseFresh+time.Second, true
		anna.gives("t", "a")
		time.Sleep(m.slow + 2*mergerEnds)
		id := bert.gives("t", "b")
		time.Sleep(10 * m.slow)
		if rec := bert.record(id); rec.Text != "turn 1" {
			t.Fatalf("the second: %+v", rec)
		}
		id = bert.gives("t", "c")
		time.Sleep(m.slow / 2)
		gate.fails(&gate.lost, true)
		if _, err := gate.TakeGate(t.Context(), handoff.Target{}, "another"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(m.slow)
		if rec := bert.record(id); rec.State != handoff.StatusAccepted || rec.Waits != "theirs" {
			t.Errorf("while another has the gate: %+v", rec)
		}
		time.Sleep(ledger.GateFor + 2*m.slow)
		if rec := bert.record(id); rec.Text != "turn 2" {
			t.Errorf("after that: %+v", rec)
		}
	})
}

// TestGateOfTheMoved: an instance that ends while a start is on its way keeps the gate, until the next life has found
// the turn.
func TestGateOfTheMoved(t *testing.T) {
	gated(t, func(t *testing.T, m *merger, gate *sharedGate, _, bert island) {
		ctx, move := context.WithCancelCause(t.Context())
		defer move(nil)
		kept := shelved()
		cfg := Config{Fleet: m, Store: kept, Gates: gate, Caller: handoff.Caller{Principal: "anna"}}
		gone := runIsland(ctx, t, cfg).gives("t", "a")
		time.Sleep(mergerShows / 2) // it is acknowledged by now
		move(ErrMoved)
		synctest.Wait()
		id := bert.gives("t", "b")
		time.Sleep(mergerShows)
		if rec, holder := bert.record(id), gate.holder(); rec.Waits != "theirs" || holder != string(gone) {
			t.Errorf("%q has the gate, not %q: %+v", holder, gone, rec)
		}
		next := runIsland(t.Context(), t, cfg)
		next.TakeUp(t.Context())
		time.Sleep(4 * mergerEnds)
		if rec := next.record(gone); rec.Text != "turn 0" {
			t.Errorf("at the next life: %+v", rec)
		}
		if rec := bert.record(id); rec.Text != "turn 1" {
			t.Errorf("the other: %+v", rec)
		}
	})
}
