package router

import (
	"fmt"
	"switchboard/handoff"
	"testing"
	"testing/synctest"
	"time"
)

// TestCallersAreLetGo: callers who come once do not pile up, and nobody is let go of with something open.
func TestCallersAreLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRouter(Config{Stickies: noStickies{}})
		grant := func(name string) handoff.Grant {
			return handoff.Grant{Caller: handoff.Caller{Principal: "many", User: name}}
		}
		busy := map[string]func(b *book){
			"attends": func(b *book) { b.enter(&attendance{listener: &ear{}}) },
			"unheard": func(b *book) { b.keepLocked("h-1") },
			"untold": func(b *book) {
				b.open(handoff.Record{ID: "h-1", State: handoff.StatusCompleted, Outcome: handoff.OutcomeResult}, nil)
			},
			"asked":  func(b *book) { b.ask(askedQ{shown: handoff.RecordQuestion{ID: "q"}}, nil) },
			"stored": func(b *book) { b.queueSticky(stickyWrite{}) },
			"reads":  func(b *book) { b.feed.Listen(0) },
			"works":  func(b *book) { b.works["h-1"] = &run{} },
		}
		kept := map[string]*book{}
		for name, occupy := range busy {
			kept[name] = r.book(grant(name).Caller)
			occupy(kept[name])
		}
		told := r.book(grant("told").Caller)
		told.open(handoff.Record{ID: "h-1", State: handoff.StatusDelivered}, nil)
		for i := range 5 * maxCallers {
			if i%100 == 0 {
				time.Sleep(awayFor / 2)
			}
			r.Handoffs(grant(fmt.Sprint("caller ", i)))
		}
		for name, b := range kept {
			if r.books[grant(name).Caller] != b {
				t.Errorf("the caller who %s was let go of", name)
			}
		}
		if r.books[grant("told").Caller] == told {
			t.Error("who has heard everything is kept")
		}
		if n := len(r.books); n > maxCallers+len(busy) {
			t.Errorf("%d callers are known", n)
		}
	})
}
