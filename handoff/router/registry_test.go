package router

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
)

func TestBookKeepsItsBounds(t *testing.T) {
	b := NewRouter(Config{Caller: ladderCaller}).caller(ladderCaller)
	for i := range maxRecords + 5 {
		id := fmt.Sprint(i)
		b.open(handoff.Record{ID: id}, nil)
		if i != 2 { // the third work still runs
			b.registry.change(id, func(r *handoff.Record) {
				r.State, r.Outcome = handoff.StatusDelivered, handoff.OutcomeResult
			})
		}
	}
	list := b.registry.list()
	if len(list) != maxRecords || list[0].ID != fmt.Sprint(maxRecords+4) {
		t.Fatalf("%d records, newest %s", len(list), list[0].ID)
	}
	if rec, _ := b.registry.find("2"); rec.ID == "" {
		t.Error("a running work was pushed out")
	}
	if rec, _ := b.registry.find("0"); rec.ID != "" {
		t.Error("the oldest ended record stayed")
	}
	if rec := b.registry.change("0", func(r *handoff.Record) { t.Error("changed what is gone") }); rec.ID != "0" {
		t.Errorf("a record that is gone: %+v", rec)
	}
	for i := range maxItems + 3 {
		b.registry.item("2", handoff.RecordItem{ID: fmt.Sprint("i", i), Kind: handoff.ItemCommand})
	}
	b.registry.delta("2", handoff.Delta{ItemID: "i10", Text: strings.Repeat("x", maxOutput)})
	b.registry.delta("2", handoff.Delta{ItemID: "i10", Text: "end"})
	rec, _ := b.registry.find("2")
	if len(rec.Items) != maxItems || rec.Items[0].ID != "i3" {
		t.Errorf("%d items, first %s", len(rec.Items), rec.Items[0].ID)
	}
	if out := rec.Items[indexItem(rec.Items, "i10")].Output; len(out) != maxOutput || !strings.HasSuffix(out, "xend") {
		t.Errorf("output of %d bytes", len(out))
	}
}

// TestBookKeepsWhatNobodyHeard: what is still to be told is not pushed out by what comes after it; far
// beyond that the oldest is left to the ledger.
func TestBookKeepsWhatNobodyHeard(t *testing.T) {
	b := NewRouter(Config{Caller: ladderCaller}).caller(ladderCaller)
	add := func(from, to int) {
		for i := from; i < to; i++ {
			id := fmt.Sprint(i)
			b.claims.take(id, "")
			b.open(handoff.Record{ID: id, State: handoff.StatusCompleted, Outcome: handoff.OutcomeResult,
				EndedAt: new(time.Now())}, nil)
			b.registry.with(id, func(rec *recordState) { rec.writer = &ledgerWriter{caller: b, key: id} })
			b.registry.keep(id)
		}
	}
	add(0, maxRecords+1)
	all := &ear{}
	b.feed.enter(&attendance{listener: all})
	if b.tellUnheard(); len(all.away) != maxRecords+1 {
		t.Errorf("%d of %d outcomes are told", len(all.away), maxRecords+1)
	}
	add(maxRecords+1, maxUnheard+1)
	if rec, _ := b.registry.find("0"); rec.ID != "" || len(b.registry.list()) != maxUnheard {
		t.Errorf("%d records, the oldest %q", len(b.registry.list()), rec.ID)
	}
	if !b.claims.takeFormer("0") {
		t.Error("nobody can take up what was pushed out")
	}
}

// TestBookOrder: what is taken up after a restart comes in any order, and is listed by when it was asked for.
func TestBookOrder(t *testing.T) {
	b, began := NewRouter(Config{Caller: ladderCaller}).caller(ladderCaller), time.Now()
	for _, n := range []int{1, 3, 2, 2, 4} {
		b.open(
			handoff.Record{
				ID: fmt.Sprint(len(b.registry.records), " at ", n), CreatedAt: began.Add(time.Duration(n) * time.Second),
			},
			nil,
		)
	}
	var got []string
	for _, rec := range b.registry.list() {
		got = append(got, rec.ID)
	}
	if want := []string{"4 at 4", "1 at 3", "3 at 2", "2 at 2", "0 at 1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBookItems(t *testing.T) {
	b := NewRouter(Config{Caller: ladderCaller}).caller(ladderCaller)
	b.open(handoff.Record{ID: "h"}, nil)
	b.registry.delta("h", handoff.Delta{ItemID: "m1", Text: "half of "})
	b.registry.delta("h", handoff.Delta{ItemID: "m1", Text: "a message"})
	b.registry.item("h", handoff.RecordItem{ID: "c1", Kind: handoff.ItemCommand, Text: "go test", State: itemRunning})
	b.registry.item("h", handoff.RecordItem{ID: "c1", Kind: handoff.ItemCommand, Text: "go test", State: itemDone})
	rec, _ := b.registry.find("h")
	if len(rec.Items) != 2 || rec.Items[0].Text != "half of a message" || rec.Items[1].State != itemDone {
		t.Fatalf("items: %+v", rec.Items)
	}
	rec.Items[0].Text = "changed outside"
	b.registry.item("h", handoff.RecordItem{ID: "c2", Kind: handoff.ItemCommand, Text: "go vet", State: itemRunning})
	b.registry.drop("h", "c2")
	again, _ := b.registry.find("h")
	if len(again.Items) != 3 || again.Items[0].Text != "half of a message" || again.Items[2].State != itemFailed {
		t.Fatalf("a copy shares its items, or what a command did is lost: %+v", again.Items)
	}
	b.registry.drop("h", "m1")
	if again, _ := b.registry.find("h"); len(again.Items) != 2 {
		t.Fatalf("a message that was withdrawn stays: %+v", again.Items)
	}
	b.registry.delta("gone", handoff.Delta{ItemID: "m", Text: "x"})
	b.registry.item("gone", handoff.RecordItem{ID: "m"})
	b.registry.drop("gone", "m")
}

func TestBookUnheard(t *testing.T) {
	b := NewRouter(Config{Caller: ladderCaller}).caller(ladderCaller)
	for _, id := range []string{"a", "b"} {
		b.open(handoff.Record{ID: id}, nil)
	}
	for i, id := range []string{"b", "a"} {
		b.registry.change(id, func(r *handoff.Record) {
			r.State, r.Outcome, r.EndedAt = handoff.StatusCompleted, handoff.OutcomeResult, new(time.Unix(int64(i), 0))
		})
	}
	for _, id := range []string{"a", "b", "a"} {
		b.registry.keep(id)
	}
	all := &ear{}
	b.feed.enter(&attendance{listener: all})
	for range 2 {
		b.tellUnheard()
	}
	if !slices.Equal(all.away, []string{"b", "a"}) {
		t.Fatalf("told %v", all.away)
	}
	if !b.registry.delivered("a") || b.registry.delivered("a") {
		t.Error("an outcome is delivered once")
	}
	if rec, _ := b.registry.find("a"); rec.State != handoff.StatusDelivered {
		t.Errorf("state %s", rec.State)
	}
}

func TestFeedResumes(t *testing.T) {
	var f handoff.Feed
	for i := range 10 {
		f.Publish(handoff.PageEvent{Kind: handoff.EventDelta, Delta: fmt.Sprint(i)})
	}
	l, missed, complete := f.Listen(7)
	defer l.Stop()
	if !complete || len(missed) != 3 || missed[0].ID != 8 {
		t.Fatalf("missed %v, complete %t", missed, complete)
	}
	f.Publish(handoff.PageEvent{Kind: handoff.EventServers})
	if e := <-l.Events; e.ID != 11 || e.Kind != handoff.EventServers {
		t.Fatalf("got %+v", e)
	}
	if _, _, complete := f.Listen(99); complete {
		t.Error("an id of another life counts as complete")
	}
	for range handoff.FeedBacklog {
		f.Publish(handoff.PageEvent{Kind: handoff.EventDelta})
	}
	if _, missed, complete := f.Listen(3); complete || len(missed) != handoff.FeedBacklog {
		t.Errorf("the backlog does not reach back: complete %t, %d missed", complete, len(missed))
	}
	if f.Last() != uint64(11+handoff.FeedBacklog) {
		t.Errorf("last %d", f.Last())
	}
	for n := range 3 * handoff.FeedBacklog { // also where old events are let go
		f.Publish(handoff.PageEvent{Kind: handoff.EventDelta})
		_, missed, complete := f.Listen(f.Last() - handoff.FeedBacklog)
		if !complete || len(missed) != handoff.FeedBacklog || missed[0].ID != f.Last()-handoff.FeedBacklog+1 ||
			missed[handoff.FeedBacklog-1].ID != f.Last() {
			t.Fatalf("after %d more: complete %t, %d missed", n+1, complete, len(missed))
		}
	}
}

func TestFeedDropsTheSlow(t *testing.T) {
	var f handoff.Feed
	slow, _, _ := f.Listen(0)
	quick, _, _ := f.Listen(0)
	defer quick.Stop()
	for range handoff.FeedQueue + 1 {
		f.Publish(handoff.PageEvent{Kind: handoff.EventDelta})
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

// TestDeltaOfWhatIsGone: an item that was pushed out or withdrawn is not brought back by the end of its text,
// and a record never shows more items than it may.
func TestDeltaOfWhatIsGone(t *testing.T) {
	b := NewRouter(Config{Caller: ladderCaller}).caller(ladderCaller)
	b.open(handoff.Record{ID: "h"}, nil)
	b.registry.delta("h", handoff.Delta{ItemID: "joined", Text: "resumed in the middle"})
	for i := range maxItems {
		b.registry.item("h", handoff.RecordItem{ID: strconv.Itoa(i), Kind: handoff.ItemMessage, State: itemRunning})
	}
	items := func() []handoff.RecordItem {
		rec, _ := b.registry.find("h")
		return rec.Items
	}
	shown := func(id string) bool { return indexItem(items(), id) >= 0 }
	if shown("joined") || len(items()) != maxItems {
		t.Fatalf("%d items, the oldest is there: %t", len(items()), shown("joined"))
	}
	b.registry.delta("h", handoff.Delta{ItemID: "joined", Text: "more"})
	b.registry.drop("h", "7")
	b.registry.delta("h", handoff.Delta{ItemID: "joined", Text: "still more"})
	b.registry.delta("h", handoff.Delta{ItemID: "7", Text: "withdrawn"})
	if shown("joined") || shown("7") || len(items()) != maxItems-1 {
		t.Errorf("%d items, brought back: %t, %t", len(items()), shown("joined"), shown("7"))
	}
	for i := range 3 * maxItems {
		b.registry.delta("h", handoff.Delta{ItemID: "new-" + strconv.Itoa(i), Text: "text"})
	}
	if len(items()) > maxItems {
		t.Errorf("%d items", len(items()))
	}
	b.open(handoff.Record{ID: "short"}, nil)
	for i := range 3 * maxItems {
		b.registry.delta("short", handoff.Delta{ItemID: strconv.Itoa(i), Text: "text"})
	}
	if rec, _ := b.registry.find("short"); len(rec.Items) > maxItems {
		t.Errorf("%d items that only deltas made", len(rec.Items))
	}
}
