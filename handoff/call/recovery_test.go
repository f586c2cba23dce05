package call

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/call/calltest"
	"switchboard/handoff/router"
)

// A fullLedger holds so much that reading all of it takes a while; each answer of the store comes at once.
type fullLedger struct {
	calltest.Held
	world *world
}

func (l fullLedger) Waiting(ctx context.Context, prefix string) ([]handoff.Caller, error) {
	if err := l.world.Wait(ctx, time.Minute); err != nil {
		return nil, err
	}
	return l.Held.Waiting(ctx, prefix)
}

// TestManyCallersAreTakenUp: what a former life left is taken up however long it takes to read it.
func TestManyCallersAreTakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "server bigpc\nturn t1 1s completed Done.\nentry h-9 started bigpc t1 turn-9")
		r, _ := service("h", router.Config{Fleet: w, Store: fullLedger{w.Ledger.For("h"), w}}, w, "")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		time.Sleep(time.Hour)
		if rec, err := r.Handoff(calltest.Grant, "h-9"); err != nil || rec.Outcome != handoff.OutcomeResult {
			t.Errorf("the record is %+v, %v", rec, err)
		}
		cancel()
		<-done
	})
}
