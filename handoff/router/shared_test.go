package router

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// A common has what the routers of one process share: a fleet of one thread, a store, and the parts of their [Config].
type common struct {
	*copier
	store  *shelf
	queues *Queues
	owners *Owners
	rates  *Rates
	counts *Counts
}

func newCommon() *common {
	x := &common{copier: newCopier(), store: shelved()}
	x.share()
	return x
}

// share begins a life of the process: only the fleet and the store are as they were.
func (x *common) share() {
	x.queues, x.owners, x.rates, x.counts = NewQueues(), NewOwners(x), new(Rates), NewCounts(x)
}

func (x *common) Owned(context.Context) (all []ledger.Owned, err error) {
	x.store.change(func() {
		for _, b := range x.store.sent {
			for _, c := range b.Changed {
				all = append(all, c.Owned)
			}
		}
	})
	return all, nil
}

// A home is a router with its one caller.
type home struct {
	client
	end func()
}

// home begins a router of one caller. They have a key in common.
func (x *common) home(t *testing.T, user string) home {
	c := handoff.Caller{Principal: "many", User: user}
	r := NewRouter(Config{
		Fleet: x, Store: x.store, Caller: c,
		Queues: x.queues, Owners: x.owners, Rates: x.rates, Counts: x.counts,
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	if err := x.owners.Read(ctx); err != nil {
		t.Fatal(err)
	}
	r.TakeUp(ctx)
	grant := handoff.Grant{Caller: c, Key: "k", KeyLimits: handoff.Limits{HandoffsPerMinute: 4}}
	return home{client{r, grant, t}, sync.OnceFunc(func() { stop(); <-done })}
}

func (h home) ask(thread string) handoff.ID {
	h.t.Helper()
	defer synctest.Wait()
	return h.start(handoff.Request{
		Target: handoff.Target{Server: "s", Thread: thread}, Input: handoff.TextInput("go"), Mode: handoff.ModeNext,
	})
}

// counted returns the sum of a metric over all its labels.
func (x *common) counted(name string) (sum float64) {
	for m := range handoff.JoinMetrics(x.counts.Metrics(), x.queues.Metrics()) {
		if m.Name == name {
			sum += m.Value
		}
	}
	return sum
}

// TestRoutersBesideEachOther: each of several routers serves one caller, over one fleet, one store and the parts that
// they share, as if it were one router that serves all of them.
func TestRoutersBesideEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newCommon()
		homes := map[string]home{}
		for _, user := range []string{"alice", "bob", "carol"} {
			homes[user] = x.home(t, user)
			defer func() { homes[user].end() }()
		}
		synctest.Wait()

		// Turns on one thread wait for each other, also those of others.
		first, second := homes["alice"].ask("t"), homes["bob"].ask("t")
		if rec := homes["bob"].record(second); x.started != 1 || rec.State != handoff.StatusAccepted || rec.Waits != "ours" {
			t.Fatalf("%d turns run on one thread; the second is %+v", x.started, rec)
		}
		if n := x.counted("switchboard_threads_busy"); n != 1 {
			t.Errorf("%v threads are busy", n)
		}
		made := homes["carol"].record(homes["carol"].ask(handoff.NewThread)).ThreadID
		hidden := func(user string) bool { return x.owners.Hidden(homes[user].grant.Caller, "s", made) }
		if hidden("carol") || !hidden("bob") {
			t.Errorf("the owner of %q is not known to all", made)
		}

		// What a key has left, it has left with each of them.
		homes["carol"].ask("t")
		for user, h := range homes {
			if err := h.MayGive(h.grant); handoff.CodeOf(err) != handoff.CodeLimited {
				t.Errorf("the key may give more to %s: %v", user, err)
			}
		}
		if runs, callers := x.counted("switchboard_runs"), x.counted("switchboard_callers"); runs != 4 || callers != 3 {
			t.Errorf("%v runs of %v callers are open", runs, callers)
		}

		// One that ends leaves the others and the counts as they are.
		close(x.let)
		synctest.Wait()
		homes["carol"].end()
		for user, id := range map[string]handoff.ID{"alice": first, "bob": second} {
			if rec := homes[user].record(id); rec.Outcome != handoff.OutcomeResult {
				t.Errorf("%s: %+v", user, rec)
			}
		}
		ended, callers := x.counted("switchboard_runs_total"), x.counted("switchboard_callers")
		if ended != 4 || callers != 2 {
			t.Errorf("%v runs have ended, %v callers are left", ended, callers)
		}
	})
}
