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
type slowFleet struct{ byName }

func (slowFleet) Attach(ctx context.Context, _ handoff.Target) (handoff.Attached, error) {
	<-ctx.Done()
	return handoff.Attached{}, handoff.Fault(handoff.CodeUnreachable, "it", "")
}

// TestStopPausesWhatWaits: when work is stopped, the work that waits for it is paused. The caller begins it, once, or
// drops it; work that waits for other work waits on.
func TestStopPausesWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, r := t.Context(), newClient(t, Config{Fleet: slowFleet{}})
		ask := func(thread, words string) handoff.RunID {
			t.Helper()
			defer synctest.Wait()
			return r.next(thread, words)
		}
		look := r.record
		first, second, third := ask("t", "one"), ask("t", "two"), ask("t", "three")
		ask("u", "elsewhere")
		other := ask("u", "behind it")
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
		begun := r.start(handoff.Request{Instead: second, Mode: handoff.ModeNext, Within: time.Minute})
		synctest.Wait()
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
		if err := r.Stop(ctx, ladderGrant, string(third)); handoff.CodeOf(err) != handoff.CodeWorkEnded {
			t.Errorf("dropped twice: %v", err)
		}
	})
}

// TestBegunOnce: paused work is begun once or dropped, never both, however many requests come at the same moment.
func TestBegunOnce(t *testing.T) {
	for range 50 {
		synctest.Test(t, testBegunOnce)
	}
}

func testBegunOnce(t *testing.T) {
	ctx, r := t.Context(), newClient(t, Config{Fleet: slowFleet{}})
	var all sync.WaitGroup
	first := r.next("t", "one")
	synctest.Wait()
	second := r.next("t", "two")
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
				_, err = r.Start(ctx, ladderGrant, handoff.Request{Instead: second})
			}
			if err == nil {
				dropped.Add(1)
			}
		})
	}
	all.Wait()
	if n := dropped.Load(); n != 1 {
		t.Fatalf("begun or dropped %d times", n)
	}
}

// TestStoppedAtAQuestion: to answer a question with "stop" pauses the work that waits for its turn, even if the turn
// ends before the agent has acknowledged the answer. If the agent did not take the answer, the turn and the wait go on.
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
				r.cfg.Fleet, r.cfg.Stickies = slowFleet{}, noStickies{}
				begin(t, r)
				ask := func(words string) string {
					defer synctest.Wait()
					return string(client{r, ladderGrant, t}.next("t", words))
				}
				first, second := ask("one"), ask("two")
				q.Shown.Handoff = first
				q.Shown.Decisions = append(q.Shown.Decisions, handoff.DecisionStop)
				if tt.ends {
					d.taken = func() {
						_, w := r.caller(ladderCaller).registry.find(first)
						w.apply(phase.FactStop, nil)
						synctest.Wait()
					}
				}
				err := r.caller(ladderCaller).decide(t.Context(), "q", handoff.Decided{Decision: handoff.DecisionStop})
				if handoff.CodeOf(err) != tt.code {
					t.Errorf("error %v", err)
				}
				synctest.Wait()
				rec, err := r.Handoff(ladderGrant, second)
				if err != nil || rec.Paused != tt.paused || rec.Outcome != "" != tt.paused {
					t.Errorf("what waits: %+v, %v", rec, err)
				}
				if _, w := r.caller(ladderCaller).registry.find(first); w != nil {
					w.apply(phase.FactStop, nil)
				}
				synctest.Wait()
				if waits := r.cfg.Queues.waitingFor(second); tt.paused != (len(r.cfg.Queues.all) == 0) || len(waits) != 0 {
					t.Errorf("held are %v, behind it waits %v", r.cfg.Queues.all, waits)
				}
			})
		})
	}
}
