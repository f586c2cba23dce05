package redis

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
)

// tickEvery is how often a lease is renewed.
const tickEvery = leaseFor / 3

// A leaseBoard stores a lease as the scripts do in a Redis, with the clock of the bubble.
type leaseBoard struct {
	mu      sync.Mutex // two processes use it
	value   string     // Guarded by mu
	expires time.Time  // Guarded by mu; zero for never
	newest  int64      // Guarded by mu: epoch
}

// holder returns the present holder. The caller holds mu.
func (b *leaseBoard) holder() string {
	if !b.expires.IsZero() && !time.Now().Before(b.expires) {
		return ""
	}
	return b.value
}

// lease returns a lease for a process with a name.
func (b *leaseBoard) lease(counts *counters, value string) *lease {
	return &lease{
		key: "switchboard:holder", value: value, where: "Redis", life: leaseFor, counts: counts, log: zap.NewNop(),
		take: func(_ context.Context, epoch int64) (holding, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if held := b.holder(); held != "" && held != value {
				name, _, _ := strings.Cut(held, " ")
				if b.expires.IsZero() {
					return holding{name, held, -1, 0}, nil
				}
				return holding{name, held, b.expires.UnixMilli(), 0}, nil
			}
			if epoch == 0 {
				epoch = max(b.newest+1, time.Now().UnixMilli())
			} else if b.newest > epoch {
				return holding{epoch: b.newest}, nil
			}
			b.value, b.expires, b.newest = value, time.Now().Add(leaseFor), epoch
			return holding{epoch: epoch}, nil
		},
		give: func(context.Context) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.holder() == value {
				b.value = ""
			}
			return nil
		},
	}
}

// TestLease: a lease is held, renewed, released, expired and lost, in fake time.
func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, board, counts := t.Context(), &leaseBoard{}, &counters{}
		a, b := board.lease(counts, "pc-a:1 token"), board.lease(counts, "pc-b:2 token")
		holder := func(want string) {
			t.Helper()
			if got := board.holder(); got != want {
				t.Fatalf("held by %q, want %q", got, want)
			}
		}

		must(t, a.acquire(ctx))
		for range 10 { // renewed every second it never ends
			time.Sleep(tickEvery)
			must(t, a.tick(ctx))
		}
		if err := b.end(ctx); err != nil { // releasing another's lease changes nothing
			t.Fatal(err)
		}
		holder(a.value)

		began := time.Now() // without renewals b gets it once it has expired, not before
		must(t, b.acquire(ctx))
		if took := time.Since(began); took < leaseFor || took > leaseFor+leasePause {
			t.Fatalf("b waited %v", took)
		}
		holder(b.value)
		if err := a.tick(ctx); err == nil || !strings.Contains(err.Error(), "pc-b:2") || counts.leasesLost.Load() != 1 {
			t.Fatalf("a: %v, %d lost", err, counts.leasesLost.Load())
		}
		must(t, a.end(ctx))
		holder(b.value)

		must(t, b.end(ctx))
		holder("")
		board.value, board.newest = "", 0
		if err := b.tick(ctx); err != nil { // a Redis that came back empty: still ours
			t.Fatal(err)
		}
		holder(b.value)
		must(t, b.end(ctx))
		if err := a.tick(ctx); err == nil || counts.leasesLost.Load() != 2 { // though b has ended
			t.Fatalf("a: %v, %d lost", err, counts.leasesLost.Load())
		}
		holder("")
	})
}

// A holder that lives keeps its lease: the second refuses with its name at the first renewal after four
// seconds.
func TestLeaseHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took, err := secondWaits(t, time.Hour)
		if err == nil || !strings.Contains(err.Error(), "pc-a:1") || took < leaseWait ||
			took > leaseWait+tickEvery+2*leasePause {
			t.Fatalf("refused after %v: %v", took, err)
		}
	})
}

// The lease of a process that is killed while a second waits is always taken over.
func TestLeaseOfTheKilled(t *testing.T) {
	for killed := time.Duration(0); killed < leaseWait; killed += 100 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			if took, err := secondWaits(t, killed); err != nil || took > killed+leaseFor+leasePause {
				t.Fatalf("killed after %v: %v, after %v", killed, err, took)
			}
		})
	}
}

// secondWaits has a second process acquire a lease whose holder renews it until it is killed. It returns how long that
// took, and the error.
func secondWaits(t *testing.T, killed time.Duration) (time.Duration, error) {
	board := &leaseBoard{}
	a, b := board.lease(&counters{}, "pc-a:1 token"), board.lease(&counters{}, "pc-b:2 token")
	must(t, a.acquire(t.Context()))
	began, done := time.Now(), make(chan error)
	go func() { done <- b.acquire(t.Context()) }()
	for {
		select {
		case err := <-done:
			return time.Since(began), err
		case <-time.After(tickEvery):
			if time.Since(began) > killed {
				err := <-done
				return time.Since(began), err
			}
			must(t, a.tick(t.Context()))
		}
	}
}

// A lease that never expires, which somebody else must have written, is not waited for without end.
func TestLeaseForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board := &leaseBoard{value: "pc-x:9 token"}
		b := board.lease(&counters{}, "pc-b:2 token")
		if err := b.acquire(t.Context()); err == nil || !strings.Contains(err.Error(), "pc-x:9") {
			t.Fatal(err)
		}
	})
}
