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

// TestLeaseIsRenewed: a turn that waits stays alive, and ends when somebody else has ended it.
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
		over := r.sign()
		step(threads.End{Append: over, Status: threads.Interrupted})
		time.Sleep(threads.Lease)
		if !errors.Is(context.Cause(ctx), errFenced) {
			t.Errorf("it goes on in a turn that is over: %v", context.Cause(ctx))
		}
	})
}
