package main

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"switchboard/handoff"
	"switchboard/handoff/router"
	"switchboard/servers"
	"switchboard/servers/codex"
	machines "switchboard/servers/simulator"
	"switchboard/sessions/redis"
)

// A neighbour is one of two instances, as far as starting turns goes: a router of one caller, with a connection to the
// machine and one to the Redis of its own.
type neighbour struct {
	*router.Router
	grant handoff.Grant
}

func newNeighbour(t *testing.T, name, url, machine string) neighbour {
	t.Helper()
	grant := handoff.Grant{Caller: handoff.Caller{Principal: name}}
	store, err := redis.Open(t.Context(), redis.Config{URL: url, Shared: true})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	background(t, store.Run)
	_, err = store.Homes().Take(t.Context(), grant.Caller, "")
	must(t, err)
	fleet, err := servers.New(servers.Config{Specs: []servers.Spec{{
		Name: "bigpc", Dial: codex.Dialer(codex.Config{Name: "bigpc", Way: byURL(machine)}),
	}}})
	must(t, err)
	background(t, fleet.Run)
	r := router.NewRouter(router.Config{
		Fleet: fleet, Store: store, Gates: store, Caller: grant.Caller,
	})
	background(t, r.Run)
	r.TakeUp(t.Context())
	return neighbour{r, grant}
}

// asks gives work to a thread, and returns the record of its end.
func (n neighbour) asks(ctx context.Context, thread, words string) (rec handoff.Record, err error) {
	id, err := n.Start(ctx, n.grant, handoff.Request{
		Target: handoff.Target{Server: "bigpc", Thread: thread}, Input: handoff.TextInput(words), Mode: handoff.ModeNext,
	})
	if err != nil {
		return rec, err
	}
	for e, err := range n.Follow(ctx, n.grant, id, 0) {
		if err != nil {
			return rec, err
		}
		rec = e.Record
	}
	return rec, nil
}

// TestGate: two callers at two instances give work to one thread at the same moment, again and again. Codex puts two
// starts into one turn that come within milliseconds: each request has to get a turn and an answer of its own.
func TestGate(t *testing.T) {
	t.Parallel()
	threads, rounds := 8, 4 // at a time, and of each
	if soak() {
		rounds = 125
	}
	world := machines.NewWorld(machines.Config{Script: func(p machines.Prompt) []machines.Step {
		return []machines.Step{machines.Say{Text: "done: " + p.Text}}
	}})
	l := loopback(t)
	background(t, func(ctx context.Context) error { return world.Serve(ctx, "bigpc", l) })
	world.SetFaults("bigpc", machines.Faults{Start: machines.StartSlow})
	url, machine := startRedis(t), "ws://"+l.Addr().String()
	both := [2]neighbour{newNeighbour(t, "anna", url, machine), newNeighbour(t, "bert", url, machine)}
	known := len(world.Starts("bigpc"))
	var all sync.WaitGroup
	for n := range threads {
		thread := world.AddThread("bigpc", fmt.Sprintf("thread %d", n), "/src", false)
		all.Go(func() {
			for round := range rounds {
				var pair sync.WaitGroup
				for i, one := range both {
					words := fmt.Sprintf("job %d of thread %d for %d", round, n, i)
					pair.Go(func() {
						rec, err := one.asks(t.Context(), thread, words)
						for isRefused(rec) { // on a busy machine a Redis may take too long: nothing was begun
							rec, err = one.asks(t.Context(), thread, words)
						}
						if err != nil || rec.Outcome != handoff.OutcomeResult || rec.Text != "done: "+words {
							t.Errorf("%s: %v, %q: %q, %+v", words, err, rec.Why, rec.Text, rec.Fault)
						}
					})
				}
				pair.Wait()
			}
		})
	}
	all.Wait()
	merged, turns := 0, map[string]bool{}
	starts := world.Starts("bigpc")[known:]
	for _, s := range starts {
		if turns[s.Turn] = true; s.Steered {
			merged++
		}
	}
	if merged > 0 || len(turns) != 2*threads*rounds {
		t.Errorf("%d pairs: %d merges, %d starts, %d turns", threads*rounds, merged, len(starts), len(turns))
	}
	t.Logf("%d pairs: %d merges, %d turns", threads*rounds, merged, len(turns))
}
