package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

// listen waits until what came of the voice so far has been played, and hears these words in it: who
// answers a question before its end has not heard it.
func (p *phone) listen(words string) {
	p.t.Helper()
	p.hear(words)
	until(p.t, "the voice to end", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return time.Now().After(p.plays.Add(500 * time.Millisecond)) // and the router to have noticed
	})
}

// newestOf is the last piece of work with this prompt.
func (r *running) newestOf(prompt string) handoff.Record {
	r.t.Helper()
	works := r.handoffs()
	for _, w := range slices.Backward(works) {
		if strings.Contains(strings.ToLower(w.Prompt), strings.ToLower(prompt)) {
			return r.whole(w.ID)
		}
	}
	return handoff.Record{}
}

// ended waits until the newest work with a prompt has an outcome.
func (r *running) ended(prompt string) handoff.Record {
	r.t.Helper()
	var rec handoff.Record
	until(r.t, prompt+" to end", func() bool {
		rec = r.newestOf(prompt)
		return rec.Outcome != ""
	})
	return rec
}

// audited are the decisions that were written down, in order. The chain of the file is whole.
func audited(t *testing.T, dir string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	must(t, err)
	_, err = sessions.ReadAuditDir(dir)
	must(t, err)
	var list []string
	for line := range bytes.Lines(data) {
		var entry struct{ Record handoff.AuditRecord }
		must(t, json.Unmarshal(line, &entry))
		list = append(list, fmt.Sprintf("%s by %s, %s, on %s", entry.Record.Decision, entry.Record.By, entry.Record.Tier, entry.Record.Server))
	}
	return list
}

// TestStoryInTheCall plays what a newcomer can do without touching the page: approve and decline, and set how much is
// told. All of it is typed into the call.
func TestStoryInTheCall(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	r := start(t, func(p *plan) { p.Hurry, p.StateDir = 5, state })
	r.up("laptop")
	p := r.call()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the voice said %q", p.spoken())
		}
	})
	p.say("Continue the auth session on bigpc and run the tests")
	p.hear("TestRefreshExpiredToken")
	p.say("Fix it")
	p.hear("all tests pass now")

	approveByTyping(t, r, p, state)
	p.say(`set_updates {"level":"quiet"}`)
	p.hear("Okay.")

	for _, e := range p.all() {
		if strings.Contains(e.raw, `"answer_agent"`) || strings.Contains(e.raw, `"stop_work"`) || strings.Contains(e.raw, "sb_") || e.Type == "error" {
			t.Errorf("the client saw something of ours: %.300s", e.raw)
		}
	}
}

// approveByTyping is asked whether to push: a no is heard although it begins as a yes, a yes pushes once.
func approveByTyping(t *testing.T, r *running, p *phone, state string) {
	t.Helper()
	p.say("Push it from bigpc")
	p.listen("git push origin auth-refactor. Yes or no?")
	p.say("okay, wait, don't")
	p.hear("bigpc will not do that")
	if rec := r.ended("push it"); !strings.Contains(rec.Text, "did not push") {
		t.Errorf("after a no: %+v", rec)
	}
	if got := audited(t, state); !slices.Equal(got, []string{"decline by typed, medium, on bigpc"}) {
		t.Errorf("audit %q", got)
	}
	p.hear("I did not push")

	p.say("Push it from bigpc")
	p.listen("git push origin auth-refactor. Yes or no?")
	p.say("yes")
	p.hear("bigpc goes ahead")
	rec := r.ended("push it")
	pushes := 0
	for _, it := range rec.Items {
		if it.Kind == handoff.ItemCommand && strings.Contains(it.Text, "git push") && it.State == "done" {
			pushes++
		}
	}
	if pushes != 1 || !strings.Contains(rec.Text, "is pushed") {
		t.Errorf("%d pushes: %+v", pushes, rec)
	}
	if got := audited(t, state); !slices.Equal(got, []string{"decline by typed, medium, on bigpc", "accept by typed, medium, on bigpc"}) {
		t.Errorf("audit %q", got)
	}
	p.hear("is pushed")
	p.say("yes")
	p.hear("No agent waits for an answer")
	p.say("Push it from bigpc")
	p.hear("is pushed already")
}
