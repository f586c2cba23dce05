package sessions

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/sessions/sessionstest"
)

// BenchmarkLedger is the one step that a start waits for, accepted to dispatching, in a store that keeps
// so many ended handoffs already. Hops are how many times as long as a message of that size over loopback
// TCP and back takes in the same run.
func BenchmarkLedger(b *testing.B) {
	redis := sessionstest.StartRedis(b)
	for name, url := range map[string]string{"real": redis.URL, "embedded": ""} {
		for _, n := range []int{10, 1000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				benchmarkLedger(b, Config{URL: url, Prefix: b.Name()}, n)
			})
		}
	}
}

func benchmarkLedger(b *testing.B, cfg Config, ended int) {
	s, err := Open(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	fill(b, s, ended)
	hop := startEcho(b)
	n := 0
	var hops, steps time.Duration
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		key := fmt.Sprint("key-", n)
		n++
		advance(b, s, sessionstest.LedgerStep(key, "a", handoff.StatusAccepted))
		step := sessionstest.LedgerStep(key, "a", handoff.StatusDispatching)
		hops += hop()
		b.StartTimer()
		began := time.Now()
		advance(b, s, step)
		steps += time.Since(began)
		b.StopTimer()
		if err := s.client.Del(b.Context(), s.entryKeys("owner")+key, s.openKey("owner"), s.callersKey()).Err(); err != nil {
			b.Fatal(err) // so that the number of keys stays
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(steps)/float64(hops), "hops/op")
}

func advance(tb testing.TB, s *Store, step handoff.LedgerStep) {
	tb.Helper()
	if _, err := s.Advance(tb.Context(), step); err != nil {
		tb.Fatal(err)
	}
}

// fill puts ended handoffs into a store.
func fill(tb testing.TB, s *Store, n int) {
	tb.Helper()
	at := time.Now().UnixMilli()
	keys := make([]savedKey, 0, n)
	for i := range n {
		at := text(strconv.FormatInt(at, 10))
		key := fmt.Sprint("ended-", i)
		keys = append(keys, savedKey{
			Key: text(s.entryKeys("owner") + key), Type: "hash", Expires: time.Now().Add(ledgerKeptFor).UnixMilli(),
			Values: []text{
				"key", text(key), "principal", "owner", "user", "", "owner", "a", "args", "args", "status", "delivered", "attempt", "1",
				"accepted", at, "ended", at, "client", text(key), "server", "bigpc", "project", "api", "thread", "t1", "turn", "turn-1",
				"prompt", "fix it", "title", "auth refactor", "why", "continued", "outcome", "result", "spoken", "The tests pass.",
			},
		})
	}
	if e, ok := s.keeper.(*embedded); ok {
		if err := e.restore(keys); err != nil {
			tb.Fatal(err)
		}
		return
	}
	pipe := s.client.Pipeline()
	for _, k := range keys {
		words := make([]string, len(k.Values))
		for i, v := range k.Values {
			words[i] = string(v)
		}
		pipe.HSet(tb.Context(), string(k.Key), words)
		pipe.PExpire(tb.Context(), string(k.Key), ledgerKeptFor)
	}
	if _, err := pipe.Exec(tb.Context()); err != nil {
		tb.Fatal(err)
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

// BenchmarkSnapshot is one snapshot of so many ended handoffs, with the disk.
func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{10, 1000, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s, err := Open(b.Context(), Config{StateDir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			fill(b, s, n)
			b.ReportAllocs()
			for b.Loop() {
				if err := s.keeper.(*embedded).save(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
