package redis_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions/redis"
	"switchboard/sessions/sessionstest"
)

// TestGateOverOneRedis: instances share a gate, which behaves as [ledger.Gate] does; each thread has its own.
func TestGateOverOneRedis(t *testing.T) {
	t.Parallel()
	server := sessionstest.StartRedis(t)
	both := [2]*redis.Store{
		open(t, redis.Config{URL: server.URL, Shared: true}), open(t, redis.Config{URL: server.URL, Shared: true}),
	}
	thread := handoff.Target{Server: "big pc", Thread: "t/1"}
	want := ledger.Gate{}
	for i, step := range []struct {
		holder string
		frees  bool
		last   handoff.TurnID
	}{
		{holder: "a-1"}, {holder: "b-1"}, {holder: "a-1"},
		{holder: "b-1", frees: true, last: "none"}, {holder: "b-1"}, // of somebody else
		{holder: "a-1", frees: true, last: "turn 1"}, {holder: "b-1"}, {holder: "a-1"},
		{holder: "b-1", frees: true}, {holder: "a-2"}, // the last turn is still known
		{holder: "a-2", frees: true, last: "turn\n2"}, {holder: "a-2", frees: true}, {holder: "b-1"},
	} {
		s := both[i%2]
		if step.frees {
			want = want.Free(step.holder, step.last)
			if err := s.FreeGate(t.Context(), thread, step.holder, step.last); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want = want.Take(step.holder)
		if got, err := s.TakeGate(t.Context(), thread, step.holder); err != nil || got != want {
			t.Fatalf("step %d: %+v, %v, want %+v", i, got, err, want)
		}
	}
	other := handoff.Target{Server: "big", Thread: "pc t/1"}
	if got, err := both[0].TakeGate(t.Context(), other, "c"); err != nil || got != (ledger.Gate{Holder: "c"}) {
		t.Errorf("another thread: %+v, %v", got, err)
	}
	var all sync.WaitGroup
	var won atomic.Int32
	for i := range 16 { // at once, at both
		all.Go(func() {
			holder := fmt.Sprint("holder-", i)
			got, err := both[i%2].TakeGate(t.Context(), handoff.Target{Server: "mini", Thread: "t"}, holder)
			if err != nil {
				t.Error(err)
			}
			if got.Holder == holder {
				won.Add(1)
			}
		})
	}
	if all.Wait(); won.Load() != 1 {
		t.Errorf("%d of them have the gate", won.Load())
	}
}
