package router

import (
	"context"
	"sync"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/work"
)

var (
	ladderCaller = handoff.Caller{Principal: "owner"}
	ladderGrant  = handoff.Grant{Caller: ladderCaller, Approve: handoff.ApproveAll, Page: true}
)

// An ear is a listener that remembers.
type ear struct {
	mu    sync.Mutex
	gone  bool            // Guarded by mu
	heard []handoff.Event // Guarded by mu
	away  []string        // Guarded by mu: ids of what it was given of the outbox
}

func (e *ear) Hear(event handoff.Event) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard = append(e.heard, event)
	return !e.gone
}

func (e *ear) Outbox(ended []handoff.Record) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, rec := range ended {
		e.away = append(e.away, rec.ID)
	}
	return !e.gone
}

// byName is the Resolve of fleets that take every name as it is.
type byName struct{ handoff.Fleet }

func (byName) Resolve(_ context.Context, _ handoff.Grant, t handoff.Target) (handoff.Target, error) {
	return t, nil
}

// running returns a running router, of the ladders' caller unless the configuration has another. It ends with the test.
func running(t *testing.T, cfg Config) *Router {
	t.Helper()
	r := idle(cfg)
	begin(t, r)
	return r
}

// idle returns a router that does not run yet.
func idle(cfg Config) *Router {
	if cfg.Caller == (handoff.Caller{}) {
		cfg.Caller = ladderCaller
	}
	return NewRouter(cfg)
}

// begin lets a router run until the returned function is called, which waits for its end, or until the test ends.
func begin(t *testing.T, r *Router) (end func()) {
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- live(ctx, r) }()
	end = sync.OnceFunc(func() { stop(); <-done })
	t.Cleanup(end)
	return end
}

// A client gives work to a router, and follows it.
type client struct {
	*Router
	grant handoff.Grant
	t     *testing.T
}

// newClient returns the client of a router that is [running].
func newClient(t *testing.T, cfg Config) client {
	t.Helper()
	return client{running(t, cfg), ladderGrant, t}
}

func (c client) start(req handoff.Request) handoff.ID {
	c.t.Helper()
	id, err := c.Start(c.t.Context(), c.grant, req)
	if err != nil {
		c.t.Fatal(err)
	}
	return id
}

// outcome gives work, and follows it to its end.
func (c client) outcome(req handoff.Request) handoff.Record {
	c.t.Helper()
	return outcome(c.t, c.Router, c.start(req))
}

// next gives words that wait for the running turn of the thread.
func (c client) next(thread, words string) handoff.ID {
	c.t.Helper()
	return c.start(nextIn(thread, words))
}

func nextIn(thread, words string) handoff.Request {
	return handoff.Request{
		Target: handoff.Target{Server: "s", Thread: thread}, Input: handoff.TextInput(words), Mode: handoff.ModeNext,
		Within: time.Minute,
	}
}

func (c client) record(id handoff.ID) handoff.Record {
	c.t.Helper()
	rec, err := c.Handoff(c.grant, string(id))
	if err != nil {
		c.t.Fatal(err)
	}
	return rec
}

// live runs a router, and gives it what the store has of the caller, as its home does.
func live(ctx context.Context, r *Router) error {
	if r.cfg.Store == nil {
		return r.Run(ctx)
	}
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() {
		for try := 0; ; try++ {
			if r.cfg.Owners.Read(ctx) == nil {
				r.TakeUp(ctx)
				return
			}
			if !r.cfg.Pause(ctx, try) {
				return
			}
		}
	})
	return r.Run(ctx)
}

// notices records the notices that were sent outside of calls.
type notices struct{ ids []string }

func (n *notices) Notify(x handoff.Notice) { n.ids = append(n.ids, x.Handoff) }

// recall gives a router records of earlier lives.
func recall(r *Router, records ...handoff.Record) {
	ask(r, &work.Recalled{Records: records, Prints: make([]string, len(records))})
}

// endedWork is the record of work that has ended, and whose outcome nobody heard. key is of the grant that gave it.
func endedWork(id, key, server string) handoff.Record {
	return handoff.Record{
		ID: id, Key: key, Server: server, ThreadID: "t", State: handoff.StatusCompleted, Outcome: handoff.OutcomeResult,
		EndedAt: new(time.Now()),
	}
}
