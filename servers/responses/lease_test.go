package responses

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zaptest"

	"switchboard/handoff/threads"
)

// TestLeaseIsRenewed: a waiting turn keeps its lease, and ends when another process has ended it.
func TestLeaseIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(Config{Name: "helper", Threads: threads.NewMemory(), Workspace: stub{}, Log: zaptest.NewLogger(t)})
		step := func(step threads.Step) threads.Result {
			t.Helper()
			r, err := s.advance(t.Context(), step)
			must(t, err)
			return r
		}
		step(threads.Create{Owner: "helper", Thread: "t", At: time.Now()})
		claim := step(threads.Claim{Owner: "helper", Thread: "t", Turn: "a", Items: history("u:hi"), At: time.Now()})
		r := &run{server: s, thread: "t", id: "a", fence: claim.Turn.Fence}
		ctx, cancel := context.WithCancelCause(t.Context())
		var work sync.WaitGroup
		defer work.Wait()
		defer cancel(nil)
		work.Go(func() { r.beat(ctx, cancel) })
		time.Sleep(3 * threads.Lease)
		if record, err := s.cfg.Threads.Read(ctx, "helper", "t"); err != nil || record.Thread.Running(time.Now()) != "a" {
			t.Errorf("it is taken for lost: %+v, %v", record.Thread, err)
		}
		over := r.emptyStep()
		step(threads.End{Append: over, Status: threads.Interrupted})
		time.Sleep(threads.Lease)
		if !errors.Is(context.Cause(ctx), errFenced) {
			t.Errorf("it goes on in a turn that is over: %v", context.Cause(ctx))
		}
	})
}

// TestFormerTurns: turns that an earlier process left running are ended at the start, so that nobody waits for their
// leases. Where other instances run the agent too, only the expiry of a lease shows that a turn is lost.
func TestFormerTurns(t *testing.T) {
	for name, want := range map[string]string{"alone": "", "one of several": "a"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := threads.NewMemory()
				agents := NewAgents(store, nil)
				if want != "" {
					agents.Share()
				}
				s := agents.Add(Config{Name: "helper", Threads: store, Workspace: stub{}, Log: zaptest.NewLogger(t)})
				for _, step := range []threads.Step{
					threads.Create{Owner: "helper", Thread: "t", At: time.Now()},
					threads.Claim{Owner: "helper", Thread: "t", Turn: "a", Items: history("u:hi"), At: time.Now()},
				} {
					_, err := store.Advance(t.Context(), step)
					must(t, err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				var work sync.WaitGroup
				defer work.Wait()
				defer cancel()
				work.Go(func() { _ = agents.Run(ctx) })
				<-s.ready
				if record, err := store.Read(ctx, "helper", "t"); err != nil || record.Thread.Active != want {
					t.Errorf("turn %q runs, want %q: %v", record.Thread.Active, want, err)
				}
			})
		})
	}
}
