package handoff_test

import (
	"fmt"
	"testing"

	"switchboard/handoff"
)

// TestFeedResumes: a page that comes back gets what it missed, or hears that it needs a snapshot.
func TestFeedResumes(t *testing.T) {
	var f handoff.Feed
	for i := range 10 {
		f.Publish(handoff.PageEvent{Kind: handoff.PageDelta, Delta: fmt.Sprint(i)})
	}
	l, missed, complete := f.Listen(7)
	defer l.Stop()
	if !complete || len(missed) != 3 || missed[0].ID != 8 {
		t.Fatalf("missed %v, complete %t", missed, complete)
	}
	f.Publish(handoff.PageEvent{Kind: handoff.PageServers})
	if f.Shown() {
		t.Error("each listener counts as a page")
	}
	if l.MarkPage(); !f.Shown() {
		t.Error("no page is open")
	}
	if e := <-l.Events; e.ID != 11 || e.Kind != handoff.PageServers {
		t.Fatalf("got %+v", e)
	}
	if _, _, complete := f.Listen(99); complete {
		t.Error("an id of another life counts as complete")
	}
	for range handoff.FeedBacklog {
		f.Publish(handoff.PageEvent{Kind: handoff.PageDelta})
	}
	if _, missed, complete := f.Listen(3); complete || len(missed) != handoff.FeedBacklog {
		t.Errorf("the backlog does not reach back: complete %t, %d missed", complete, len(missed))
	}
	if f.Last() != uint64(11+handoff.FeedBacklog) {
		t.Errorf("last %d", f.Last())
	}
	for n := range 3 * handoff.FeedBacklog { // also where old events are let go
		f.Publish(handoff.PageEvent{Kind: handoff.PageDelta})
		_, missed, complete := f.Listen(f.Last() - handoff.FeedBacklog)
		if !complete || len(missed) != handoff.FeedBacklog || missed[0].ID != f.Last()-handoff.FeedBacklog+1 ||
			missed[handoff.FeedBacklog-1].ID != f.Last() {
			t.Fatalf("after %d more: complete %t, %d missed", n+1, complete, len(missed))
		}
	}
}

// TestFeedDropsTheSlow: a page that is too slow is dropped, and does not slow the others.
func TestFeedDropsTheSlow(t *testing.T) {
	var f handoff.Feed
	slow, _, _ := f.Listen(0)
	quick, _, _ := f.Listen(0)
	defer quick.Stop()
	for range handoff.FeedQueue + 1 {
		f.Publish(handoff.PageEvent{Kind: handoff.PageDelta})
		<-quick.Events
	}
	n := 0
	for range slow.Events {
		n++
	}
	if _, dropped := f.Load(); n != handoff.FeedQueue || dropped != 1 {
		t.Errorf("the slow one got %d, dropped %d", n, dropped)
	}
	slow.Stop() // again, harmless
}
