package homes

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/router"
	"switchboard/sessions/redis"
	"switchboard/sessions/sessionstest"
)

// A town has instances over one Redis and one fleet.
type town struct {
	*world
	t   *testing.T
	url string
}

func newTown(t *testing.T) *town {
	return &town{newWorld(), t, sessionstest.StartRedis(t).URL}
}

// An instance has a connection of its own to the store, at which it can be held up.
type instance struct {
	*Homes
	self  handoff.Instance
	store *redis.Store
	held  *holdUp
	lost  chan handoff.Caller
	end   func() // ends it, as a signal does, and waits until it has
}

// A holdUp suspends an instance, as a signal would: its requests to the store wait until it is resumed.
type holdUp struct {
	redis.Homes
	*redis.Store
	deaf atomic.Bool // safe by itself: it is not told of homes that are let go of

	writing atomic.Int32 // batches on their way; safe by itself
	early   atomic.Bool  // a home was let go of meanwhile; safe by itself

	mu    sync.Mutex
	goOn  chan struct{}      // Guarded by mu: closed when it goes on; nil: it is not held up
	after func(ledger.Entry) // Guarded by mu: is told of each open work that is written; nil: nobody is
}

// wait waits while the instance is held up.
func (h *holdUp) wait() {
	h.mu.Lock()
	goOn := h.goOn
	h.mu.Unlock()
	if goOn != nil {
		<-goOn
	}
}

// stop holds the instance up until the returned function is called.
func (h *holdUp) stop() (goOn func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	stopped := make(chan struct{})
	h.goOn = stopped
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.goOn = nil
		close(stopped)
	})
}

func (h *holdUp) Beat(ctx context.Context, b ledger.Beat) error {
	h.wait()
	return h.Homes.Beat(ctx, b)
}

func (h *holdUp) Beats(ctx context.Context) ([]ledger.Beat, error) {
	table, err := h.Homes.Beats(ctx)
	h.wait()
	return table, err
}

func (h *holdUp) Claims(ctx context.Context, of []handoff.Caller) ([]ledger.Claim, error) {
	h.wait()
	return h.Homes.Claims(ctx, of)
}

func (h *holdUp) Commit(ctx context.Context, c handoff.Caller, b ledger.Batch) (ledger.Committed, error) {
	h.writing.Add(1)
	defer h.writing.Add(-1)
	h.wait()
	done, err := h.Store.Commit(context.WithoutCancel(ctx), c, b)
	h.mu.Lock()
	after := h.after
	h.mu.Unlock()
	if err == nil && after != nil {
		for _, e := range ledger.Entries(b.Put, func(string) {}) {
			after(e)
		}
	}
	h.wait() // its answer is read when it goes on
	return done, err
}

func (h *holdUp) Leave(c handoff.Caller) func(context.Context) error {
	if h.writing.Load() > 0 {
		h.early.Store(true)
	}
	done := h.Store.Leave(c)
	return func(ctx context.Context) error {
		if h.deaf.Load() {
			gone, cancel := context.WithCancel(ctx)
			cancel()
			ctx = gone
		}
		return done(ctx)
	}
}

// open starts an instance, and returns when it may take homes. The instance ends with the test.
func (w *town) open(name string) *instance {
	w.t.Helper()
	store := sessionstest.Opened(w.t, func(ctx context.Context) (*redis.Store, error) {
		return redis.Open(ctx, redis.Config{URL: w.url, Shared: true})
	})
	one := &instance{
		store: store, held: &holdUp{Homes: store.Homes(), Store: store}, lost: make(chan handoff.Caller, 100),
		self: handoff.Instance{ID: store.Homes().ID(), Address: name + ":8090", Fingerprint: "print of " + name},
	}
	one.Homes = NewShared(router.Config{
		Fleet: w.world, Store: one.held, Auditor: w.world, IDs: router.NewIDs(name),
	}, Sharing{Self: one.self, Store: one.held, Lost: func(c handoff.Caller) { one.lost <- c }})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- store.Run(ctx) }()
	go func() { done <- one.Run(ctx) }()
	one.end = sync.OnceFunc(func() {
		stop()
		for range 2 {
			if err := <-done; err != nil {
				w.t.Errorf("%s ended with %v", name, err)
			}
		}
	})
	w.t.Cleanup(one.end)
	if err := one.Recovered(w.t.Context(), time.Minute); err != nil {
		w.t.Fatal(err)
	}
	return one
}

// where returns the instance that has a caller, as an instance says.
func (o *instance) where(t *testing.T, user string) string {
	t.Helper()
	request, end := context.WithCancel(t.Context())
	defer end()
	at, err := o.Where(request, grantOf(user).Caller)
	if err != nil {
		return string(handoff.CodeOf(err))
	}
	return at.Address
}

// has waits until an instance says which instance has a caller. One that was suspended cannot say it at once.
func (o *instance) has(t *testing.T, user string) (at string) {
	t.Helper()
	eventually(t, "the home of "+user, func() bool {
		at = o.where(t, user)
		return at != string(handoff.CodeStoreDown)
	})
	return at
}

// ask gives work.
func (o *instance) ask(t *testing.T, user, words string) (handoff.ID, error) {
	t.Helper()
	return o.Start(t.Context(), grantOf(user), handoff.Request{
		Key: words, Target: handoff.Target{Server: "s", Thread: handoff.NewThread}, Input: handoff.TextInput(words),
		Mode: handoff.ModeNext,
	})
}

// come has an instance take the homes of callers.
func (o *instance) come(t *testing.T, users ...string) {
	t.Helper()
	for _, user := range users {
		if at := o.has(t, user); at != o.self.Address {
			t.Fatalf("%s is at %s", user, at)
		}
	}
}

// works gives work, and waits until its entry has a status.
func (o *instance) works(t *testing.T, user, words string, until handoff.Status) handoff.ID {
	t.Helper()
	id, err := o.ask(t, user, words)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the work of "+user, func() bool { return o.entry(t, user).Status == until })
	return id
}

// results waits until work has a result.
func (o *instance) results(t *testing.T, user string, id handoff.ID) {
	t.Helper()
	eventually(t, "the outcome of "+user, func() bool {
		rec, err := o.Handoff(grantOf(user), string(id))
		return err == nil && rec.Outcome == handoff.OutcomeResult
	})
}

// drain lets an instance drain, until ctx ends at the latest; what it returns is closed when it has. Whoever is busy is
// so by what lasts longer than a request.
func (o *instance) drain(ctx context.Context, busy ...string) (drained chan struct{}) {
	drained = make(chan struct{})
	go func() {
		defer close(drained)
		o.Drain(ctx, func(c handoff.Caller) bool { return slices.Contains(busy, c.User) })
	}()
	return drained
}

// turnsOf returns the number of turns that words have begun.
func (w *world) turnsOf(words string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.turns[words]
}

func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for began := time.Now(); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// entry returns the entry of a caller's open work, as an instance reads it.
func (o *instance) entry(t *testing.T, user string) ledger.Entry {
	t.Helper()
	list := entriesOf(t, o.store, user)
	if len(list) > 1 {
		t.Fatalf("%s has open %+v", user, list)
	}
	return append(list, ledger.Entry{})[0]
}

// writes writes something of a caller past their router.
func (o *instance) writes(ctx context.Context, c handoff.Caller) error {
	now, err := o.store.State(ctx, c)
	if err != nil {
		return err
	}
	_, err = o.store.Commit(ctx, c, ledger.Batch{Was: now.Version, Now: rand.Text(), Put: map[string]string{"late": "words"}})
	return err
}

// TestTakenOver: the homes of a dead instance are taken over with their running work, none of which is begun twice. A
// caller has one home, and all instances name the same one.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	a, b := w.open("a"), w.open("b")
	const users = 2 * recovering
	ids := map[string]handoff.ID{}
	for i := range users {
		user := fmt.Sprint("user ", i)
		if a.has(t, user) != "a:8090" || b.has(t, user) != "a:8090" {
			t.Fatalf("%s is not where they are", user)
		}
		ids[user] = a.works(t, user, user, handoff.StatusStarted)
	}
	if b.has(t, "bob") != "b:8090" || a.has(t, "bob") != "b:8090" {
		t.Error("bob is not where he came to")
	}
	if _, err := b.ask(t, "user 0", "elsewhere"); err == nil {
		t.Error("an instance takes work of a caller whom it does not have")
	}

	killed := time.Now()
	t.Cleanup(a.held.stop()) // for good
	for user := range ids {
		eventually(t, user+" to be taken over", func() bool { return b.get(grantOf(user).Caller) != nil })
	}
	t.Logf("all %d were taken over after %v", users, time.Since(killed))
	close(w.let)
	for user, id := range ids {
		b.results(t, user, id)
		if n := w.turnsOf(user); n != 1 {
			t.Errorf("%s has %d turns", user, n)
		}
	}
	if w.turnsOf("elsewhere") != 0 {
		t.Error("an instance began work of a caller whom it does not have")
	}
}

// TestHandedOver: an instance that ends while another is there leaves its open work to that: running work, which ends
// once, and waiting words, which are neither begun nor reported as lost.
func TestHandedOver(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	a, b := w.open("a"), w.open("b")
	a.come(t, "alice")
	id := a.works(t, "alice", "first", handoff.StatusStarted)
	if _, err := a.Start(t.Context(), grantOf("alice"), handoff.Request{
		Key: "second", Target: handoff.Target{Server: "s", Thread: "made 1"}, Input: handoff.TextInput("second"),
		Mode: handoff.ModeNext,
	}); err != nil {
		t.Fatal(err)
	}
	open := func() (all []string) {
		for _, e := range entriesOf(t, b.store, "alice") {
			all = append(all, string(e.Status))
		}
		slices.Sort(all)
		return all
	}
	want := []string{string(handoff.StatusAccepted), string(handoff.StatusStarted)}
	eventually(t, "the words to wait", func() bool { return slices.Equal(open(), want) })

	eventually(t, "a to know of b", func() bool { return a.cluster.others() })
	a.end()
	if got := open(); !slices.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
	eventually(t, "b to take over", func() bool { return b.get(grantOf("alice").Caller) != nil })
	close(w.let)
	b.results(t, "alice", id)
	if w.turnsOf("first") != 1 || w.turnsOf("second") != 0 {
		t.Errorf("%d and %d turns", w.turnsOf("first"), w.turnsOf("second"))
	}
}

// TestHeldUpInstance: an instance that was suspended while another took its homes begins nothing, writes nothing, and
// gives the homes up, whatever it was doing.
func TestHeldUpInstance(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	a, b := w.open("a"), w.open("b")
	caller := grantOf("alice").Caller
	a.come(t, "alice")
	goOn := make(chan func(), 1)
	a.held.mu.Lock()
	a.held.after = func(e ledger.Entry) { // the store has it that the work is about to be sent; nothing is sent so far
		if e.Status == handoff.StatusDispatching {
			a.held.after = nil // by its only caller
			goOn <- a.held.stop()
		}
	}
	a.held.mu.Unlock()
	if _, err := a.ask(t, "alice", "held up"); err != nil {
		t.Fatal(err)
	}
	resume := <-goOn
	t.Cleanup(resume)
	eventually(t, "b to take over", func() bool { return b.get(caller) != nil })
	eventually(t, "b to settle what was begun", func() bool {
		return b.entry(t, "alice").Status == handoff.StatusCompleted
	})
	settled := b.entry(t, "alice")

	resume()
	if lost := <-a.lost; lost != caller {
		t.Errorf("%v is lost", lost)
	}
	if n := w.turnsOf("held up"); n != 0 {
		t.Errorf("it began %d turns of what another had settled", n)
	}
	if err := a.writes(t.Context(), caller); handoff.CodeOf(err) != handoff.CodeShutdown {
		t.Errorf("it wrote: %v", err)
	}
	if now := b.entry(t, "alice"); now != settled {
		t.Errorf("what was settled is %+v", now)
	}
	if at := a.has(t, "alice"); at != "b:8090" {
		t.Errorf("alice is at %s", at)
	}
	if at := a.has(t, "carol"); at != "a:8090" {
		t.Errorf("it takes homes no more: carol is at %s", at)
	}
}

// TestStoreAway: while the store is away, no instance counts as dead, no home is lost, and no work begins.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	server := sessionstest.StartRedis(t)
	w.url = server.URL
	a, b := w.open("a"), w.open("b")
	a.come(t, "alice")
	b.come(t, "bob")
	homes := map[string]*home{"a": a.get(grantOf("alice").Caller), "b": b.get(grantOf("bob").Caller)}
	server.Kill()
	eventually(t, "both to cease to act", func() bool { return !a.cluster.mayAct() && !b.cluster.mayAct() })
	if at := a.where(t, "carol"); at != string(handoff.CodeStoreDown) {
		t.Errorf("carol was taken: %s", at)
	}
	time.Sleep(deadAfter)
	server.Start() // empty
	eventually(t, "both to act again", func() bool { return a.cluster.mayAct() && b.cluster.mayAct() })
	if a.get(grantOf("alice").Caller) != homes["a"] || b.get(grantOf("bob").Caller) != homes["b"] {
		t.Error("a home was lost")
	}
	if a.where(t, "bob") != "b:8090" || b.where(t, "alice") != "a:8090" {
		t.Error("the store was not told again who has whom")
	}
}
