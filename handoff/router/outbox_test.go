package router

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

var (
	ladderCaller = handoff.Caller{Principal: "owner"}
	ladderGrant  = handoff.Grant{Caller: ladderCaller, Approve: handoff.ApproveAll, Page: true}
)

// An ear is a listener that remembers.
type ear struct {
	mu    sync.Mutex
	gone  bool               // Guarded by mu
	heard []handoff.RunEvent // Guarded by mu
	away  []string           // Guarded by mu: ids of what it was given of the outbox
}

func (e *ear) Hear(event handoff.RunEvent) bool {
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

// noStickies is an empty store of stickies.
type noStickies struct{}

func (noStickies) List(context.Context, handoff.Caller) ([]handoff.Sticky, error) { return nil, nil }
func (noStickies) Set(context.Context, handoff.Caller, handoff.Sticky) error      { return nil }
func (noStickies) Clear(context.Context, handoff.Caller, handoff.Target) error    { return nil }

// running returns a running router, of the ladders' caller unless the configuration has another. It ends with the test.
func running(t *testing.T, cfg Config) *Router {
	t.Helper()
	r := idle(cfg)
	begin(t, r)
	return r
}

// idle returns a router that does not run yet.
func idle(cfg Config) *Router {
	if cfg.Stickies == nil {
		cfg.Stickies = noStickies{}
	}
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

func (c client) start(req handoff.Request) handoff.RunID {
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
func (c client) next(thread, words string) handoff.RunID {
	c.t.Helper()
	return c.start(nextIn(thread, words))
}

func nextIn(thread, words string) handoff.Request {
	return handoff.Request{
		Target: handoff.Target{Server: "s", Thread: thread}, Input: handoff.TextInput(words), Mode: handoff.ModeNext,
		Within: time.Minute,
	}
}

func (c client) record(id handoff.RunID) handoff.Record {
	c.t.Helper()
	rec, err := c.Handoff(c.grant, string(id))
	if err != nil {
		c.t.Fatal(err)
	}
	return rec
}

// live runs a router, and gives it the open entries of the ledger, as its home does.
func live(ctx context.Context, r *Router) error {
	if r.cfg.Ledger == nil {
		return r.Run(ctx)
	}
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() {
		for try := 0; ; try++ {
			left, err := r.cfg.Ledger.OpenAll(ctx)
			if err = errors.Join(err, r.cfg.Owners.Read(ctx)); err == nil {
				r.TakeUp(ctx, left)
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

// TestStopEndsTheAction: a slow action is left at once when a fact from outside replaces it.
func TestStopEndsTheAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newClient(t, Config{Fleet: slowFleet{}})
		began := time.Now()
		id := r.next("t", "x")
		synctest.Wait() // it attaches
		if err := r.Stop(t.Context(), ladderGrant, string(id)); err != nil {
			t.Fatal(err)
		}
		rec := outcome(t, r.Router, id) // which is told once the fleet was left
		if rec.Outcome != handoff.OutcomeCancelled || rec.Fault != nil || time.Since(began) != 0 {
			t.Errorf("after %v: %+v", time.Since(began), rec)
		}
	})
}

// TestOutbox: an outcome waits for a listener that may hear of its machine, is given to one of them, and goes to the
// next if that one leaves without having told it.
func TestOutbox(t *testing.T) {
	told := &notices{}
	r := running(t, Config{Notifier: told})
	b := r.caller(ladderCaller)
	ended := func(id, server string) {
		b.open(handoff.Record{
			ID: id, Server: server, ThreadID: "t", State: handoff.StatusCompleted, Outcome: handoff.OutcomeResult,
			EndedAt: new(time.Now()),
		}, nil)
	}
	for id, server := range map[string]string{"a": "bigpc", "b": "laptop"} {
		ended(id, server)
		b.keep(id)
	}
	narrow, all, next := &ear{}, &ear{}, &ear{}
	leaveNarrow := r.Attend(handoff.Grant{Caller: ladderCaller, Servers: []string{"laptop"}}, narrow)
	if !slices.Equal(narrow.away, []string{"b"}) {
		t.Fatalf("who may use laptop alone was told %v", narrow.away)
	}
	ended("c", "bigpc")
	b.keep("c")
	if len(narrow.away) != 1 || !slices.Contains(told.ids, "c") {
		t.Fatalf("what nobody there may hear of: told %v, noticed %v", narrow.away, told.ids)
	}
	ended("d", "bigpc")
	if err := r.Heard(t.Context(), ladderGrant, "d"); err != nil { // by who followed it, before it waits for others
		t.Fatal(err)
	}
	b.keep("d")
	leaveAll := r.Attend(ladderGrant, all)
	if slices.Sort(all.away); !slices.Equal(all.away, []string{"a", "c"}) {
		t.Fatalf("who may use everything was told %v", all.away)
	}
	if err := r.Heard(t.Context(), ladderGrant, "b"); err != nil {
		t.Fatal(err)
	}
	leaveAll()
	leaveNarrow()
	leaveNarrow() // again, harmless
	r.Attend(ladderGrant, next)()
	if slices.Sort(next.away); !slices.Equal(next.away, []string{"a", "c"}) || len(narrow.away) != 1 {
		t.Errorf("the next was told %v, the first %v", next.away, narrow.away)
	}
}

// TestFollow: a follower gets events without gaps from its position on, or a snapshot if it is too far behind;
// following ends with the run.
func TestFollow(t *testing.T) {
	r := running(t, Config{})
	b := r.caller(ladderCaller)
	b.open(handoff.Record{ID: "a"}, &run{ID: "a"})
	say := func(kind handoff.RunKind) { b.feed.publish("a", kind) }
	say(handoff.RunPlaced{})
	say(handoff.RunRemark{Text: "one"})
	go func() {
		for range 3 * maxLog {
			say(handoff.RunRemark{Text: "more"})
		}
		b.feed.noted("a")
		say(handoff.RunEnded{})
		b.ended("a")
	}()
	last, snapshots := uint64(1), 0
	for e, err := range r.Follow(t.Context(), ladderGrant, "a", 1) {
		if err != nil {
			t.Fatal(err)
		}
		if _, jumps := e.Kind.(handoff.RunSnapshot); jumps {
			snapshots++
		} else if e.Seq != last+1 {
			t.Fatalf("%d comes after %d", e.Seq, last)
		}
		last = e.Seq
		if _, over := e.Kind.(handoff.RunEnded); over && !e.Noted {
			t.Error("it is not noted")
		}
	}
	if want := uint64(2 + 3*maxLog + 2); last != want {
		t.Errorf("the last is %d, want %d", last, want)
	}
	from := func(after uint64) (kinds []handoff.RunKind) {
		for e, err := range r.Follow(t.Context(), ladderGrant, "a", after) {
			if err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, e.Kind)
		}
		return kinds
	}
	if got := from(0); len(got) != 2 || !isSnapshot(got[0]) || got[1] != (handoff.RunEnded{}) {
		t.Errorf("from the beginning of what has ended: %v", got)
	}
	if got := from(last - 1); len(got) != 1 || got[0] != (handoff.RunEnded{}) {
		t.Errorf("the end: %v", got)
	}
	if got := from(last); len(got) != 0 {
		t.Errorf("after the end: %v", got)
	}
	for _, err := range r.Follow(t.Context(), ladderGrant, "nothing", 0) {
		if handoff.CodeOf(err) != handoff.CodeNotFound {
			t.Errorf("what is not there: %v", err)
		}
	}
}

// TestFollowPast: a run of an earlier life of the process is a snapshot and its end, for each follower; after the end
// nothing comes.
func TestFollowPast(t *testing.T) {
	r := running(t, Config{})
	b := r.caller(ladderCaller)
	var last uint64
	past := handoff.Record{ID: "past", Outcome: handoff.OutcomeResult, Items: []handoff.RecordItem{{ID: "i"}}}
	b.registry.setPast([]handoff.Record{past})
	for range 2 {
		var kinds []handoff.RunKind
		for e, err := range r.Follow(t.Context(), ladderGrant, "past", 0) {
			if err != nil {
				t.Fatal(err)
			}
			kinds, last = append(kinds, e.Kind), e.Seq
		}
		if len(kinds) != 2 || len(kinds[0].(handoff.RunSnapshot).Items) != 1 || kinds[1] != (handoff.RunEnded{}) {
			t.Errorf("what ended in an earlier life: %v", kinds)
		}
	}
	for e := range r.Follow(t.Context(), ladderGrant, "past", last) {
		t.Errorf("after its end: %+v", e)
	}
}

// TestFactsBeforeTheFirstStep: work can be stopped, and its listener can leave, right after Start, before the goroutine
// of the run has begun. A voice model that calls two tools at once does that.
func TestFactsBeforeTheFirstStep(t *testing.T) {
	for name, fact := range map[string]func(r *Router, leave func(), id string) error{
		"stop":  func(r *Router, _ func(), id string) error { return r.Stop(t.Context(), ladderGrant, id) },
		"leave": func(_ *Router, leave func(), _ string) error { leave(); return nil },
		"both":  func(r *Router, leave func(), id string) error { leave(); return r.Stop(t.Context(), ladderGrant, id) },
		"paused": func(r *Router, _ func(), id string) error {
			r.caller(ladderGrant.Caller).pause([]string{id})
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := client{idle(Config{Fleet: slowFleet{}, Ledger: &shelf{}}), ladderGrant, t}
				e := &ear{}
				leave := r.Attend(ladderGrant, e)
				id := r.start(handoff.Request{
					Target: handoff.Target{Server: "bigpc", Thread: "t"}, Input: handoff.TextInput("x"), By: e,
				})
				if err := fact(r.Router, leave, string(id)); err != nil {
					t.Error(err)
				}
				end := begin(t, r.Router) // only now the run can take its first step
				time.Sleep(time.Hour)
				want := handoff.OutcomeFailed
				if name == "stop" || name == "both" {
					want = handoff.OutcomeCancelled
				}
				if rec := r.record(id); rec.Outcome != want {
					t.Errorf("the outcome is %q, not %q: %+v", rec.Outcome, want, rec)
				}
				end()
				leave()
			})
		})
	}
}
