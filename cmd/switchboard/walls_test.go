package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"switchboard/handoff"
)

// TestWalls plays a call over the announced ends of several sessions of the voice: the follow-up lands in the same
// session of the agent, a question that was asked in one session of the voice is answered in another, each outcome is
// told once, and the client sees one session without an error.
func TestWalls(t *testing.T) {
	t.Parallel()
	voice := runVoice(t, 5, false)
	r := start(t, func(p *plan) { p.Hurry, p.Model = 5, voice.plan })
	r.up("laptop")
	p := r.call()
	walls := 0
	wall := func() { // one more
		t.Helper()
		walls++
		voice.wall(soon)
		until(t, fmt.Sprintf("session %d of the voice", walls+1), func() bool {
			return strings.Count(r.logs.String(), `"planned":true`) == walls
		})
	}
	p.say("Continue the auth session on bigpc and run the tests")
	p.hear("TestRefreshExpiredToken")
	wall()
	p.say("Fix it")
	p.hear("pass")
	wall()
	p.say("Push it from bigpc")
	q := r.question()
	wall()
	r.decide(q, "accept")
	works := r.allHeard()
	if len(works) != 3 {
		t.Fatalf("%d pieces of work: %+v", len(works), works)
	}
	for _, w := range works {
		if w.ThreadID != works[0].ThreadID || w.Outcome != handoff.OutcomeResult {
			t.Errorf("%s: %s in %s, not %s", w.Prompt, w.Outcome, w.ThreadID, works[0].ThreadID)
		}
	}
	told := 0
	for _, said := range p.spoken() {
		told += strings.Count(said, "TestRefreshExpiredToken")
	}
	if told != 1 {
		t.Errorf("the failed test was told %d times: %q", told, p.spoken())
	}
	begun, responses, items := 0, map[string]int{}, map[string]int{}
	for _, e := range p.all() {
		var of struct{ Response, Item struct{ ID string } }
		must(t, json.Unmarshal([]byte(e.raw), &of))
		switch e.Type {
		case "session.created":
			begun++
		case "error":
			t.Errorf("the client saw %.300s", e.raw)
		case "response.created":
			responses[of.Response.ID]++
		case "response.done":
			responses[of.Response.ID] += 10
		case "conversation.item.added":
			items[of.Item.ID]++
		}
	}
	if begun != 1 {
		t.Errorf("%d sessions began", begun)
	}
	for id, n := range responses {
		if n != 11 {
			t.Errorf("%s began %d times and ended %d times", id, n%10, n/10)
		}
	}
	for id, n := range items {
		if n != 1 {
			t.Errorf("%s was added %d times", id, n)
		}
	}
}
