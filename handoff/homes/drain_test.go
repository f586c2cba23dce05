package homes

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/router"
)

// TestDrained: another instance takes the homes of a draining one, with their open work. A home stays while a request
// or a call is served in it, or until the time is over. New callers are sent to the other instance.
func TestDrained(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	a, b := w.open("a"), w.open("b")
	served := map[string]func(){}
	for _, user := range []string{"with a page", "in a request", "in a call", "in a long request", "with work"} {
		request, end := context.WithCancel(t.Context())
		served[user] = end
		at, err := a.Where(request, grantOf(user).Caller)
		if err != nil || at != a.self {
			t.Fatalf("%s is at %v, %v", user, at, err)
		}
	}
	page, _, _ := a.Feed(grantOf("with a page")).Listen(0)
	defer page.Stop()
	id := a.works(t, "with work", "runs on", handoff.StatusStarted)
	served["with work"]()
	served["in a call"]()
	eventually(t, "a to know of b", a.Others)

	limit, over := context.WithCancel(t.Context())
	defer over()
	drained := a.drain(limit, "in a call")
	eventually(t, "b to take over what is open", func() bool { return b.get(grantOf("with work").Caller) != nil })
	eventually(t, "who has a page to be let go of", func() bool { return a.get(grantOf("with a page").Caller) == nil })
	for user, want := range map[string]string{
		"in a request": "a:8090", "in a call": "a:8090", "in a long request": "a:8090",
		"with a page": "b:8090", "with work": "b:8090", "new": "b:8090",
	} {
		request, end := context.WithCancel(t.Context())
		at, err := a.Where(request, grantOf(user).Caller)
		if end(); err != nil || at.Address != want {
			t.Errorf("%s is at %q, %v, not at %s", user, at.Address, err, want)
		}
	}
	served["in a request"]()
	eventually(t, "the end of a request", func() bool { return a.get(grantOf("in a request").Caller) == nil })
	eventually(t, "who was in a request to be at b", func() bool { return b.has(t, "in a request") == "b:8090" })
	if len(a.list()) != 2 {
		t.Errorf("%d homes are left", len(a.list()))
	}
	over()
	<-drained
	if len(a.list()) != 0 {
		t.Errorf("%d homes are left when the time is over", len(a.list()))
	}
	for range 5 {
		<-a.lost
	}
	close(w.let)
	b.results(t, "with work", id)
	if n := w.turnsOf("runs on"); n != 1 {
		t.Errorf("%d turns", n)
	}
}

// TestDrainedAsWorkBegins: a home stays until words that are on their way to an agent have begun, since the next home
// would ask whether to begin them.
func TestDrainedAsWorkBegins(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.begin = make(chan struct{})
	a, b := w.open("a"), w.open("b")
	a.cluster.beginFor = time.Hour // the machine may stand still
	a.come(t, "alice", "bob")
	id := a.works(t, "alice", "begins", handoff.StatusDispatching)
	eventually(t, "a to know of b", a.Others)
	drained := a.drain(t.Context())
	eventually(t, "bob to be let go of", func() bool { return a.get(grantOf("bob").Caller) == nil })
	time.Sleep(2 * drainEvery) // alice is looked at
	if a.get(grantOf("alice").Caller) == nil {
		t.Error("alice was let go of as her work began")
	}
	close(w.begin)
	<-drained
	eventually(t, "b to take over", func() bool { return b.get(grantOf("alice").Caller) != nil })
	close(w.let)
	b.results(t, "alice", id)
}

// TestDrainedWhileTheStoreIsAway: if the store was away when a home was given up, the draining instance takes the home
// again, and hands it over later.
func TestDrainedWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	a, b := w.open("a"), w.open("b")
	a.come(t, "alice", "in a call")
	eventually(t, "a to know of b", a.Others)
	a.held.deaf.Store(true)
	limit, over := context.WithCancel(t.Context())
	defer over()
	drained := a.drain(limit, "in a call")
	eventually(t, "alice to be let go of", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.homes[grantOf("alice").Caller] == nil && len(a.cluster.leaving) == 0
	})
	if at := b.has(t, "alice"); at != "a:8090" {
		t.Fatalf("the store has alice at %s", at)
	}
	a.held.deaf.Store(false)
	eventually(t, "alice to be at b", func() bool {
		a.where(t, "alice") // which b sends her to
		return b.where(t, "alice") == "b:8090"
	})
	over()
	<-drained
}

// TestDrainedInACall: a call that is cut because the time is over keeps its home until its end is written.
func TestDrainedInACall(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	a := w.open("a")
	w.open("b")
	a.come(t, "alice")
	eventually(t, "a to know of b", a.Others)
	var over atomic.Bool
	wrote := make(chan error, 1)
	go func() {
		c := <-a.lost
		time.Sleep(2 * drainEvery) // it says that it ends
		wrote <- a.writes(context.Background(), c)
		over.Store(true)
	}()
	limit, cancel := context.WithCancel(t.Context())
	cancel()
	a.Drain(limit, func(handoff.Caller) bool { return !over.Load() })
	if err := <-wrote; err != nil {
		t.Errorf("a call that was cut wrote nothing: %v", err)
	}
}

// TestHeardAtTheEnd: what is heard in a call that is cut is noted, so that the next home does not tell it again.
func TestHeardAtTheEnd(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	a, b := w.open("a"), w.open("b")
	a.come(t, "alice")
	id := a.works(t, "alice", "first", handoff.StatusStarted)
	close(w.let)
	a.results(t, "alice", id)
	eventually(t, "a to know of b", a.Others)
	var over atomic.Bool
	heard := make(chan error, 1)
	go func() {
		c := <-a.lost
		heard <- a.Heard(context.Background(), grantOf(c.User), id)
		over.Store(true)
	}()
	limit, cancel := context.WithCancel(t.Context())
	cancel()
	a.Drain(limit, func(handoff.Caller) bool { return !over.Load() })
	if err := <-heard; err != nil {
		t.Error(err)
	}
	if left := entriesOf(t, b.store, "alice"); len(left) > 0 {
		t.Errorf("it would be told again: %+v", left)
	}
}

// TestDrainedOnceWritten: a home is free once its last steps are written.
func TestDrainedOnceWritten(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	a := w.open("a")
	w.open("b")
	a.has(t, "alice")
	eventually(t, "a to know of b", a.Others)
	goOn := a.held.stop()
	defer goOn()
	if err := a.PutSticky(t.Context(), grantOf("alice"), "s", "chosen", ""); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the choice to be on its way", func() bool { return a.held.writing.Load() == 1 })
	drained := a.drain(t.Context())
	eventually(t, "the home to be let go of", func() bool { return len(a.list()) == 0 })
	time.Sleep(2 * drainEvery) // what is left is looked at
	select {
	case <-drained:
		t.Error("it has drained while a choice was on its way")
	default:
	}
	goOn()
	<-drained
	if a.held.early.Load() {
		t.Error("the home was to be free while a choice was on its way")
	}
	kept, err := a.store.State(t.Context(), grantOf("alice").Caller)
	chosen, _, _ := ledger.DecodeSticky("s", kept.Documents[ledger.StickyDoc+"s"])
	if err != nil || chosen.Target.Thread != "chosen" {
		t.Errorf("kept: %+v, %v", kept, err)
	}
}

// TestDrainsAlone: without another instance, nothing is handed over.
func TestDrainsAlone(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	a := w.open("a")
	a.has(t, "alice")
	a.Drain(t.Context(), func(handoff.Caller) bool { return false })
	if a.get(grantOf("alice").Caller) == nil {
		t.Error("a home was handed over to nobody")
	}
}

// TestReleased: a home is released some time after its last use, unless something is open in it.
func TestReleased(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	a, b := w.open("a"), w.open("b")
	request, end := context.WithCancel(t.Context())
	defer end()
	a.come(t, "gone", "with work")
	if _, err := a.Where(request, grantOf("served").Caller); err != nil {
		t.Fatal(err)
	}
	a.works(t, "with work", "runs on", handoff.StatusStarted)
	a.endIdle(time.Now().Add(idleFor / 2))
	if len(a.list()) != 3 {
		t.Errorf("%d homes are left too early", len(a.list()))
	}
	a.endIdle(time.Now().Add(2 * idleFor))
	for user, want := range map[string]string{"gone": "b:8090", "with work": "a:8090", "served": "a:8090"} {
		eventually(t, user+" to be at "+want, func() bool { return b.where(t, user) == want })
	}
}

// TestReleasedTogether: homes that were left in the same minute are released some at a time.
func TestReleasedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := NewShared(router.Config{Fleet: w, Store: w}, Sharing{})
		s.ctx = t.Context()
		s.cluster.neighbours.Acknowledged(time.Now())
		s.mu.Lock()
		for i := range endedAtOnce + 10 {
			s.beginLocked(s.makeLocked(grantOf(fmt.Sprint(i)).Caller, time.Now(), 1))
		}
		s.mu.Unlock()
		synctest.Wait() // what the store has of them is read
		for _, left := range []int{10, 0} {
			s.endIdle(time.Now().Add(2 * idleFor))
			if n := len(s.list()); n != left {
				t.Errorf("%d homes are left, want %d", n, left)
			}
			synctest.Wait() // those that were let go of have ended
		}
	})
}

// TestServedWhenThereAreTooMany: when there are too many homes, none ends in which a request is served: the next
// request would go to another instance, while the connection is still open at this one. Nor does one end that was just
// looked up, and is about to be used.
func TestServedWhenThereAreTooMany(t *testing.T) {
	s, now := NewShared(router.Config{Fleet: newWorld()}, Sharing{Self: handoff.Instance{ID: "a"}, Store: &told{}}), time.Now()
	add := func(user string, asked time.Time) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.makeLocked(grantOf(user).Caller, asked, 1).end = func(error) {}
	}
	for i := range maxHomes * 2 {
		add(fmt.Sprint("looked up ", i), now)
	}
	if s.endIdle(now); len(s.list()) != maxHomes*2 {
		t.Errorf("%d homes are left, want those that were just looked up", len(s.list()))
	}
	clear(s.homes)
	add("served", now.Add(-2*awayFor))
	for i := range maxHomes {
		add(fmt.Sprint(i), now.Add(-awayFor))
	}
	s.visit(t.Context(), grantOf("served").Caller)
	s.endIdle(now)
	left, served := len(s.list()), s.get(grantOf("served").Caller)
	if left > maxHomes || served == nil {
		t.Errorf("%d homes are left, that of who is served: %v", left, served != nil)
	}
}
