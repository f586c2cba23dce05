package router

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/work"
)

// A slowFleet attaches nothing until its caller gives up.
type slowFleet struct{ byName }

func (slowFleet) Attach(ctx context.Context, _ handoff.Target) (handoff.Attached, error) {
	<-ctx.Done()
	return handoff.Attached{}, handoff.Fault(handoff.CodeUnreachable, "it", "")
}

// TestStoppedAtAQuestion: to answer a question with "stop" stops the work as a stop does: before the agent has the
// answer its turn takes no more words, and what waits for it is paused; whatever becomes of the question.
func TestStoppedAtAQuestion(t *testing.T) {
	for name, tt := range map[string]struct {
		says error // the agent
		ends bool  // the turn, before the agent says so
		code handoff.Code
	}{
		"taken":                {},
		"taken, and over":      {ends: true},
		"interrupted first":    {says: handoff.Fault(handoff.CodeNotPending, "", "")},
		"it may have gone out": {says: handoff.Fault(handoff.CodeAgentGone, "", ""), code: handoff.CodeAgentGone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &desk{failing: tt.says}
				r, q := askingRouter(d, "q")
				r.cfg.Fleet = slowFleet{}
				begin(t, r.Router)
				req := nextIn("t", "two")
				req.Target.Server = q.Shown.Server
				second := client{r.Router, ladderGrant, t}.start(req)
				synctest.Wait()
				q.Shown.Decisions = append(q.Shown.Decisions, handoff.DecisionStop)
				ends := func() { r.says(handoff.TurnEnded{Status: handoff.TurnInterrupted}) }
				d.taken = func() {
					key := work.ThreadKey(handoff.Target{Server: q.Shown.Server, Thread: "t"})
					if at := r.cfg.Queues.Look(key, "words", ladderCaller); at.Control != nil {
						t.Error("the turn takes words")
					}
					r.cfg.Queues.Leave("words", "")
					if tt.ends {
						ends()
						synctest.Wait()
					}
				}
				err := r.decide(t.Context(), "q", handoff.Decided{Decision: handoff.DecisionStop})
				if handoff.CodeOf(err) != tt.code {
					t.Errorf("error %v", err)
				}
				synctest.Wait()
				rec, err := r.Handoff(ladderGrant, string(second))
				if err != nil || !rec.Paused || rec.Outcome == "" {
					t.Errorf("what waits: %+v, %v", rec, err)
				}
				ends()
				synctest.Wait()
				if waits := r.cfg.Queues.Behind(string(second)); len(r.cfg.Queues.all) != 0 || len(waits) != 0 {
					t.Errorf("held are %v, behind it waits %v", r.cfg.Queues.all, waits)
				}
			})
		})
	}
}

// TestFactsBeforeTheFirstStep: work can be stopped, and its listener can leave, right after Start, before the goroutine
// of the handoff has begun. A voice model that calls two tools at once does that.
func TestFactsBeforeTheFirstStep(t *testing.T) {
	for name, fact := range map[string]func(r *Router, leave func(), id string) error{
		"stop": func(r *Router, _ func(), id string) error {
			return r.Stop(t.Context(), ladderGrant, id, handoff.StopOurs)
		},
		"leave": func(_ *Router, leave func(), _ string) error { leave(); return nil },
		"both": func(r *Router, leave func(), id string) error {
			leave()
			return r.Stop(t.Context(), ladderGrant, id, handoff.StopOurs)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := client{idle(Config{Fleet: slowFleet{}, Store: shelved()}), ladderGrant, t}
				e := &ear{}
				leave := r.Attend(ladderGrant, e)
				id := r.start(handoff.Request{
					Target: handoff.Target{Server: "bigpc", Thread: "t"}, Input: handoff.TextInput("x"), By: e,
				})
				if err := fact(r.Router, leave, string(id)); err != nil {
					t.Error(err)
				}
				end := begin(t, r.Router) // only now the handoff can take its first step
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
