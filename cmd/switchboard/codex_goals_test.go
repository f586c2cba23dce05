package main

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/handoff"
)

// TestRealCodexGoal: the turns that the real codex begins by itself for its goal are one piece of work with the turn
// that was started, and have one outcome. A stop between leaves no further turn.
func TestRealCodexGoal(t *testing.T) {
	t.Parallel()
	c := startCodex(t, "features.goals = true")
	var asked atomic.Int64
	c.provider.script = func(s *providerStream, _ []providerItem) bool {
		switch asked.Add(1) {
		case 1:
			s.tool("", "create_goal", map[string]any{"objective": "make the tests pass"})
		case 2:
			s.say("The first part is done.", 0)
		case 3:
			s.say("The second part is done.", 0)
		case 4:
			s.tool("", "update_goal", map[string]any{"status": "complete"})
		default:
			s.say("Now all tests pass.", 0)
		}
		return true
	}
	r, p := c.call()
	p.say(`codex {"server":"bigpc","thread_id":"new","prompt":"work until the tests pass"}`)
	p.hear("Now all tests pass")
	rec := r.whole(r.newest().ID)
	if rec.Outcome != handoff.OutcomeResult || rec.Text != "Now all tests pass." {
		t.Errorf("outcome %q: %q", rec.Outcome, rec.Text)
	}
	var said []string
	for _, it := range rec.Items {
		if it.Kind == handoff.ItemMessage {
			said = append(said, it.Text)
		}
	}
	if got := strings.Join(said, " "); !strings.Contains(got, "first part") || !strings.Contains(got, "second part") {
		t.Errorf("it said %q", said)
	}
	if n := asked.Load(); n != 5 {
		t.Errorf("the model was asked %d times", n)
	}
}

// TestRealCodexGoalStopped: a stop reaches the turn that the real codex began by itself, and no further one begins: the
// next work in the session has one turn, and ends with it.
func TestRealCodexGoalStopped(t *testing.T) {
	t.Parallel()
	c := startCodex(t, "features.goals = true")
	var asked atomic.Int64
	c.provider.script = func(s *providerStream, _ []providerItem) bool {
		if n := asked.Add(1); n == 1 {
			s.tool("", "create_goal", map[string]any{"objective": "make the tests pass"})
		} else {
			s.say(fmt.Sprintf("Part %d is done.", n-1), 300*time.Millisecond)
		}
		return true
	}
	r, p := c.call()
	p.say(`codex {"server":"bigpc","thread_id":"new","prompt":"work until the tests pass"}`)
	p.hear("goes on with its goal")
	first := r.newest().ID
	p.say(`stop_work {"server":"bigpc"}`)
	until(t, "the work is stopped", func() bool { return r.newest().Outcome != "" })
	if got := r.newest(); got.ID != first || got.Outcome != handoff.OutcomeInterrupted {
		t.Errorf("%s ended with %q", got.ID, got.Outcome)
	}
	before := asked.Load()
	p.say(`codex {"server":"bigpc","prompt":"what is done?"}`)
	until(t, "the next work is done", func() bool { return r.newest().ID != first && r.newest().Outcome != "" })
	if got, n := r.newest(), asked.Load()-before; got.Outcome != handoff.OutcomeResult || n != 1 {
		t.Errorf("the next ended with %q, after %d questions of the model", got.Outcome, n)
	}
}

// TestRealCodexGoalRestart: work with a goal that goes on while Switchboard is down is still one piece when it is back:
// it has the words of all its turns, and its outcome is that of the last.
func TestRealCodexGoalRestart(t *testing.T) {
	t.Parallel()
	c, state, down := startCodex(t, "features.goals = true"), t.TempDir(), make(chan struct{})
	var asked atomic.Int64
	c.provider.script = func(s *providerStream, _ []providerItem) bool {
		switch n := asked.Add(1); n {
		case 1:
			s.tool("", "create_goal", map[string]any{"objective": "make the tests pass"})
		case 5:
			s.tool("", "update_goal", map[string]any{"status": "complete"})
		case 3:
			<-down
			fallthrough
		default:
			s.say(fmt.Sprintf("Part %d is done.", n), 0)
		}
		return true
	}
	on := func(p *plan) { p.StateDir = state; c.plan(p, "untrusted", "danger-full-access") }
	r := start(t, on)
	r.up("bigpc")
	id := r.hand(`{"server":"bigpc","thread_id":"new","prompt":"work until the tests pass"}`)
	until(t, "the first part", func() bool { return asked.Load() == 3 })
	r.stop()
	close(down)
	until(t, "the goal to be reached", func() bool { return asked.Load() == 6 })
	r = start(t, on)
	r.up("bigpc")
	rec := r.outcome(id)
	if rec.Outcome != handoff.OutcomeResult || rec.Text != "Part 6 is done." {
		t.Errorf("%s %q", rec.Outcome, rec.Text)
	}
	for _, part := range []string{"Part 3", "Part 4"} {
		if !slices.ContainsFunc(rec.Items, func(it handoff.RecordItem) bool { return strings.HasPrefix(it.Text, part) }) {
			t.Errorf("%s is missing: %+v", part, rec.Items)
		}
	}
}
