package homes

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/router"
	"switchboard/sessions/redis"
)

// A told store answers as the test sets it, and stores nothing.
type told struct {
	redis.Homes
	claim    ledger.Claim // what it says of each home
	asserted int
	lost     bool // it was told that the home is another's
	beat     error
}

func (s *told) Beat(context.Context, ledger.Beat) error { return s.beat }

func (s *told) Claims(_ context.Context, of []handoff.Caller) ([]ledger.Claim, error) {
	return slices.Repeat([]ledger.Claim{s.claim}, len(of)), nil
}

func (s *told) Assert(context.Context, handoff.Caller, ledger.Claim) error {
	s.asserted++
	return nil
}

func (s *told) Lose(handoff.Caller) { s.lost = true }

// looked reports whether the homes are to be verified at once.
func (s *Homes) looked() bool {
	select {
	case <-s.cluster.verifyNow:
		return true
	default:
		return false
	}
}

// TestToldAndTaken: if the store has lost a home, and another instance takes it before its claim is written again, the
// first instance does not act until it knows whose the home is.
func TestToldAndTaken(t *testing.T) {
	store, now, caller := &told{}, time.Now(), grantOf("alice").Caller
	s := NewShared(router.Config{Fleet: newWorld()}, Sharing{Self: handoff.Instance{ID: "a"}, Store: store})
	s.mu.Lock()
	s.makeLocked(caller, now, 5).end = func(error) {}
	s.mu.Unlock()
	s.cluster.neighbours.Acknowledged(now.Add(-deadAfter))
	s.cluster.neighbours.Acknowledged(now) // after so long that others may have taken what is here
	if s.verify(t.Context()); s.cluster.mayAct() || !s.looked() || store.asserted != 1 {
		t.Errorf("it may act: %v; the store was told %d times", s.cluster.mayAct(), store.asserted)
	}
	store.claim = ledger.Claim{ID: "b", Epoch: 6}
	if s.verify(t.Context()); !s.cluster.mayAct() || !store.lost || s.get(caller) != nil {
		t.Errorf("it may act: %v; lost: %v", s.cluster.mayAct(), store.lost)
	}
}

// TestVerifiedAfterAReconnect: a store that was away, however shortly, may have come back with old claims, so the homes
// are verified.
func TestVerifiedAfterAReconnect(t *testing.T) {
	store := &told{}
	s := NewShared(router.Config{Fleet: newWorld()}, Sharing{Self: handoff.Instance{ID: "a"}, Store: store})
	for i, away := range []bool{false, true, false, false} {
		store.beat = nil
		if away {
			store.beat = handoff.Fault(handoff.CodeUnreachable, "the store", "")
		}
		s.cluster.beat(t.Context())
		if back := i == 2; s.looked() != back {
			t.Errorf("at beat %d the homes are verified: %v", i, !back)
		}
	}
}

// TestOpensItsOwn: an instance that may have lost a home goes on from nothing that the store has of it, since another
// may be about to start that work. The home stays until that was read, although nothing is open in it so far.
func TestOpensItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		former := w.live(t.Context(), "h")
		id := former.ask(t, "alice")
		synctest.Wait()
		former.end()

		s := NewShared(router.Config{Fleet: w, Store: w}, Sharing{Self: handoff.Instance{ID: "a"}, Store: &told{}})
		ctx, end := context.WithCancel(t.Context())
		s.mu.Lock()
		s.ctx = ctx
		h := s.makeLocked(grantOf("alice").Caller, time.Now(), 1)
		s.beginLocked(h)
		s.mu.Unlock()
		defer s.running.Wait()
		defer end()
		time.Sleep(2 * idleFor)
		if list, err := h.Handoffs(grantOf("alice")); len(list) > 0 || handoff.CodeOf(err) != handoff.CodeStoreDown {
			t.Errorf("it goes on with %v, %v", list, err)
		}
		if s.endIdle(time.Now()); len(s.list()) != 1 {
			t.Error("the home was let go of before it was read")
		}
		s.cluster.mu.Lock()
		s.cluster.neighbours.Acknowledged(time.Now().Add(time.Hour))
		s.cluster.mu.Unlock()
		time.Sleep(time.Minute)
		if rec, err := h.Handoff(grantOf("alice"), string(id)); err != nil || rec.State != handoff.StatusStarted {
			t.Errorf("it does not go on: %+v, %v", rec, err)
		}
	})
}
