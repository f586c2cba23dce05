package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"switchboard/handoff"
)

// TestProofPaused: what waited behind work that was stopped can be begun or dropped after Switchboard was killed, also
// when somebody heard of it before, and with all its words. Then no later life calls it paused.
func TestProofPaused(t *testing.T) { t.Parallel(); onAStore(t, proofPaused) }

func proofPaused(t *testing.T, store string) {
	f, s, c := farmed(t, store)
	first := c.hand(`{"server":"bigpc","thread_id":"new","prompt":"job 1 hangs"}`)
	until(t, "the work to run", func() bool { return f.turns()["job 1 hangs"] == 1 })
	thread := c.whole(first).ThreadID
	words := []string{"job 2 takes 1 " + strings.Repeat("and so on ", 200), "job 3 takes 1", "job 4 takes 1"}
	var waits []string
	for _, w := range words {
		waits = append(waits, c.hand(fmt.Sprintf(`{"server":"bigpc","thread_id":%q,"mode":"next","prompt":%q}`, thread, w)))
	}
	c.post("/fleet/handoffs/"+first+"/stop", "{}")
	paused := func() {
		t.Helper()
		for i, id := range waits {
			until(t, "what waits to be paused", func() bool {
				return slices.ContainsFunc(c.handoffs(), func(r handoff.Record) bool { return r.ID == id && r.Outcome != "" })
			})
			if rec := c.whole(id); !rec.Paused || rec.Prompt != words[i] || rec.Error == nil {
				t.Fatalf("paused %t, with %d letters of %d, %+v", rec.Paused, len(rec.Prompt), len(words[i]), rec.Error)
			}
		}
	}
	paused()
	c.outcome(first)
	c.post("/fleet/handoffs/"+waits[0]+"/heard", "{}")
	c = s.after(c, syscall.SIGKILL)
	paused()
	for _, id := range waits {
		c.post("/fleet/handoffs/"+id+"/heard", "{}")
	}
	c.signal(syscall.SIGTERM) // by then all is written
	<-c.done

	c = s.start()
	c.up("bigpc")
	paused()
	begun := c.hand(fmt.Sprintf(`{"begin":%q}`, waits[0]))
	if rec := c.outcome(begun); rec.Outcome != handoff.OutcomeResult || rec.Prompt != words[0] ||
		f.turns()[words[0]] != 1 {
		t.Errorf("it was begun as %+v", rec)
	}
	c.post("/fleet/handoffs/"+waits[1]+"/stop", "{}")
	settled := func(rec handoff.Record, said string) {
		t.Helper()
		if rec.Paused || strings.Contains(rec.Spoken, "paused") || rec.Error != nil && rec.Error.Message != said {
			t.Errorf("it is told as %+v, %+v", rec, rec.Error)
		}
	}
	const wentOn, dropped = "It went on as work of its own.", "It was dropped; nothing was begun."
	settled(c.whole(waits[0]), wentOn)
	settled(c.whole(waits[1]), dropped)
	c.signal(syscall.SIGKILL)

	c = s.start()
	until(t, "the work of before", func() bool { return len(c.handoffs()) == 5 })
	settled(c.whole(waits[0]), wentOn)
	settled(c.whole(waits[1]), dropped)
	if rec := c.whole(waits[2]); !rec.Paused || rec.Prompt != words[2] {
		t.Errorf("what nobody decided: %+v", rec)
	}
	if n := f.turns()[words[1]] + f.turns()[words[2]]; n != 0 {
		t.Errorf("%d turns that nobody asked for", n)
	}
	c.historyOfPaused(words[1], dropped)
}

// historyOfPaused holds what the history says of work that was dropped, and that nothing there is paused.
func (r *running) historyOfPaused(prompt, want string) {
	r.t.Helper()
	said := ""
	for _, it := range items[handoff.Record](r, "/fleet/history") {
		if it.Prompt == prompt {
			said = it.Spoken
		}
		for _, path := range []string{"/fleet/history", "/fleet/history/" + it.ID} {
			if _, body := r.ask(http.MethodGet, path, ""); strings.Contains(string(body), "is paused") {
				r.t.Errorf("the history says that work is paused: %s", body)
			}
		}
	}
	if said != want {
		r.t.Errorf("the history says %q of what was dropped", said)
	}
}
