package router

import (
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
)

func isSnapshot(k handoff.RunKind) bool {
	_, is := k.(handoff.RunSnapshot)
	return is
}

// TestFollowDeltas: a follower gets an item piece by piece, and then the whole. A delta has no number of its own, and
// no listener gets one.
func TestFollowDeltas(t *testing.T) {
	r := running(t, Config{})
	b := r.caller(ladderCaller)
	heard := &ear{}
	defer r.Attend(ladderGrant, heard)()
	b.open(handoff.Record{ID: "a"}, &run{ID: "a"})
	b.feed.publish("a", handoff.RunDoing{ID: "m", Item: handoff.ItemMessage})
	b.registry.item("a", handoff.RecordItem{ID: "m", Kind: handoff.ItemMessage, State: itemRunning})
	b.registry.delta("a", handoff.Delta{ItemID: "m", Text: "unheard "})
	var text strings.Builder
	var seqs []uint64
	for e, err := range r.Follow(t.Context(), ladderGrant, "a", 0) {
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, e.Seq)
		switch k := e.Kind.(type) {
		case handoff.RunDoing:
			b.registry.delta("a", handoff.Delta{ItemID: "m", Text: "by "})
			b.registry.delta("a", handoff.Delta{ItemID: "m", Text: "others"})
			b.registry.record("a", handoff.RunItem{Item: handoff.Item{ID: "m", Text: "unheard by others"}})
			b.registry.record("a", handoff.RunUsage{Usage: handoff.Usage{Output: 3}})
			b.feed.publish("a", handoff.RunEnded{})
		case handoff.RunDelta:
			if want := len("unheard ") + text.Len(); k.At != want {
				t.Errorf("%q is at %d, want %d", k.Text, k.At, want)
			}
			text.WriteString(k.Text)
		case handoff.RunItem:
			if !strings.HasSuffix(k.Item.Text, text.String()) || text.Len() == 0 {
				t.Errorf("heard %q of %q", text.String(), k.Item.Text)
			}
		}
	}
	if want := []uint64{1, 1, 1, 2, 3, 4}; !slices.Equal(seqs, want) {
		t.Errorf("numbers %v, want %v", seqs, want)
	}
	if n := b.registry.findLocked("a").log.followers; n != 0 {
		t.Errorf("%d follow still", n)
	}
}

// TestFollowLate: a late follower gets a snapshot of the items and the usage. When the log is full, deltas are dropped
// first.
func TestFollowLate(t *testing.T) {
	r := running(t, Config{})
	b := r.caller(ladderCaller)
	b.open(handoff.Record{ID: "a"}, &run{ID: "a"})
	b.registry.follows("a", 1)
	b.registry.item("a", handoff.RecordItem{ID: "m", Kind: handoff.ItemMessage, State: itemRunning})
	b.feed.publish("a", handoff.RunDoing{ID: "m"})
	for range 3 * maxDeltas {
		b.registry.delta("a", handoff.Delta{ItemID: "m", Text: "x"})
	}
	l := &b.registry.findLocked("a").log
	if l.deltas == 0 || l.deltas > maxDeltas || len(l.events) != l.deltas+1 || l.bytes != l.deltas {
		t.Fatalf("%d deltas of %d bytes among %d events", l.deltas, l.bytes, len(l.events))
	}
	b.registry.delta("a", handoff.Delta{ItemID: "m", Text: strings.Repeat("x", maxDeltaBytes)})
	if l.deltas != 1 || l.events[0].isDelta() {
		t.Fatalf("a large one leaves %d deltas", l.deltas)
	}
	for range 2 * maxLog {
		b.registry.record("a", handoff.RunUsage{Usage: handoff.Usage{Input: 7}})
	}
	if l.deltas != 0 || l.bytes != 0 || len(l.events) != maxLog {
		t.Fatalf("%d events with %d deltas of %d bytes", len(l.events), l.deltas, l.bytes)
	}
	for e, err := range r.Follow(t.Context(), ladderGrant, "a", 1) {
		if err != nil {
			t.Fatal(err)
		}
		s, is := e.Kind.(handoff.RunSnapshot)
		if !is || len(s.Items) != 1 || s.Usage.Input != 7 || e.Seq != l.last {
			t.Errorf("begins with %d %#v", e.Seq, e.Kind)
		}
		break
	}
}
