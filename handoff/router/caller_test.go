package router

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// TestCallersAreLetGo: callers who come once do not pile up, and nobody is let go of with something open.
func TestCallersAreLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRouter(Config{Stickies: noStickies{}})
		grant := func(name string) handoff.Grant {
			return handoff.Grant{Caller: handoff.Caller{Principal: "many", User: name}}
		}
		busy := map[string]func(b *caller){
			"attends": func(b *caller) { b.feed.enter(&attendance{listener: &ear{}}) },
			"writes":  func(b *caller) { b.claims.take("key", "h-1") },
			"untold": func(b *caller) {
				b.open(handoff.Record{ID: "h-1", State: handoff.StatusCompleted, Outcome: handoff.OutcomeResult}, nil)
			},
			"asked":  func(b *caller) { b.questions.ask(&question{shown: handoff.RecordQuestion{ID: "q"}}, 0, nil) },
			"stored": func(b *caller) { b.stickies.queue(stickyWrite{}) },
			"reads":  func(b *caller) { b.feed.pages.Listen(0) },
			"works": func(b *caller) {
				rec := &recordState{Record: handoff.Record{State: handoff.StatusDelivered}, run: &run{}}
				b.registry.records = append(b.registry.records, rec)
			},
		}
		kept := map[string]*caller{}
		for name, occupy := range busy {
			kept[name] = r.caller(grant(name).Caller)
			occupy(kept[name])
		}
		told := r.caller(grant("told").Caller)
		told.open(handoff.Record{ID: "h-1", State: handoff.StatusDelivered}, nil)
		for i := range 5 * maxCallers {
			if i%100 == 0 {
				time.Sleep(awayFor / 2)
			}
			_, _ = r.Handoffs(grant(fmt.Sprint("caller ", i)))
		}
		for name, b := range kept {
			if r.callers[grant(name).Caller] != b {
				t.Errorf("the caller who %s was let go of", name)
			}
		}
		if r.callers[grant("told").Caller] == told {
			t.Error("who has heard everything is kept")
		}
		if n := len(r.callers); n > maxCallers+len(busy) {
			t.Errorf("%d callers are known", n)
		}
	})
}
