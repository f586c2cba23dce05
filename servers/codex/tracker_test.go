package codex

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
)

// track runs a script through a tracker and returns what it reports. Words of a line:
//
//	+ID TYPE      item/started       ~ID TEXT   agentMessage delta    !ID TEXT   output delta
//	=ID TYPE TEXT item/completed     retry      error.willRetry       begin      turn/started
//	end STATUS    turn/completed     end STATUS ID TEXT               with a message in its summary
func track(script ...string) []string {
	t := newTracker("t")
	var out []string
	for _, step := range script {
		w := strings.SplitN(step, " ", 4)
		w = append(w, "", "", "")
		id := strings.TrimLeft(w[0], "+~!=")
		var got []handoff.Update
		switch {
		case step == "begin":
			got = t.begin()
		case step == "retry":
			got = t.retrying()
		case w[0] == "end":
			var items []wireItem
			if w[2] != "" {
				items = []wireItem{{Type: typeAgentMessage, ID: w[2], Text: w[3]}}
			}
			got = t.completed(&wireTurn{Status: w[1]}, items)
		case step[0] == '+':
			got = t.itemStarted(&wireItem{Type: w[1], ID: id})
		case step[0] == '~', step[0] == '!':
			got = t.delta(id, w[1], map[bool]handoff.DeltaKind{true: handoff.DeltaMessage, false: handoff.DeltaOutput}[step[0] == '~'])
		default:
			item := &wireItem{Type: w[1], ID: id, Text: w[2]}
			if phase, text, ok := strings.Cut(w[2], "/"); ok {
				item.Phase, item.Text = &phase, text
			}
			got = t.itemCompleted(item)
		}
		for _, u := range got {
			out = append(out, describe(u))
		}
	}
	return out
}

// trackerCases are scripts and what comes of them.
var trackerCases = map[string]struct{ script, want []string }{
	"message": {
		[]string{"begin", "+a agentMessage", "~a he", "~a llo", "=a agentMessage hello", "end completed"},
		[]string{"started", `item message a ""`, `delta a "he"`, `delta a "llo"`, `done message a "hello"`, `ended completed "hello" ""`},
	},
	"the user's words are not reported": {
		[]string{"+u userMessage", "=u userMessage hi", "+h hookPrompt", "+f functionCallOutput", "end completed"},
		[]string{"started", `ended completed "" ""`},
	},
	"steer abandons the message": {
		[]string{"+a agentMessage", "~a x", "+u userMessage", "=u userMessage more", "+b agentMessage", "=b agentMessage new", "end completed"},
		[]string{"started", `item message a ""`, `delta a "x"`, "dropped a", `item message b ""`, `done message b "new"`, `ended completed "new" ""`},
	},
	"steer does not touch a command": {
		[]string{"+c commandExecution", "+a agentMessage", "+b agentMessage", "=c commandExecution", "=b agentMessage new", "end completed"},
		[]string{"started", `item command c ""`, `item message a ""`, "dropped a", `item message b ""`, `done command c ""`, `done message b "new"`, `ended completed "new" ""`},
	},
	"retry abandons at once": {
		[]string{"+a agentMessage", "~a x", "retry", "~a late", "+b agentMessage", "=b agentMessage y", "end completed"},
		[]string{"started", `item message a ""`, `delta a "x"`, "dropped a", `item message b ""`, `done message b "y"`, `ended completed "y" ""`},
	},
	"interrupt abandons everything": {
		[]string{"+c commandExecution", "!c out", "+a agentMessage", "end interrupted"},
		[]string{"started", `item command c ""`, `delta c "out"`, `item message a ""`, "dropped c", "dropped a", `ended interrupted "" ""`},
	},
	"a dropped item that finishes counts": {
		[]string{"+a agentMessage", "+b agentMessage", "=a agentMessage old", "=b agentMessage new", "end completed"},
		[]string{"started", `item message a ""`, "dropped a", `item message b ""`, `done message a "old"`, `done message b "new"`, `ended completed "new" ""`},
	},
	"finished once": {
		[]string{"=a agentMessage x", "=a agentMessage x", "+a agentMessage", "~a x", "end completed"},
		[]string{"started", `done message a "x"`, `ended completed "x" ""`},
	},
	"the final answer wins over later comments": {
		[]string{"=a agentMessage commentary/looking", "=b agentMessage final_answer/done", "=c agentMessage commentary/bye", "end completed"},
		[]string{"started", `done message a "looking"`, `done message b "done"`, `done message c "bye"`, `ended completed "done" ""`},
	},
	"without phases the last message wins": {
		[]string{"=a agentMessage one", "=b agentMessage two", "end completed"},
		[]string{"started", `done message a "one"`, `done message b "two"`, `ended completed "two" ""`},
	},
	"bare deltas, then the whole": {
		[]string{"~a tail", "=a agentMessage whole", "end completed"},
		[]string{"started", `delta a "tail"`, `done message a "whole"`, `ended completed "whole" ""`},
	},
	"bare deltas, then the announcement": {
		[]string{"~a x", "+a agentMessage", "=a agentMessage x", "end completed"},
		[]string{"started", `delta a "x"`, `item message a ""`, `done message a "x"`, `ended completed "x" ""`},
	},
	"bare deltas of a second message abandon the first": {
		[]string{"~a x", "~b y", "end interrupted"},
		[]string{"started", `delta a "x"`, "dropped a", `delta b "y"`, "dropped b", `ended interrupted "" ""`},
	},
	"only the end is heard": {
		[]string{"end completed a answer"},
		[]string{"started", `ended completed "answer" ""`},
	},
	"the end finishes what is open": {
		[]string{"+a agentMessage", "end completed a answer"},
		[]string{"started", `item message a ""`, `done message a "answer"`, `ended completed "answer" ""`},
	},
	"nothing after the end": {
		[]string{"end failed", "begin", "+a agentMessage", "~a x", "=a agentMessage x", "retry", "end completed"},
		[]string{"started", `ended failed "" ""`},
	},
	"an unknown status is no success": {
		[]string{"end somethingNew"},
		[]string{"started", `ended interrupted "" ""`},
	},
}

func TestTracker(t *testing.T) {
	for name, c := range trackerCases {
		t.Run(name, func(t *testing.T) { want(t, track(c.script...), c.want...) })
	}
}

// TestLastWordsAreThoseReadLast: an older message that is read only at the end is not the answer.
func TestLastWordsAreThoseReadLast(t *testing.T) {
	message := func(id, text string) wireItem { return wireItem{Type: typeAgentMessage, ID: id, Text: text} }
	k := newTracker("t")
	heard := message("b", "All done.")
	k.itemCompleted(&heard)
	updates := k.completed(&wireTurn{Status: statusCompleted}, []wireItem{message("a", "I'll look."), heard})
	if end, ok := updates[len(updates)-1].(handoff.TurnEnded); !ok || end.Text != "All done." {
		t.Errorf("ended with %+v", updates)
	}
}

func TestTurnErrors(t *testing.T) {
	tracker, more := newTracker("t"), "try later"
	updates := tracker.completed(&wireTurn{Status: statusFailed, Error: &wireError{Message: "no room", AdditionalDetails: &more}}, nil)
	want(t, []string{describe(updates[1])}, `ended failed "" "no room: try later"`)
}

// FuzzTracker: whatever order things come in, there is one beginning, one end, nothing after it, and every
// item that was announced is finished or withdrawn.
func FuzzTracker(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
	f.Fuzz(func(t *testing.T, steps []byte) {
		tracker := newTracker("t")
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
		types := []string{typeAgentMessage, typeReasoning, typeCommand, typeUserMessage}
		for i, b := range steps {
			id := fmt.Sprintf("i%d", b>>3&3)
			item := &wireItem{Type: types[b>>5&3], ID: id + types[b>>5&3]}
			switch b & 7 {
			case 0, 1:
				check(tracker.itemStarted(item))
			case 2, 3:
				check(tracker.delta(item.ID, "x", map[bool]handoff.DeltaKind{true: handoff.DeltaMessage, false: handoff.DeltaOutput}[item.spoken()]))
			case 4, 5:
				check(tracker.itemCompleted(item))
			case 6:
				check(tracker.retrying())
			case 7:
				if i%5 == 0 {
					check(tracker.completed(&wireTurn{Status: statusCompleted}, nil))
				}
			}
		}
		check(tracker.completed(&wireTurn{Status: statusInterrupted}, nil))
		if started != 1 || ended != 1 || len(open) > 0 {
			t.Fatalf("%d starts, %d ends, open %v", started, ended, open)
		}
	})
}

func TestSpool(t *testing.T) {
	var s spool
	s.put(handoff.Delta{ItemID: "a", Text: "one "}, handoff.Delta{ItemID: "a", Text: "two"}, handoff.Delta{ItemID: "b", Text: "x"})
	var got []string
	for u, ok := s.take(); ok; u, ok = s.take() {
		got = append(got, describe(u))
	}
	want(t, got, `delta a "one two"`, `delta b "x"`)
	if s.bytes != 0 {
		t.Errorf("%d bytes left", s.bytes)
	}
}

// TestSpoolDropsDeltasOnly: over the soft bound every delta goes, with all later ones of its item, and
// nothing else does.
func TestSpoolDropsDeltasOnly(t *testing.T) {
	var s spool
	for i := range spoolSoft / 2 {
		id := fmt.Sprint(i)
		s.put(handoff.ItemStarted{Item: handoff.Item{ID: id}}, handoff.Delta{ItemID: id, Text: "x"})
	}
	s.put(handoff.Delta{ItemID: "late", Text: "x"})
	s.put(handoff.ItemDone{Item: handoff.Item{ID: "0"}})
	s.put(handoff.Delta{ItemID: "1", Text: "has a hole before it"}, handoff.Delta{ItemID: "fresh", Text: "y"})
	s.put(handoff.Question{ID: "q"}, handoff.QuestionClosed{ID: "q"}, handoff.TurnEnded{})
	kinds := map[string]int{}
	for u, ok := s.take(); ok; u, ok = s.take() {
		kinds[fmt.Sprintf("%T", u)]++
		if d, isDelta := u.(handoff.Delta); isDelta && d.ItemID != "fresh" {
			t.Errorf("kept %+v", d)
		}
	}
	wantKinds := map[string]int{
		"handoff.ItemStarted": spoolSoft / 2, "handoff.ItemDone": 1, "handoff.Delta": 1,
		"handoff.Question": 1, "handoff.QuestionClosed": 1, "handoff.TurnEnded": 1,
	}
	if fmt.Sprint(kinds) != fmt.Sprint(wantKinds) || s.dropped != spoolSoft/2+2 || s.bytes != 0 {
		t.Errorf("kept %v, dropped %d, %d bytes left", kinds, s.dropped, s.bytes)
	}
}

func TestSpoolBursts(t *testing.T) {
	var s spool
	for i := range spoolHard {
		s.put(handoff.ItemDone{Item: handoff.Item{ID: fmt.Sprint(i)}})
	}
	if s.burst {
		t.Fatal("too early")
	}
	s.put(handoff.TurnEnded{})
	if _, ok := s.take(); ok || !s.burst {
		t.Error("kept on")
	}
	s.put(handoff.TurnEnded{})
	if _, ok := s.take(); ok {
		t.Error("goes on with a hole")
	}
}

// FuzzSpool: what comes out is what went in, without some deltas.
func FuzzSpool(f *testing.F) {
	f.Add([]byte("abcabcabc"), uint16(300))
	f.Fuzz(func(t *testing.T, steps []byte, size uint16) {
		var s spool
		var in, out []string
		keep := func(u handoff.Update) {
			if _, isDelta := u.(handoff.Delta); !isDelta {
				out = append(out, describe(u))
			}
		}
		for i, b := range steps {
			var u handoff.Update = handoff.Delta{ItemID: string('a' + b%3), Text: strings.Repeat("x", int(size))}
			switch {
			case b%7 == 0:
				u = handoff.ItemDone{Item: handoff.Item{ID: fmt.Sprint(i), Text: strings.Repeat("y", int(size))}}
			case b%11 == 0:
				if u, ok := s.take(); ok {
					keep(u)
				}
				continue
			}
			if s.put(u); b%7 == 0 {
				in = append(in, describe(u))
			}
			if s.burst {
				return
			}
			if s.bytes < 0 || s.bytes > spoolHardBytes || s.deltas < 0 || s.deltas > len(s.queue) {
				t.Fatalf("%d bytes, %d deltas", s.bytes, s.deltas)
			}
		}
		for u, ok := s.take(); ok; u, ok = s.take() {
			keep(u)
		}
		if !slices.Equal(in, out) || s.bytes != 0 {
			t.Fatalf("in %v\nout %v\n%d bytes left", in, out, s.bytes)
		}
	})
}
