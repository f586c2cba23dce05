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

// noStickies are stickies of nobody.
type noStickies struct{}

func (noStickies) List(context.Context, handoff.Caller) ([]handoff.Sticky, error) { return nil, nil }
func (noStickies) Set(context.Context, handoff.Caller, handoff.Sticky) error      { return nil }
func (noStickies) Clear(context.Context, handoff.Caller, handoff.Target) error    { return nil }

// running returns a router under way.
func running(t *testing.T, cfg Config) *Router {
	t.Helper()
	cfg.Stickies, cfg.Caller = noStickies{}, ladderCaller
	r := NewRouter(cfg)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- live(ctx, r) }()
	t.Cleanup(func() { stop(); <-done })
	return r
}

// live runs a router, and gives it what the ledger has, as its home does.
func live(ctx context.Context, r *Router) error {
	if r.ledger == nil {
		return r.Run(ctx)
	}
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() {
		for try := 0; ; try++ {
			left, err := r.ledger.OpenAll(ctx)
			if err = errors.Join(err, r.owners.Read(ctx)); err == nil {
				r.TakeUp(ctx, left)
				return
			}
			if !r.pause(ctx, try) {
				return
			}
		}
	})
	return r.Run(ctx)
}

// notices are what was told outside of calls. The test is over before anybody else looks.
type notices struct{ ids []string }

func (n *notices) Notify(x handoff.Notice) { n.ids = append(n.ids, x.Handoff) }

// A stuckFleet attaches nothing until its caller gives up.
type stuckFleet struct {
	handoff.Fleet
	attaching, left chan struct{}
}

func (f stuckFleet) Resolve(_ context.Context, _ handoff.Grant, t handoff.Target) (handoff.Target, error) {
	return t, nil
}

func (f stuckFleet) Attach(ctx context.Context, _ handoff.Target) (handoff.Attached, error) {
	close(f.attaching)
	<-ctx.Done()
	close(f.left)
	return handoff.Attached{}, handoff.Fault(handoff.CodeUnreachable, "it", "")
}

// TestStopEndsTheAction: what takes time is left at once when a fact from outside puts another action in its place.
func TestStopEndsTheAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := stuckFleet{attaching: make(chan struct{}), left: make(chan struct{})}
		r := NewRouter(Config{Caller: ladderCaller, Fleet: fleet, Stickies: noStickies{}})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- live(ctx, r) }()
		began := time.Now()
		id, err := r.Start(
			ctx, ladderGrant,
			handoff.Request{
				Target: handoff.Target{Server: "bigpc", Thread: "t"}, Input: handoff.TextInput("x"), Within: time.Minute,
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		<-fleet.attaching
		if err := r.Stop(ctx, ladderGrant, string(id)); err != nil {
			t.Fatal(err)
		}
		<-fleet.left
		synctest.Wait()
		if rec, err := r.Handoff(ladderGrant, string(id)); err != nil || rec.Outcome != handoff.OutcomeCancelled ||
			rec.Fault != nil || time.Since(began) != 0 {
			t.Errorf("after %v: %+v, %v", time.Since(began), rec, err)
		}
		stop()
		<-done
	})
}

// TestOutbox: what ended waits for somebody who may hear of its machine, is told to one of them, and goes to the
// next when they leave without having told it.
func TestOutbox(t *testing.T) {
	told := &notices{}
	r := running(t, Config{Notifier: told})
	b := r.caller(ladderCaller)
	for id, server := range map[string]string{"a": "bigpc", "b": "laptop"} {
		b.open(
			handoff.Record{
				ID: id, Server: server, ThreadID: "t", State: handoff.StatusCompleted, Outcome: handoff.OutcomeResult,
			},
			nil,
		)
		b.keep(id)
	}
	narrow, all, next := &ear{}, &ear{}, &ear{}
	leaveNarrow := r.Attend(handoff.Grant{Caller: ladderCaller, Servers: []string{"laptop"}}, narrow)
	if !slices.Equal(narrow.away, []string{"b"}) {
		t.Fatalf("who may use laptop alone was told %v", narrow.away)
	}
	b.open(
		handoff.Record{
			ID: "c", Server: "bigpc", ThreadID: "t", State: handoff.StatusCompleted, Outcome: handoff.OutcomeResult,
		},
		nil,
	)
	b.keep("c")
	if len(narrow.away) != 1 || !slices.Contains(told.ids, "c") {
		t.Fatalf("what nobody there may hear of: told %v, noticed %v", narrow.away, told.ids)
	}
	b.open(
		handoff.Record{
			ID: "d", Server: "bigpc", ThreadID: "t", State: handoff.StatusCompleted, Outcome: handoff.OutcomeResult,
		},
		nil,
	)
	if err := r.Heard(t.Context(), ladderCaller, "d"); err != nil { // by who followed it, before it waits for others
		t.Fatal(err)
	}
	b.keep("d")
	leaveAll := r.Attend(ladderGrant, all)
	if slices.Sort(all.away); !slices.Equal(all.away, []string{"a", "c"}) {
		t.Fatalf("who may use everything was told %v", all.away)
	}
	if err := r.Heard(t.Context(), ladderCaller, "b"); err != nil {
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

// TestFollow: events come without gaps, from where one was; who is too far behind gets a snapshot; it ends with the
// run.
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
	for e, err := range r.Follow(t.Context(), ladderCaller, "a", 1) {
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
		for e, err := range r.Follow(t.Context(), ladderCaller, "a", after) {
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
	for _, err := range r.Follow(t.Context(), ladderCaller, "nothing", 0) {
		if codeOfError(err) != handoff.CodeNotFound {
			t.Errorf("what is not there: %v", err)
		}
	}
}

// TestFollowPast: what ended in an earlier life of the process is a snapshot and its end, each time anew; after the end
// nothing comes.
func TestFollowPast(t *testing.T) {
	r := running(t, Config{})
	b := r.caller(ladderCaller)
	var last uint64
	past := handoff.Record{ID: "past", Outcome: handoff.OutcomeResult, Items: []handoff.RecordItem{{ID: "i"}}}
	b.registry.setPast([]handoff.Record{past})
	for range 2 {
		var kinds []handoff.RunKind
		for e, err := range r.Follow(t.Context(), ladderCaller, "past", 0) {
			if err != nil {
				t.Fatal(err)
			}
			kinds, last = append(kinds, e.Kind), e.Seq
		}
		if len(kinds) != 2 || len(kinds[0].(handoff.RunSnapshot).Items) != 1 || kinds[1] != (handoff.RunEnded{}) {
			t.Errorf("what ended in an earlier life: %v", kinds)
		}
	}
	for e := range r.Follow(t.Context(), ladderCaller, "past", last) {
		t.Errorf("after its end: %+v", e)
	}
}

// TestFactsBeforeTheFirstStep: work can be stopped, and whoever waits for it can leave, in the instant in which it was
// asked for, before its goroutine runs. A voice model that calls two tools at once does that.
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
				r := NewRouter(Config{Caller: ladderCaller, Fleet: slowFleet{}, Stickies: noStickies{}, Ledger: &shelf{}})
				e := &ear{}
				leave := r.Attend(ladderGrant, e)
				id, err := r.Start(
					t.Context(), ladderGrant,
					handoff.Request{Target: handoff.Target{Server: "bigpc", Thread: "t"}, Input: handoff.TextInput("x"), By: e},
				)
				if err != nil {
					t.Fatal(err)
				}
				if err := fact(r, leave, string(id)); err != nil {
					t.Error(err)
				}
				ctx, end := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- live(ctx, r) }() // only now the run can take its first step
				time.Sleep(time.Hour)
				want := handoff.OutcomeFailed
				if name == "stop" || name == "both" {
					want = handoff.OutcomeCancelled
				}
				if rec, err := r.Handoff(ladderGrant, string(id)); err != nil || rec.Outcome != want {
					t.Errorf("the outcome is %q, not %q: %+v, %v", rec.Outcome, want, rec, err)
				}
				end()
				<-done
				leave()
			})
		})
	}
}
