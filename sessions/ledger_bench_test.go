package sessions_test

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
	"switchboard/sessions/sessionstest"
)

// BenchmarkLedger is the one step that a start waits for, accepted to dispatching, in hops: how many times
// as long as a message over loopback TCP and back takes in the same run. The embedded Redis looks at every
// key it has at each command, so its figure depends on -benchtime: 200x is a busy two hours.
func BenchmarkLedger(b *testing.B) {
	redis := sessionstest.StartRedis(b)
	for name, cfg := range map[string]sessions.Config{"real": {URL: redis.URL}, "embedded": {}} {
		b.Run(name, func(b *testing.B) {
			s, err := sessions.Open(b.Context(), cfg)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			hop := startEcho(b)
			n := 0
			var hops, steps time.Duration
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				key := fmt.Sprint("key-", n)
				n++
				if _, err := s.Advance(b.Context(), sessionstest.LedgerStep(key, "a", handoff.StatusAccepted)); err != nil {
					b.Fatal(err)
				}
				step := sessionstest.LedgerStep(key, "a", handoff.StatusDispatching)
				hops += hop()
				b.StartTimer()
				began := time.Now()
				if _, err := s.Advance(b.Context(), step); err != nil {
					b.Fatal(err)
				}
				steps += time.Since(began)
				b.StopTimer() // delivered, as most are: few are open at a time
				for _, to := range []handoff.Status{handoff.StatusCompleted, handoff.StatusDelivered} {
					if _, err := s.Advance(b.Context(), sessionstest.LedgerStep(key, "a", to)); err != nil {
						b.Fatal(err)
					}
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(steps)/float64(hops), "hops/op")
		})
	}
}

// startEcho returns a function that sends a message of the size of a step to a neighbour and waits for it
// to come back.
func startEcho(b *testing.B) func() time.Duration {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.Copy(conn, conn) // until the other end closes it
		_ = conn.Close()
	})
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = conn.Close()
		_ = l.Close()
		all.Wait()
	})
	message, back := make([]byte, 512), make([]byte, 512)
	return func() time.Duration {
		began := time.Now()
		if _, err := conn.Write(message); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(conn, back); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
}
