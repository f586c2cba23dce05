package router

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/phase"
)

// A slowFleet attaches nothing until its caller gives up.
type slowFleet struct{ handoff.Fleet }

func (slowFleet) Resolve(_ context.Context, _ handoff.Grant, t handoff.Target) (handoff.Target, error) {
	return t, nil
}

func (slowFleet) Attach(ctx context.Context, _ handoff.Target) (handoff.Attached, error) {
	<-ctx.Done()
	return handoff.Attached{}, handoff.Fault(handoff.CodeUnreachable, "it", "")
}

// TestStopPausesWhatWaits: whoever stops work, what waits behind it does not begin. It is begun when the caller says
// so, once, or dropped; what waits for other work goes on waiting.
func TestStopPausesWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRouter(Config{Caller: ladderCaller, Fleet: slowFleet{}, Stickies: noStickies{}})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- live(ctx, r) }()
		ask := func(thread, words string, instead handoff.RunID) handoff.RunID {
			t.Helper()
			id, err := r.Start(
				ctx, ladderGrant,
				handoff.Request{
					Target: handoff.Target{Server: "bigpc", Thread: thread}, Input: handoff.TextInput(words), Mode: handoff.ModeNext,
					Instead: instead, Within: time.Minute,
				},
			)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return id
		}
		look := func(id handoff.RunID) handoff.Record {
			t.Helper()
			rec, err := r.Handoff(ladderGrant, string(id))
			if err != nil {
				t.Fatal(err)
			}
			return rec
		}
		first, second, third := ask("t", "one", ""), ask("t", "two", ""), ask("t", "three", "")
		ask("u", "elsewhere", "")
		other := ask("u", "behind it", "")
		if err := r.Stop(ctx, ladderGrant, string(first)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if rec := look(first); rec.Outcome != handoff.OutcomeCancelled || rec.Paused {
			t.Errorf("what was stopped: %+v", rec)
		}
		for _, id := range []handoff.RunID{second, third} {
			if rec := look(id); rec.Outcome != handoff.OutcomeCancelled || !rec.Paused || rec.Error.Code != handoff.CodePaused {
				t.Errorf("what waited: %+v", rec)
			}
		}
		if rec := look(other); rec.Outcome != "" || rec.Waits != "ours" {
			t.Errorf("what waits for other work: %+v", rec)
		}
		begun := ask("", "", second)
		if rec := look(begun); rec.Prompt != "two" || rec.ThreadID != "t" && rec.ThreadID != "" || rec.Outcome != "" {
			t.Errorf("begun: %+v", rec)
		}
		if rec := look(second); rec.Paused || !rec.WentOn {
			t.Errorf("what was begun in its place: %+v", rec)
		}
		time.Sleep(time.Minute) // by then the ledger has it
		synctest.Wait()
		if rec := look(second); rec.State != handoff.StatusDelivered { // else a restart would ask again
			t.Errorf("what was begun is still told of: %+v", rec)
		}
		if err := r.Stop(ctx, ladderGrant, string(third)); err != nil {
			t.Fatal(err)
		}
		if rec := look(third); rec.Paused || rec.WentOn || rec.Error != nil || rec.State != handoff.StatusDelivered {
			t.Errorf("dropped: %+v", rec)
		}
		if err := r.Stop(ctx, ladderGrant, string(third)); codeOfError(err) != handoff.CodeWorkEnded {
			t.Errorf("dropped twice: %v", err)
		}
		stop()
		<-done
	})
}

// TestBegunOnce: what was paused is begun once, however many say so at the same moment, or it is dropped, never both.
func TestBegunOnce(t *testing.T) {
	for range 50 {
		synctest.Test(t, testBegunOnce)
	}
}

func testBegunOnce(t *testing.T) {
	r := NewRouter(Config{Caller: ladderCaller, Fleet: slowFleet{}, Stickies: noStickies{}})
	ctx, stop := context.WithCancel(t.Context())
	var running, all sync.WaitGroup
	running.Go(func() { _ = live(ctx, r) })
	ask := func(words string, instead handoff.RunID) (handoff.RunID, error) {
		return r.Start(
			ctx, ladderGrant,
			handoff.Request{
				Target: handoff.Target{Server: "bigpc", Thread: "t"}, Input: handoff.TextInput(words), Mode: handoff.ModeNext,
				Instead: instead, Within: time.Minute,
			},
		)
	}
	first, _ := ask("one", "")
	synctest.Wait()
	second, _ := ask("two", "")
	synctest.Wait()
	if err := r.Stop(ctx, ladderGrant, string(first)); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	var dropped atomic.Int64
	for i := range 8 {
		all.Go(func() {
			var err error
			if i == 7 {
				err = r.Stop(ctx, ladderGrant, string(second))
			} else {
				_, err = ask("", second)
			}
			if err == nil {
				dropped.Add(1)
			}
		})
	}
	all.Wait()
	stop()
	running.Wait()
	if n := dropped.Load(); n != 1 {
		t.Fatalf("begun or dropped %d times", n)
	}
}

// TestStoppedAtAQuestion: whoever answers a question with "stop" pauses what waits behind it, even when its turn ends
// before the agent has said that it took the answer. When the agent took none the turn goes on, and so does the wait.
func TestStoppedAtAQuestion(t *testing.T) {
	for name, tt := range map[string]struct {
		says   error // the agent
		ends   bool  // the turn, before the agent says so
		code   handoff.Code
		paused bool
	}{
		"taken":              {paused: true},
		"taken, and over":    {ends: true, paused: true},
		"answered elsewhere": {says: handoff.Fault(handoff.CodeNotPending, "", ""), code: handoff.CodeNotPending},
		"not taken":          {says: handoff.Fault(handoff.CodeMalformed, "", ""), code: handoff.CodeMalformed},
		"it may have gone out": {
			says: handoff.Fault(handoff.CodeAgentGone, "", ""), code: handoff.CodeAgentGone, paused: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &desk{failing: tt.says}
				r, q := askingRouter(d, "q")
				r.fleet, r.stickies = slowFleet{}, noStickies{}
				ctx, stop := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { _ = live(ctx, r) })
				ask := func(words string) string {
					id, err := r.Start(
						ctx, ladderGrant,
						handoff.Request{
							Target: handoff.Target{Server: "bigpc", Thread: "t"}, Input: handoff.TextInput(words), Mode: handoff.ModeNext,
							Within: time.Minute,
						},
					)
					if err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					return string(id)
				}
				first, second := ask("one"), ask("two")
				q.shown.Handoff = first
				q.shown.Decisions = append(q.shown.Decisions, handoff.DecisionStop)
				if tt.ends {
					d.taken = func() {
						_, w := r.caller(ladderCaller).registry.find(first)
						w.tell(phase.FactStop, nil)
						synctest.Wait()
					}
				}
				err := r.caller(ladderCaller).decide(ctx, "q", decided{decision: handoff.DecisionStop})
				if codeOfError(err) != tt.code {
					t.Errorf("error %v", err)
				}
				synctest.Wait()
				rec, err := r.Handoff(ladderGrant, second)
				if err != nil || rec.Paused != tt.paused || rec.Outcome != "" != tt.paused {
					t.Errorf("what waits: %+v, %v", rec, err)
				}
				if _, w := r.caller(ladderCaller).registry.find(first); w != nil {
					w.tell(phase.FactStop, nil)
				}
				synctest.Wait()
				if waits := r.queues.behind(second); tt.paused != (len(r.queues.all) == 0) || len(waits) != 0 {
					t.Errorf("held are %v, behind it waits %v", r.queues.all, waits)
				}
				stop()
				running.Wait()
			})
		})
	}
}
