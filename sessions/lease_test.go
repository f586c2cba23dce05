package sessions

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The life of a lease, in fake time: held, renewed, given back, expired, lost.
func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		ctx := t.Context()
		a, b := newLease(s), newLease(s)
		a.value, b.value = "pc-a:1 token", "pc-b:2 token"
		holder := func(want string) {
			t.Helper()
			if got := s.client.Get(ctx, "switchboard:lease").Val(); got != want {
				t.Fatalf("held by %q, want %q", got, want)
			}
		}

		if err := a.acquire(ctx); err != nil {
			t.Fatal(err)
		}
		for range 10 { // renewed every second it never ends
			time.Sleep(tickEvery)
			if err := a.tick(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.end(ctx); err != nil { // giving back what is not ours changes nothing
			t.Fatal(err)
		}
		holder(a.value)

		began := time.Now() // nobody renews: b gets it when it has expired, not before
		if err := b.acquire(ctx); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 2500*time.Millisecond || took > leaseWait {
			t.Fatalf("b waited %v", took)
		}
		holder(b.value)
		if err := a.tick(ctx); err == nil || !strings.Contains(err.Error(), "pc-b:2") || s.Stats().LeasesLost != 1 {
			t.Fatalf("a: %v, stats %+v", err, s.Stats())
		}
		if err := a.end(ctx); err != nil {
			t.Fatal(err)
		}
		holder(b.value)

		if err := b.end(ctx); err != nil {
			t.Fatal(err)
		}
		holder("")
		if err := b.tick(ctx); err != nil { // a Redis that came back empty: still ours
			t.Fatal(err)
		}
		holder(b.value)
	})
}

// A holder that lives keeps its lease: the second waits four seconds and refuses with its name.
func TestLeaseHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		a, b := newLease(s), newLease(s)
		a.value = "pc-a:1 token"
		if err := a.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- b.acquire(t.Context()) }()
		began := time.Now()
		for {
			select {
			case err := <-done:
				if took := time.Since(began); took != leaseWait || !strings.Contains(err.Error(), "pc-a:1") {
					t.Fatalf("refused after %v: %v", took, err)
				}
				return
			case <-time.After(tickEvery):
				if err := a.tick(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
