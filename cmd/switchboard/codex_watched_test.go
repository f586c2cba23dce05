package main

import (
	"os"
	"path/filepath"
	"testing"

	"switchboard/handoff"
)

// TestRealCodexWatched: work that another client began on the real codex is watched. What it asks is asked in the call,
// an answer there lets it go on for both, and its outcome is told.
func TestRealCodexWatched(t *testing.T) {
	t.Parallel()
	c := startCodex(t)
	file := filepath.Join(c.work, "made.md")
	c.provider.script = func(s *providerStream, items []providerItem) bool {
		if items[len(items)-1].Type == "function_call_output" {
			s.say("It is made.", 0)
		} else {
			s.shell("touch " + file)
		}
		return true
	}
	voice := scriptedVoice(t)
	plan := func(p *plan) { p.Model = voice; c.plan(p, "untrusted", "danger-full-access") }
	desk, away := start(t, plan), start(t, plan)
	desk.up("bigpc")
	away.up("bigpc")
	desk.post("/fleet/handoffs", `{"server":"bigpc","thread_id":"new","prompt":"make the file"}`)
	there := desk.question()
	thread := desk.newest().ThreadID

	p := away.call()
	p.say(`watch {"server":"bigpc","thread_id":"` + thread + `"}`)
	q := away.question()
	if q.Kind != handoff.QuestionCommand || q.Command != there.Command {
		t.Fatalf("asked %+v, and there %+v", q, there)
	}
	p.hear("asks for permission to run a command")
	rec := away.newest()
	if rec.Why != handoff.WhyWatched || rec.Prompt != "" {
		t.Errorf("watched: %+v", rec)
	}
	if status, body := away.ask("POST", "/fleet/handoffs/"+rec.ID+"/stop", "{}"); status != 409 {
		t.Errorf("stopped: %d %s", status, body)
	}
	away.decide(q, "accept")
	p.hear("It is made")
	until(t, "it to end at the desk", func() bool { return desk.newest().Outcome == handoff.OutcomeResult })
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	if open := items[handoff.RecordQuestion](desk, "/fleet/questions"); len(open) > 0 {
		t.Errorf("open at the desk: %+v", open)
	}

	desk.post("/fleet/handoffs", `{"server":"bigpc","thread_id":"`+thread+`","prompt":"make another"}`)
	there = desk.question() // the watch goes on with the next turn
	until(t, "the question", func() bool { return away.question().Command == there.Command })
	desk.decide(there, "decline") // whoever answers first decides
	until(t, "the question to be closed", func() bool { return len(items[handoff.RecordQuestion](away, "/fleet/questions")) == 0 })
	until(t, "it to end", func() bool { return away.newest().Waits != "" && desk.newest().Outcome != "" })
	p.say(`stop_work {"server":"bigpc","watched":"` + thread + `"}`)
	p.hear("I no longer watch")
	if last := away.newest(); last.ID == rec.ID || last.Outcome != handoff.OutcomeCancelled {
		t.Errorf("left: %+v", last)
	}
}
