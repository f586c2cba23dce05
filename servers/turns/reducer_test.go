package turns

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
)

// track runs a script through a reducer and returns what it reports. Words of a line:
//
//	+ID KIND      an item begins     ~ID TEXT   a piece of a message   !ID TEXT   of output
//	=ID KIND TEXT it is finished     retry      the stream begins anew  begin      the turn runs
//	end STATUS    the turn ends      end STATUS ID TEXT                 with a message
func track(script ...string) []string {
	r := NewReducer("t")
	var out []string
	for _, step := range script {
		w := strings.SplitN(step, " ", 4)
		w = append(w, "", "", "")
		id := strings.TrimLeft(w[0], "+~!=")
		var got []handoff.Update
		switch {
		case step == "begin":
			got = r.Begin()
		case step == "retry":
			got = r.Retrying()
		case w[0] == "end":
			var items []Item
			if w[2] != "" {
				items = []Item{item(handoff.ItemMessage, w[2], w[3])}
			}
			got = r.End(handoff.TurnEnded{Status: statuses[w[1]]}, items)
		case step[0] == '+':
			got = r.ItemStarted(item(handoff.ItemKind(w[1]), id, ""))
		case step[0] == '~':
			got = r.Delta(id, w[1], handoff.DeltaMessage)
		case step[0] == '!':
			got = r.Delta(id, w[1], handoff.DeltaOutput)
		default:
			text, answers := strings.CutPrefix(w[2], "answer/")
			it := item(handoff.ItemKind(w[1]), id, text)
			it.Answer = answers
			got = r.ItemDone(it)
		}
		for _, u := range got {
			out = append(out, describe(u))
		}
	}
	return out
}

var statuses = map[string]handoff.TurnStatus{"completed": handoff.TurnCompleted, "failed": handoff.TurnFailed,
	"interrupted": handoff.TurnInterrupted}

func item(kind handoff.ItemKind, id, text string) Item {
	return Item{Item: handoff.Item{ID: id, Kind: kind, Text: text}, Streamed: kind == handoff.ItemMessage ||
		kind == handoff.ItemReasoning}
}

// describe writes an update as one line.
func describe(u handoff.Update) string {
	switch u := u.(type) {
	case handoff.Started:
		return "started"
	case handoff.ItemStarted:
		return fmt.Sprintf("item %s %s", u.Item.Kind, u.Item.ID)
	case handoff.Delta:
		return fmt.Sprintf("delta %s %q", u.ItemID, u.Text)
	case handoff.ItemDone:
		return fmt.Sprintf("done %s %s %q", u.Item.Kind, u.Item.ID, u.Item.Text)
	case handoff.ItemDropped:
		return "dropped " + u.ItemID
	case handoff.TurnEnded:
		return fmt.Sprintf("ended %s %q", [...]string{"completed", "failed", "interrupted"}[u.Status], u.Text)
	}
	return fmt.Sprintf("%+v", u)
}

// want compares lines.
func want(t *testing.T, got []string, lines ...string) {
	t.Helper()
	if !slices.Equal(got, lines) {
		t.Fatalf("got:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(lines, "\n  "))
	}
}

// reducerCases are scripts and the updates of each.
var reducerCases = map[string]struct{ script, want []string }{
	"message": {
		[]string{"begin", "+a message", "~a he", "~a llo", "=a message hello", "end completed"},
		[]string{"started", "item message a", `delta a "he"`, `delta a "llo"`, `done message a "hello"`,
			`ended completed "hello"`},
	},
	"steer abandons the message": {
		[]string{"+a message", "~a x", "+b message", "=b message new", "end completed"},
		[]string{"started", "item message a", `delta a "x"`, "dropped a", "item message b", `done message b "new"`,
			`ended completed "new"`},
	},
	"steer does not touch a command": {
		[]string{"+c command", "+a message", "+b message", "=c command", "=b message new", "end completed"},
		[]string{"started", "item command c", "item message a", "dropped a", "item message b", `done command c ""`,
			`done message b "new"`, `ended completed "new"`},
	},
	"retry abandons at once": {
		[]string{"+a message", "~a x", "retry", "~a late", "+b message", "=b message y", "end completed"},
		[]string{"started", "item message a", `delta a "x"`, "dropped a", "item message b", `done message b "y"`,
			`ended completed "y"`},
	},
	"interrupt abandons what was being said": {[]string{"+c command", "!c out", "+a message", "end interrupted"},
		[]string{"started", "item command c", `delta c "out"`, "item message a", "dropped a", `ended interrupted ""`}},
	"a dropped item that finishes counts": {
		[]string{"+a message", "+b message", "=a message old", "=b message new", "end completed"},
		[]string{"started", "item message a", "dropped a", "item message b", `done message a "old"`, `done message b "new"`,
			`ended completed "new"`},
	},
	"finished once": {[]string{"=a message x", "=a message x", "+a message", "~a x", "end completed"},
		[]string{"started", `done message a "x"`, `ended completed "x"`}},
	"the final answer wins over later comments": {
		[]string{"=a message looking", "=b message answer/done", "=c message bye", "end completed"},
		[]string{"started", `done message a "looking"`, `done message b "done"`, `done message c "bye"`,
			`ended completed "done"`},
	},
	"without phases the last message wins": {[]string{"=a message one", "=b message two", "end completed"},
		[]string{"started", `done message a "one"`, `done message b "two"`, `ended completed "two"`}},
	"bare deltas, then the whole": {[]string{"~a tail", "=a message whole", "end completed"},
		[]string{"started", `delta a "tail"`, `done message a "whole"`, `ended completed "whole"`}},
	"bare deltas, then the announcement": {[]string{"~a x", "+a message", "=a message x", "end completed"},
		[]string{"started", `delta a "x"`, "item message a", `done message a "x"`, `ended completed "x"`}},
	"bare deltas of a second message abandon the first": {[]string{"~a x", "~b y", "end interrupted"},
		[]string{"started", `delta a "x"`, "dropped a", `delta b "y"`, "dropped b", `ended interrupted ""`}},
	"only the end is heard": {[]string{"end completed a answer"}, []string{"started", `ended completed "answer"`}},
	"the end finishes what is open": {[]string{"+a message", "end completed a answer"},
		[]string{"started", "item message a", `done message a "answer"`, `ended completed "answer"`}},
	"nothing after the end": {
		[]string{"end failed", "begin", "+a message", "~a x", "=a message x", "retry", "end completed"},
		[]string{"started", `ended failed ""`},
	},
}

func TestReducer(t *testing.T) {
	for name, c := range reducerCases {
		t.Run(name, func(t *testing.T) { want(t, track(c.script...), c.want...) })
	}
}

// TestLastWordsAreThoseReadLast: an older message that is read only at the end is not the answer.
func TestLastWordsAreThoseReadLast(t *testing.T) {
	r := NewReducer("t")
	heard := item(handoff.ItemMessage, "b", "All done.")
	r.ItemDone(heard)
	updates := r.End(handoff.TurnEnded{}, []Item{item(handoff.ItemMessage, "a", "I'll look."), heard})
	if end, ok := updates[len(updates)-1].(handoff.TurnEnded); !ok || end.Text != "All done." {
		t.Errorf("ended with %+v", updates)
	}
}

func TestUsageAddsUp(t *testing.T) {
	r := NewReducer("t")
	r.Used(handoff.Usage{Input: 100, Cached: 60, Output: 10, Reasoning: 5})
	got := r.Used(handoff.Usage{Input: 200, Cached: 100, Output: 20})
	if len(got) != 1 || got[0] != (handoff.Usage{Input: 300, Cached: 160, Output: 30, Reasoning: 5}) {
		t.Errorf("used %+v", got)
	}
}

// TestReducerIsBounded: the reducer keeps no more items than its bounds, however many begin or end.
func TestReducerIsBounded(t *testing.T) {
	r := NewReducer("t")
	dropped := 0
	for i := range maxClosed + 10 {
		for _, u := range r.ItemStarted(item(handoff.ItemCommand, fmt.Sprint("open", i), "")) {
			if _, ok := u.(handoff.ItemDropped); ok {
				dropped++
			}
		}
		r.ItemDone(item(handoff.ItemCommand, fmt.Sprint("done", i), ""))
		if len(r.open) > maxOpen || len(r.closed) > maxClosed {
			t.Fatalf("%d open, %d closed", len(r.open), len(r.closed))
		}
	}
	if want := maxClosed + 10 - maxOpen; dropped != want {
		t.Errorf("%d were withdrawn, want %d", dropped, want)
	}
}

// FuzzReducer: in any order of messages, there is one beginning and one end, nothing comes after the end, and every
// item that has begun is finished or withdrawn, except commands that the end cut short.
func FuzzReducer(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
	f.Fuzz(func(t *testing.T, steps []byte) {
		r := NewReducer("t")
		open := map[string]bool{}
		var started, ended int
		check := func(updates []handoff.Update) {
			for _, u := range updates {
				if ended > 0 || (started == 0) != (describe(u) == "started") {
					t.Fatalf("%s after %d starts and %d ends", describe(u), started, ended)
				}
				switch u := u.(type) {
				case handoff.Started:
					started++
				case handoff.TurnEnded:
					ended++
				case handoff.ItemStarted:
					open[u.Item.ID] = true
				case handoff.Delta:
					open[u.ItemID] = true
				case handoff.ItemDone:
					delete(open, u.Item.ID)
				case handoff.ItemDropped:
					if !open[u.ItemID] {
						t.Fatalf("dropped %s, which is not open", u.ItemID)
					}
					delete(open, u.ItemID)
				}
			}
		}
		kinds := []handoff.ItemKind{handoff.ItemMessage, handoff.ItemReasoning, handoff.ItemCommand, handoff.ItemOther}
		for i, b := range steps {
			kind := kinds[b>>5&3]
			it := item(kind, fmt.Sprintf("i%d%s", b>>3&3, kind), "")
			switch b & 7 {
			case 0, 1:
				check(r.ItemStarted(it))
			case 2, 3:
				check(r.Delta(it.ID, "x",
					map[bool]handoff.DeltaKind{true: handoff.DeltaMessage, false: handoff.DeltaOutput}[it.Streamed]))
			case 4, 5:
				check(r.ItemDone(it))
			case 6:
				check(r.Retrying())
			case 7:
				if i%5 == 0 {
					check(r.End(handoff.TurnEnded{Status: handoff.TurnCompleted}, nil))
				}
			}
		}
		check(r.End(handoff.TurnEnded{Status: handoff.TurnInterrupted}, nil))
		for id := range open { // what ran until then stays
			if strings.HasSuffix(id, fmt.Sprint(handoff.ItemCommand)) || strings.HasSuffix(id, fmt.Sprint(handoff.ItemOther)) {
				delete(open, id)
			}
		}
		if started != 1 || ended != 1 || len(open) > 0 {
			t.Fatalf("%d starts, %d ends, open %v", started, ended, open)
		}
	})
}
