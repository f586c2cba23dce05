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

	"switchboard/handoff/ledger"
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

// TestCommitsCut: every batch of many handoffs loses its connection, before or after the script. The version then says
// whether it was written, a repetition writes it at most once, and who decided from before it never gets through.
func TestCommitsCut(t *testing.T) {
	t.Parallel()
	server := sessionstest.StartRedis(t)
	c := startCutter(t, server.Addr)
	s := open(t, redis.Config{URL: "redis://" + c.addr + "/0"})
	commit := func(b ledger.Batch, was, now string) (ledger.Committed, error) {
		b.Was, b.Now = was, now
		return s.Commit(t.Context(), owner, b)
	}
	const handoffs = 100
	version := "first"
	if done, err := commit(sessionstest.Put("stays"), "", version); done != ledger.Written || err != nil {
		t.Fatal(done, err)
	}
	for i := range handoffs {
		e := sessionstest.Entry(fmt.Sprintf("key-%03d", i))
		for j, b := range []ledger.Batch{sessionstest.Put(e.Key), sessionstest.Over(time.Now(), e)} {
			now, cut := fmt.Sprint(e.Key, "/", j), cutRequest+int32(i/2+j)%2
			c.next.Store(cut)
			_, err := commit(b, version, now)
			unreachable(t, err, c.addr)
			there, err := s.State(t.Context(), owner)
			must(t, err)
			if written := there.Version == now; written != (cut == cutReply) || !written && there.Version != version {
				t.Fatalf("after %s it has version %q", now, there.Version)
			}
			_, err = commit(b, version, now)
			must(t, err)
			if done, err := commit(sessionstest.Put("rival"), version, "rival"); done != ledger.Outdated || err != nil {
				t.Fatalf("a rival came to %d, %v", done, err)
			}
			version = now
		}
	}
	if got := c.cuts.Load(); got != 2*handoffs {
		t.Fatalf("%d cuts", got)
	}
	sessionstest.WantOpen(t, s, "stays")
	page, err := s.History(t.Context(), owner, ledger.HistoryQuery{})
	if err != nil || len(page.Entries) != handoffs || page.Entries[0].Key != "key-099" {
		t.Fatalf("of the past there is %+v, %v", page, err)
	}
}

// A Redis that is killed is told from one that refuses, whatever is asked, and the store goes on when it is back,
// although it has forgotten everything: what was decided from before is outdated then. Its lease is tried to be renewed
// meanwhile, and is its own again.
func TestRedisForgets(t *testing.T) {
	t.Parallel()
	server := sessionstest.StartRedis(t)
	s := open(t, redis.Config{URL: server.URL})
	ended := sessionstest.Run(t, s)
	must(t, put(t, s, "key"))
	before, err := s.State(t.Context(), owner)
	must(t, err)
	server.Kill()
	next := sessionstest.Put("next")
	next.Was, next.Now = before.Version, "next"
	for range 20 { // more than the connections of the pool
		_, err := s.Commit(t.Context(), owner, next)
		unreachable(t, err, server.Addr)
		_, err = s.State(t.Context(), owner)
		unreachable(t, err, server.Addr)
		_, err = s.Waiting(t.Context(), ledger.HandoffDoc)
		unreachable(t, err, server.Addr)
	}
	for s.RenewErrors() == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	server.Start()
	for { // the client tries a Redis that was away once a second
		if _, err := s.State(t.Context(), owner); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	sessionstest.WantOpen(t, s)
	if done, err := s.Commit(t.Context(), owner, next); done != ledger.Outdated || err != nil {
		t.Fatalf("what was decided from before came to %d, %v", done, err)
	}
	must(t, put(t, s, "key", "next"))
	sessionstest.WantOpen(t, s, "key", "next")
	must(t, ended())
}
