package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
)

// subagents plays the model of an agent that starts a subagent. The subagent wants to make a file. It inherits what its
// parent was told, and is told so. Its parent waits for it; or ends its turn, and the subagent goes on when over is
// closed.
func subagents(file string, over <-chan struct{}) func(*providerStream, []providerItem) bool {
	return func(s *providerStream, items []providerItem) bool {
		child, outputs := false, 0 // what tools gave since the task was given
		for _, it := range items {
			task := it.Type == "agent_message" && strings.Contains(string(it.Content), "NEW_TASK")
			switch {
			case it.Role == "user", task:
				outputs = 0
			case it.Type == "function_call_output":
				outputs++
			}
			child = child || task
		}
		switch {
		case child && outputs == 0:
			if over != nil {
				<-over
			}
			s.shell("touch " + file)
		case child:
			s.say("The file is made.", 0)
		case outputs == 0:
			s.tool("collaboration", "spawn_agent", map[string]any{"task_name": "child", "message": "make the file"})
		case outputs == 1 && over == nil:
			s.tool("collaboration", "wait_agent", map[string]any{"timeout_ms": 30_000})
		case over != nil:
			s.say("My child works on it.", 0)
		default:
			s.say("My child has made it.", 0)
		}
		return true
	}
}

// TestRealCodexSubagent: what a subagent of the oldest real codex that Switchboard works with asks is asked in the
// call, as a question of the work for which it was started, and a tap lets it go on. TestRealCodexSubagentOutlives has
// the newest.
func TestRealCodexSubagent(t *testing.T) {
	t.Parallel()
	c := startCodexOf(t, oldestCodex(t), "features.multi_agent_v2 = true")
	file := filepath.Join(c.work, "made.md")
	c.provider.script = subagents(file, nil)
	r, p := c.call()
	p.say(`codex {"server":"bigpc","thread_id":"new","prompt":"have a child make it"}`)
	q := r.question()
	if q.Kind != handoff.QuestionCommand || !strings.Contains(q.Command, "touch "+file) {
		t.Fatalf("question: %+v", q)
	}
	p.hear("asks for permission to run a command")
	r.decide(q, "accept")
	p.hear("My child has made it")
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	found := false
	for _, it := range r.whole(r.newest().ID).Items {
		found = found || it.Kind == handoff.ItemCommand && it.By == "child" && strings.Contains(it.Text, "touch")
	}
	if !found {
		t.Errorf("its doings are not shown: %+v", r.whole(r.newest().ID).Items)
	}
}

// TestRealCodexSubagentOutlives: a subagent of the real codex that works on when the turn of its parent is over asks in
// the call, and what it says is told with its parent's words.
func TestRealCodexSubagentOutlives(t *testing.T) {
	t.Parallel()
	c := startCodex(t, "features.multi_agent_v2 = true")
	file, over := filepath.Join(c.work, "made.md"), make(chan struct{})
	c.provider.script = subagents(file, over)
	r, p := c.call()
	p.say(`codex {"server":"bigpc","thread_id":"new","prompt":"have a child make it"}`)
	until(t, "the answer of the parent", func() bool {
		return r.newest().ID != "" && slices.ContainsFunc(r.whole(r.newest().ID).Items, func(it handoff.RecordItem) bool {
			return it.Text == "My child works on it."
		})
	})
	watcher := c.other(*codexAt(c.url)).Conn
	until(t, "the turn of the parent to be over", func() bool {
		at, err := watcher.Attach(t.Context(), r.newest().ThreadID)
		must(t, err)
		must(t, at.Agent.Close())
		return at.Running == ""
	})
	close(over)
	r.decide(r.question(), "accept")
	p.hear("The file is made")
	rec, told := r.whole(r.newest().ID), "My child works on it.\n\nThe file is made."
	if rec.Outcome != handoff.OutcomeResult || rec.Text != told {
		t.Errorf("%s %q", rec.Outcome, rec.Text)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}
