package router

import (
	"slices"
	"testing"

	"switchboard/handoff"
	"switchboard/handoff/work"
)

// TestOutbox: an outcome waits for a listener that may hear of its machine, is given to one of them, and goes to the
// next if that one leaves without having told it.
func TestOutbox(t *testing.T) {
	told := &notices{}
	r := running(t, Config{Notifier: told})
	ended := func(id, server string) handoff.Record { return endedWork(id, "", server) }
	recall(r, ended("a", "bigpc"), ended("b", "laptop"), ended("c", "bigpc"), ended("d", "bigpc"))
	keep := func(id string) { ask(r, &work.Keep{ID: id}) }
	keep("a")
	keep("b")
	narrow, all, next := &ear{}, &ear{}, &ear{}
	leaveNarrow := r.Attend(handoff.Grant{Caller: ladderCaller, Servers: []string{"laptop"}}, narrow)
	if !slices.Equal(narrow.away, []string{"b"}) {
		t.Fatalf("who may use laptop alone was told %v", narrow.away)
	}
	keep("c")
	if len(narrow.away) != 1 || !slices.Contains(told.ids, "c") {
		t.Fatalf("what nobody there may hear of: told %v, noticed %v", narrow.away, told.ids)
	}
	if err := r.Heard(t.Context(), ladderGrant, "d"); err != nil { // by who followed it, before it waits for others
		t.Fatal(err)
	}
	keep("d")
	leaveAll := r.Attend(ladderGrant, all)
	if slices.Sort(all.away); !slices.Equal(all.away, []string{"a", "c"}) {
		t.Fatalf("who may use everything was told %v", all.away)
	}
	if err := r.Heard(t.Context(), ladderGrant, "b"); err != nil {
		t.Fatal(err)
	}
	leaveAll()
	leaveNarrow()
	leaveNarrow() // again, harmless
	r.Attend(ladderGrant, next)()
	if slices.Sort(next.away); !slices.Equal(next.away, []string{"a", "c"}) || len(narrow.away) != 1 {
		t.Errorf("the next was told %v, the first %v", next.away, narrow.away)
	}
}

// TestFollow: a follower gets events without gaps from its position on, or a snapshot if it is too far behind;
// following ends with the work.
func TestFollow(t *testing.T) {
	r, _ := askingRouter(&desk{}, "q")
	go func() {
		for range 1000 { // more than are kept
			r.says(handoff.Usage{})
		}
		r.says(handoff.TurnEnded{Status: handoff.TurnCompleted})
	}()
	last, ended := uint64(1), false
	for e, err := range r.Follow(t.Context(), ladderGrant, r.run, 1) {
		if err != nil {
			t.Fatal(err)
		}
		if _, jumps := e.Kind.(handoff.EventSnapshot); !jumps && e.Seq != last+1 {
			t.Fatalf("%d comes after %d", e.Seq, last)
		}
		last = e.Seq
		if _, ended = e.Kind.(handoff.EventEnded); ended && !e.Noted {
			t.Error("it is not noted")
		}
	}
	if !ended || last < 1000 {
		t.Errorf("the last is %d, the end: %t", last, ended)
	}
	from := func(after uint64) (kinds []handoff.EventKind) {
		for e, err := range r.Follow(t.Context(), ladderGrant, r.run, after) {
			if err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, e.Kind)
		}
		return kinds
	}
	if got := from(0); len(got) != 2 || !isSnapshot(got[0]) || got[1] != (handoff.EventEnded{}) {
		t.Errorf("from the beginning of what has ended: %v", got)
	}
	if got := from(last - 1); len(got) != 1 || got[0] != (handoff.EventEnded{}) {
		t.Errorf("the end: %v", got)
	}
	if got := from(last); len(got) != 0 {
		t.Errorf("after the end: %v", got)
	}
	for _, err := range r.Follow(t.Context(), ladderGrant, "nothing", 0) {
		if handoff.CodeOf(err) != handoff.CodeNotFound {
			t.Errorf("what is not there: %v", err)
		}
	}
}

func isSnapshot(k handoff.EventKind) bool {
	_, is := k.(handoff.EventSnapshot)
	return is
}

// TestFollowPast: a handoff of an earlier life of the process is a snapshot and its end, for each follower; after the
// end nothing comes.
func TestFollowPast(t *testing.T) {
	r := running(t, Config{})
	var last uint64
	recall(r, handoff.Record{ID: "past", Outcome: handoff.OutcomeResult, Items: []handoff.RecordItem{{ID: "i"}}})
	for range 2 {
		var kinds []handoff.EventKind
		for e, err := range r.Follow(t.Context(), ladderGrant, "past", 0) {
			if err != nil {
				t.Fatal(err)
			}
			kinds, last = append(kinds, e.Kind), e.Seq
		}
		if len(kinds) != 2 || len(kinds[0].(handoff.EventSnapshot).Items) != 1 || kinds[1] != (handoff.EventEnded{}) {
			t.Errorf("what ended in an earlier life: %v", kinds)
		}
	}
	for e := range r.Follow(t.Context(), ladderGrant, "past", last) {
		t.Errorf("after its end: %+v", e)
	}
}
