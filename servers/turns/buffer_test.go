package turns

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
)

func TestBuffer(t *testing.T) {
	var b Buffer
	b.Put(handoff.Delta{ItemID: "a", Text: "one "}, handoff.Delta{ItemID: "a", Text: "two"},
		handoff.Delta{ItemID: "b", Text: "x"})
	var got []string
	for u, ok := b.Take(); ok; u, ok = b.Take() {
		got = append(got, describe(u))
	}
	want(t, got, `delta a "one two"`, `delta b "x"`)
	if b.bytes != 0 {
		t.Errorf("%d bytes left", b.bytes)
	}
}

// TestBufferDropsDeltasOnly: over the soft bound every delta goes, with all later ones of its item, and
// nothing else does.
func TestBufferDropsDeltasOnly(t *testing.T) {
	var tally Tally
	b := NewBuffer(&tally)
	for i := range softUpdates / 2 {
		id := fmt.Sprint(i)
		b.Put(handoff.ItemStarted{Item: handoff.Item{ID: id}}, handoff.Delta{ItemID: id, Text: "x"})
	}
	b.Put(handoff.Delta{ItemID: "late", Text: "x"})
	b.Put(handoff.ItemDone{Item: handoff.Item{ID: "0"}})
	b.Put(handoff.Delta{ItemID: "1", Text: "has a hole before it"}, handoff.Delta{ItemID: "fresh", Text: "y"})
	b.Put(handoff.Question{ID: "q"}, handoff.QuestionClosed{ID: "q"}, handoff.TurnEnded{})
	kinds := map[string]int{}
	for u, ok := b.Take(); ok; u, ok = b.Take() {
		kinds[fmt.Sprintf("%T", u)]++
		if d, isDelta := u.(handoff.Delta); isDelta && d.ItemID != "fresh" {
			t.Errorf("kept %+v", d)
		}
	}
	wantKinds := map[string]int{
		"handoff.ItemStarted": softUpdates / 2, "handoff.ItemDone": 1, "handoff.Delta": 1,
		"handoff.Question": 1, "handoff.QuestionClosed": 1, "handoff.TurnEnded": 1,
	}
	if fmt.Sprint(kinds) != fmt.Sprint(wantKinds) || tally.Deltas.Load() != softUpdates/2+2 || b.bytes != 0 {
		t.Errorf("kept %v, dropped %d, %d bytes left", kinds, tally.Deltas.Load(), b.bytes)
	}
}

func TestBufferBursts(t *testing.T) {
	var b Buffer
	for i := range HardUpdates {
		b.Put(handoff.ItemDone{Item: handoff.Item{ID: fmt.Sprint(i)}})
	}
	if b.burst {
		t.Fatal("too early")
	}
	b.Put(handoff.TurnEnded{})
	if _, ok := b.Take(); ok || !b.burst {
		t.Error("kept on")
	}
	b.Put(handoff.TurnEnded{})
	if _, ok := b.Take(); ok {
		t.Error("goes on with a hole")
	}
}

// FuzzBuffer: the updates come out as they went in, without some deltas.
func FuzzBuffer(f *testing.F) {
	f.Add([]byte("abcabcabc"), uint16(300))
	f.Fuzz(func(t *testing.T, steps []byte, size uint16) {
		var b Buffer
		var in, out []string
		keep := func(u handoff.Update) {
			if _, isDelta := u.(handoff.Delta); !isDelta {
				out = append(out, describe(u))
			}
		}
		for i, c := range steps {
			var u handoff.Update = handoff.Delta{ItemID: string('a' + c%3), Text: strings.Repeat("x", int(size))}
			switch {
			case c%7 == 0:
				u = handoff.ItemDone{Item: handoff.Item{ID: fmt.Sprint(i), Text: strings.Repeat("y", int(size))}}
			case c%11 == 0:
				if u, ok := b.Take(); ok {
					keep(u)
				}
				continue
			}
			if b.Put(u); c%7 == 0 {
				in = append(in, describe(u))
			}
			if b.burst {
				return
			}
			if b.bytes < 0 || b.bytes > hardBytes || b.deltas < 0 || b.deltas > len(b.queue) {
				t.Fatalf("%d bytes, %d deltas", b.bytes, b.deltas)
			}
		}
		for u, ok := b.Take(); ok; u, ok = b.Take() {
			keep(u)
		}
		if !slices.Equal(in, out) || b.bytes != 0 {
			t.Fatalf("in %v\nout %v\n%d bytes left", in, out, b.bytes)
		}
	})
}

// TestDropIsNotGivenUp: dropping the buffer of a turn that was read is not counted as giving it up.
func TestDropIsNotGivenUp(t *testing.T) {
	var tally Tally
	b := NewBuffer(&tally)
	b.Put(handoff.Started{})
	b.Drop()
	if n := tally.GivenUp.Load(); n != 0 || tally.Bytes.Load() != 0 {
		t.Errorf("%d turns given up, %d bytes held", n, tally.Bytes.Load())
	}
}

// TestDiffsWeigh: an edit counts with its paths and differences.
func TestDiffsWeigh(t *testing.T) {
	var tally Tally
	b := NewBuffer(&tally)
	big := strings.Repeat("x", hardBytes/2)
	b.Put(handoff.ItemDone{Item: handoff.Item{Changes: []handoff.FileChange{{Path: "a", To: "b", Diff: big}}}})
	if n := tally.Bytes.Load(); n < hardBytes/2 {
		t.Errorf("it counts %d bytes", n)
	}
	b.Put(handoff.ItemStarted{Item: handoff.Item{Changes: []handoff.FileChange{{Diff: big}}}})
	if !b.Lost() || tally.Bytes.Load() != 0 {
		t.Errorf("the turn is kept with %d bytes", tally.Bytes.Load())
	}
}
