package main

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/handoff"
)

// TestRealCodexGoalSet: the words of work are the goal of its session, for which the real codex begins a second turn by
// itself, the newest and the oldest that Switchboard works with.
func TestRealCodexGoalSet(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]string{"newest": codexProgram(t), "oldest": oldestCodex(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startCodexOf(t, program)
			var asked atomic.Int64
			c.provider.script = func(s *providerStream, _ []providerItem) bool {
				switch asked.Add(1) {
				case 1:
					s.say("Some fail.", 300*time.Millisecond)
				case 2:
					s.tool("", "update_goal", map[string]any{"status": "complete"})
				default:
					s.say("Now all tests pass.", 0)
				}
				return true
			}
			r, p := c.call()
			p.say(`codex {"server":"bigpc","thread_id":"new","prompt":"work until the tests pass","goal":true}`)
			for _, words := range []string{"goes on with its goal", "Its goal is reached. Now all tests pass"} { // one sentence may have both
				until(t, words, func() bool { return strings.Contains(strings.Join(p.spoken(), "\n"), words) })
			}
			rec := r.whole(r.newest().ID)
			if rec.Outcome != handoff.OutcomeResult || rec.Goal != handoff.GoalComplete {
				t.Errorf("outcome %q, goal %q: %q", rec.Outcome, rec.Goal, rec.Text)
			}
			if n := asked.Load(); n != 3 {
				t.Errorf("the model was asked %d times", n)
			}
		})
	}
}

// TestRealCodexGoalRefused: a real codex without goals begins nothing that needs one.
func TestRealCodexGoalRefused(t *testing.T) {
	t.Parallel()
	c := startCodex(t, "features.goals = false")
	r, p := c.call()
	p.say(`codex {"server":"bigpc","thread_id":"new","prompt":"work until the tests pass","goal":true}`)
	p.hear("can't have a goal of its own")
	if rec := r.newest(); rec.Outcome != handoff.OutcomeFailed || rec.Error == nil || rec.Error.Code != handoff.CodeNoGoal {
		t.Errorf("%+v", rec)
	}
}
