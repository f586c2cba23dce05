package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/realtime/simulator"
)

// TestNextCallKnowsTheConversation: Switchboard is restarted in the middle of a call. The next call is told when that
// broke off, with the last that was said as far as the page had it kept, and the one after it is told nothing.
func TestNextCallKnowsTheConversation(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, store string) {
		state, notes := t.TempDir(), make(chan string, 16)
		heard := func(h simulator.Heard) []simulator.Move {
			notes <- strings.Join(h.Messages, "\n")
			return toolsAsTyped(h)
		}
		voice := runsVoice(t, simulator.Config{Hurry: 8, Script: heard})
		again := func() *running {
			return start(t, func(p *plan) {
				p.StateDir, p.Redis, p.Model = state, newSecret(store), voice
			})
		}
		told := func(r *running, wants ...string) (note string) { // all that it wants, and all in the first sentences
			p, end := r.call(), time.Now().Add(patience)
			lacks := func(want string) bool { return !strings.Contains(note, want) }
			for n := 0; n < 5 || slices.ContainsFunc(wants, lacks) && time.Now().Before(end); n++ {
				p.say("go on")
				note += <-notes
			}
			return note
		}
		r := again()
		p := r.call()
		p.say("hello")
		if first := <-notes; first != "" {
			t.Errorf("the first call is told %q", first)
		}
		line := func(id, who, text string) map[string]string {
			return map[string]string{"id": id, "who": who, "text": text, "at": time.Now().UTC().Format(time.RFC3339Nano)}
		}
		lines, err := json.Marshal(map[string]any{"lines": []any{line("1", "you", "run the tests"), line("2", "voice", "One fails.")}})
		must(t, err)
		r.post("/fleet/conversation", string(lines))
		r.stop()
		r = again()
		wants := []string{"broke off", `The caller: "run the tests"`, `You: "One fails."`}
		note := told(r, wants...)
		for _, want := range wants {
			if !strings.Contains(note, want) {
				t.Errorf("the next call is told %q, not %q", note, want)
			}
		}
		for _, c := range items[struct{ ID string }](r, "/fleet/calls") {
			if status, body := r.ask("DELETE", fmt.Sprint("/fleet/calls/", c.ID), ""); status/100 != 2 {
				t.Errorf("%d %s", status, body)
			}
		}
		until(t, "no call", func() bool { return len(items[struct{ ID string }](r, "/fleet/calls")) == 0 })
		r.stop()
		if note := told(again()); note != "" {
			t.Errorf("after one that was hung up: %q", note)
		}
	})
}
