package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"switchboard/handoff"
)

// TestProofCodexKilled: a real codex is killed in the middle of its work and comes back. The caller hears
// one outcome, the work does not run again, and the next request goes on in the same session.
func TestProofCodexKilled(t *testing.T) { t.Parallel(); onBothStores(t, proofCodexKilled) }

func proofCodexKilled(t *testing.T, store string) {
	c := startCodex(t)
	voice := newVoiceTap(t, scriptedVoice(t).URL)
	r := start(t, func(p *plan) {
		p.Model.URL, p.Model.Name, p.Redis = voice.URL, "scripted", newSecret(store)
		c.plan(p, "", "")
	})
	p := r.call()
	outcomes := map[handoff.Outcome]int{}
	rounds := scale(2, 12)
	for i := range rounds {
		slow, next := fmt.Sprintf("slow 6%d", i), fmt.Sprintf("hello %d", i)
		p.say(fmt.Sprintf(`codex {"server":"bigpc","prompt":%q}`, slow))
		started := r.last(
			t,
			slow,
			func(w handoff.Record) bool { return w.State == handoff.StatusStarted && len(w.Items) > 0 },
		)
		p.hear("bigpc") // that it is being done
		time.Sleep(time.Duration(i*100) * time.Millisecond)
		before := len(p.spoken())
		c.kill()
		c.begin()
		ended := r.last(t, slow, func(w handoff.Record) bool { return w.Outcome != "" })
		outcomes[ended.Outcome]++
		if ended.Outcome == handoff.OutcomeResult || ended.ThreadID != started.ThreadID {
			t.Errorf("the work ended as %s in %s, after it began in %s", ended.Outcome, ended.ThreadID, started.ThreadID)
		}
		until(t, "the outcome to be told", func() bool {
			return r.last(t, slow, nil).State == handoff.StatusDelivered
		})
		told := p.spoken()[before:]
		if len(told) != 1 {
			t.Errorf("round %d: the outcome was told %d times: %q", i, len(told), told)
		}
		p.say(fmt.Sprintf(`codex {"server":"bigpc","prompt":%q}`, next))
		after := r.last(t, next, func(w handoff.Record) bool { return w.Outcome != "" })
		if after.Outcome != handoff.OutcomeResult {
			t.Fatalf("after kill %d the next request ended as %s: %+v", i, after.Outcome, after.Error)
		}
		p.hear("answer to: " + next)
		if after.ThreadID != started.ThreadID {
			t.Errorf("the next request went to %s instead of %s", after.ThreadID, started.ThreadID)
		}
		for _, prompt := range []string{slow, next} {
			if n := len(slices.DeleteFunc(c.provider.prompts(), func(asked string) bool { return asked != prompt })); n != 1 {
				t.Errorf("%q ran %d times", prompt, n)
			}
		}
	}
	for _, request := range voice.all() {
		if len(request.outputs) != 1 {
			t.Errorf("%s was answered %d times", request.arguments, len(request.outputs))
		}
	}
	t.Logf("%d kills in the middle of work: %v", rounds, outcomes)
}

// last waits until the newest work with a prompt is as wanted, and returns it.
func (r *running) last(t *testing.T, prompt string, as func(handoff.Record) bool) handoff.Record {
	t.Helper()
	var found handoff.Record
	until(t, prompt, func() bool {
		works := r.handoffs()
		slices.Reverse(works)
		i := slices.IndexFunc(works, func(w handoff.Record) bool { return w.Prompt == prompt })
		if i < 0 {
			return false
		}
		found = r.whole(works[i].ID)
		return as == nil || as(found)
	})
	return found
}
