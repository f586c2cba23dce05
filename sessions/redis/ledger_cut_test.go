package redis_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/ledger/ledgertest"
	"switchboard/sessions/redis"
	"switchboard/sessions/sessionstest"
)

// What a cutter does to the next script.
const (
	cutNothing int32 = iota
	cutRequest       // the script never reaches the Redis
	cutReply         // the script runs, and its answer is lost
)

// A cutter is a proxy in front of a Redis that cuts the connection of a script.
type cutter struct {
	addr string       // Set once
	next atomic.Int32 // what to do to the next script; any goroutine may set it
	cuts atomic.Int32 // how often it was done; any goroutine may read it
}

func startCutter(t *testing.T, to string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	c := &cutter{addr: l.Addr().String()}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				if err := c.carry(client, to); err != nil {
					t.Error(err)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return c
}

// carry forwards a connection, one request and its answer after the other, as the client sends them.
func (c *cutter) carry(client net.Conn, to string) error {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return nil // the client has ended it
		}
		cut := cutNothing
		if bytes.Contains(bytes.ToLower(buf[:n]), []byte("eval")) {
			cut = c.next.Swap(cutNothing)
		}
		if cut == cutRequest {
			c.cuts.Add(1)
			return nil
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return err
		}
		n, err = server.Read(buf)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if cut == cutReply {
			c.cuts.Add(1)
			return nil
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return nil
		}
	}
}

// TestLedgerRepliesCut: every step of many handoffs loses its connection, before or after the script. Repeating a step
// never fails as if the owner had lost, nothing is applied twice, and a second owner never gets through.
func TestLedgerRepliesCut(t *testing.T) {
	t.Parallel()
	server := sessionstest.StartRedis(t)
	c := startCutter(t, server.Addr)
	s := open(t, redis.Config{URL: "redis://" + c.addr + "/0"})
	path := []handoff.Status{
		handoff.StatusAccepted, handoff.StatusDispatching, handoff.StatusStarted, handoff.StatusCompleted,
		handoff.StatusDelivered,
	}
	var events []ledgertest.Event
	ask := func(step ledger.Step, want handoff.Code) ledger.Entry {
		t.Helper()
		e, err := s.Advance(t.Context(), step)
		code := handoff.CodeOf(err)
		if code != want {
			t.Fatalf("%s to %q: %v, want %q", step.Key, step.To, err, want)
		}
		events = append(events, ledgertest.Event{Step: step, Entry: e, Code: code})
		return e
	}
	const handoffs = 100
	for i := range handoffs {
		key := fmt.Sprint("key-", i)
		ask(sessionstest.LedgerStep(key, "a", path[0]), "")
		var e ledger.Entry
		for j, to := range path {
			step := sessionstest.LedgerStep(key, "a", to)
			c.next.Store(cutRequest + int32(i+j)%2)
			ask(step, handoff.CodeUnreachable)
			e = ask(step, "")
			ask(sessionstest.LedgerStep(key, "b", to), handoff.CodeTakenOver)
			if to == handoff.StatusCompleted {
				events = append(events, ledgertest.Event{Kind: ledgertest.TraceSaid, Key: key, Session: "call"})
			}
		}
		if e.Attempt != 1 || e.Status != handoff.StatusDelivered || e.Owner != "a" {
			t.Fatalf("at the end %+v", e)
		}
	}
	if got := c.cuts.Load(); got != handoffs*int32(len(path)) {
		t.Fatalf("%d cuts", got)
	}
	must(t, ledgertest.CheckTrace(events))
}

// A Redis that is killed is told from one that refuses, whatever is asked, and the ledger goes on when it
// is back, although it has forgotten everything.
func TestLedgerRedisDies(t *testing.T) {
	t.Parallel()
	server := sessionstest.StartRedis(t)
	s := open(t, redis.Config{URL: server.URL})
	e := ledgerStep(t, s, handoff.StatusDispatching)
	server.Kill()
	for range 20 { // more than the connections of the pool
		_, err := s.Advance(t.Context(), sessionstest.LedgerStep("key", "a", handoff.StatusStarted))
		unreachable(t, err, server.Addr)
		_, err = s.Open(t.Context(), owner)
		unreachable(t, err, server.Addr)
		_, err = s.OpenAll(t.Context())
		unreachable(t, err, server.Addr)
	}
	server.Start()
	for { // the client tries a Redis that was away once a second
		if _, err := s.OpenAll(t.Context()); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	wantOpen(t, s)
	again := sessionstest.LedgerStep("key", "a", handoff.StatusStarted)
	again.New, again.Set = true, e.Facts
	again.Set.Turn = "turn-1"
	found, err := s.Advance(t.Context(), again)
	if err != nil || found.Target != e.Target || found.Turn != "turn-1" {
		t.Fatalf("told again: %+v, %v", found, err)
	}
	wantOpen(t, s, found)
}
