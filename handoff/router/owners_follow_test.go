package router

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// ownedNews has the threads that other instances made, with the time of each.
type ownedNews struct {
	mu   sync.Mutex
	made map[time.Time]ledger.Owned // Guarded by mu
	down bool                       // Guarded by mu
}

func (n *ownedNews) OwnedSince(_ context.Context, since time.Time) (all []ledger.Owned, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		return nil, errors.New("away")
	}
	for at, one := range n.made {
		if !at.Before(since) {
			all = append(all, one)
		}
	}
	return all, nil
}

func (n *ownedNews) change(do func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	do()
}

// TestOwnersElsewhere: a thread that another instance made for a caller is soon hidden from others, also if the clock
// of that instance is behind, and after the store was away for long.
func TestOwnersElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		news := &ownedNews{made: map[time.Time]ledger.Owned{}}
		owners := NewOwners(nil)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { owners.Follow(ctx, news, zap.NewNop()) })
		alice, bob := handoff.Caller{Principal: "alice"}, handoff.Caller{Principal: "bob"}
		hidden := func(thread string) {
			t.Helper()
			if owners.Hidden(alice, "s", thread) || !owners.Hidden(bob, "s", thread) {
				t.Errorf("%s is hidden from alice, who owns it: %v; from bob: %v", thread,
					owners.Hidden(alice, "s", thread), owners.Hidden(bob, "s", thread))
			}
		}
		makes := func(thread string, at time.Time) {
			news.change(func() { news.made[at] = ledger.Owned{Server: "s", Thread: thread, Caller: alice} })
		}
		time.Sleep(time.Hour)
		makes("fresh", time.Now())
		makes("of a slow clock", time.Now().Add(-followBack/2))
		time.Sleep(2 * followEvery)
		hidden("fresh")
		hidden("of a slow clock")
		news.change(func() { news.down = true })
		makes("while it was away", time.Now())
		time.Sleep(time.Hour)
		news.change(func() { news.down = false })
		time.Sleep(2 * followEvery)
		hidden("while it was away")
		stop()
		running.Wait()
	})
}

// TestOwnersAreBounded: a thread keeps its first owner, and the oldest threads are forgotten.
func TestOwnersAreBounded(t *testing.T) {
	r := NewRouter(Config{Caller: ladderCaller})
	a, b := handoff.Caller{Principal: "a"}, handoff.Caller{Principal: "b"}
	for i := range ledger.MaxOwned + 1 {
		r.cfg.Owners.add(a, handoff.Target{Server: "s", Project: "p", Thread: fmt.Sprint(i)})
	}
	last := fmt.Sprint(ledger.MaxOwned)
	r.cfg.Owners.add(b, handoff.Target{Server: "s", Thread: last})
	r.cfg.Owners.add(a, handoff.Target{Server: "s", Thread: "0199d1f2-00aa"})
	if !r.cfg.Owners.Hidden(b, "s", "0199D1F2-00AA") { // Codex reads an id in any case
		t.Error("a thread is seen under its id in capitals")
	}
	if hidden := r.cfg.Owners.Hidden; !hidden(b, "s", "a lost copy", last) || hidden(a, "s", "a lost copy", last) {
		t.Error("a copy without an owner is not its source's")
	}
	r.cfg.Owners.add(b, handoff.Target{Server: "s", Thread: "a copy"})
	if r.cfg.Owners.Hidden(b, "s", "a copy", last) {
		t.Error("a copy is not its owner's")
	}
	if !r.cfg.Owners.Hidden(b, "s", last) || r.cfg.Owners.Hidden(b, "s", "0") ||
		len(r.cfg.Owners.by) > ledger.MaxOwned || len(r.cfg.Owners.by) != len(r.cfg.Owners.order) {
		t.Errorf("%d are kept", len(r.cfg.Owners.by))
	}
}
