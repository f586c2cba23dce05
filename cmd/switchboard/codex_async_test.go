package main

import (
	"strings"
	"sync/atomic"
	"testing"

	"switchboard/handoff"
	"switchboard/servers/codex"
)

// TestRealCodexAsync: what the real codex asks without waiting is a question, and the answer reaches the turn that goes
// on meanwhile.
func TestRealCodexAsync(t *testing.T) {
	t.Parallel()
	c, answered := startCodex(t), make(chan struct{})
	var asked atomic.Int64
	c.provider.script = func(s *providerStream, items []providerItem) bool {
		switch n := asked.Add(1); {
		case n == 1:
			questions := []any{map[string]any{"title": "Which database?", "options": []string{"SQLite", "Postgres"}}}
			s.tool("", "request_user_input_async", map[string]any{"questions": questions})
		case strings.Contains(string(items[len(items)-1].Content), "Which database? SQLite"):
			s.say("It uses SQLite.", 0)
		default:
			<-answered
			s.say("I go on meanwhile.", 0)
		}
		return true
	}
	r := start(t, func(p *plan) {
		c.plan(p, "untrusted", "danger-full-access")
		p.Servers[0].Own.(*codex.Config).Model = "gpt-6.2-sol" // of those that may ask so
	})
	r.up("bigpc")
	id := r.hand(`{"server":"bigpc","thread_id":"new","prompt":"store the notes"}`)
	q := r.question()
	if q.Kind != handoff.QuestionInput || len(q.Asks) != 1 || len(q.Asks[0].Options) != 2 {
		t.Fatalf("question: %+v", q)
	}
	r.post("/fleet/questions/"+string(q.ID), `{"answers":[["SQLite"]]}`)
	close(answered)
	if rec := r.outcome(id); rec.Outcome != handoff.OutcomeResult || rec.Text != "It uses SQLite." {
		t.Errorf("%s %q", rec.Outcome, rec.Text)
	}
}
