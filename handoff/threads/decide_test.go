package threads

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func said(words ...string) []Item {
	var items []Item
	for _, w := range words {
		items = append(items, Item{JSON: json.RawMessage(`"` + w + `"`)})
	}
	return items
}

// A scene is a thread "t" of "me" with two finished turns, p (items 0 and 1) and q (item 2).
func scene() View {
	q := Turn{ID: "q", Thread: "t", Previous: "p", Status: Completed, Fence: 2, From: 2, Until: 3,
		Anchor: Anchor{Response: "r-q", Items: 3}}
	return View{Thread: Thread{ID: "t", Owner: "me", Items: 3, Tip: "q", Fence: 2}, After: q}
}

// older makes the step's After the turn before the tip.
func older(v View) View {
	v.After = Turn{ID: "p", Thread: "t", Status: Completed, Fence: 1, Until: 2, Anchor: Anchor{Response: "r-p", Items: 2}}
	return v
}

// busy has a turn run in the scene until its lease passes.
func busy(v View, until time.Duration) View {
	v.Active = Turn{ID: "x", Thread: "t", Previous: "q", Status: Running, Fence: 3, From: 3, Until: 4}
	v.Thread.Active, v.Thread.Fence, v.Thread.Items, v.Thread.Lease = "x", 3, 4, noon.Add(until)
	return v
}

// told puts a change in one line.
func told(c Change, err error) string {
	if err != nil {
		return string(handoff.CodeOf(err))
	}
	var parts []string
	if c.Same {
		parts = append(parts, "same")
	}
	if c.Forked {
		parts = append(parts, "forked")
	}
	if c.Drop {
		parts = append(parts, "drop")
	}
	for _, t := range c.Threads {
		parts = append(parts, fmt.Sprintf("thread %s:%d tip=%s active=%s fence=%d", t.ID, t.Items, t.Tip, t.Active, t.Fence))
		if t.Parent != "" {
			parts = append(parts, fmt.Sprintf("of %s[:%d]", t.Parent, t.ForkAt))
		}
	}
	for _, t := range c.Turns {
		parts = append(parts, fmt.Sprintf("turn %s/%s %s [%d:%d] after=%s anchor=%s", t.Thread, t.ID, t.Status, t.From,
			t.Until, t.Previous, t.Anchor.Response))
		if len(t.Steers)+len(t.Unheard) > 0 {
			parts = append(parts, fmt.Sprintf("waits %v unheard %q", t.Steers, t.Unheard))
		}
	}
	if len(c.Items) > 0 {
		parts = append(parts, fmt.Sprintf("+%d", len(c.Items)))
	}
	return strings.Join(parts, "; ")
}

func TestClaims(t *testing.T) {
	claim := func(after, copied string) Claim {
		return Claim{Owner: "me", Thread: "t", After: after, Turn: "n", Copy: copied, Items: said("hi"), At: noon}
	}
	again := scene()
	again.Turn = Turn{ID: "n", Thread: "t", Status: Running}
	copied := scene()
	copied.Turn, copied.Copy = Turn{ID: "n", Thread: "c", Status: Running}, Thread{ID: "c", Owner: "me"}
	stolen := scene()
	stolen.Copy = Thread{ID: "c", Owner: "you"}
	deep := older(scene())
	deep.Thread.Depth = maxDepth
	full := scene()
	full.Thread.Items = maxItems
	fresh := View{Thread: Thread{ID: "t", Owner: "me"}}
	stranger := claim("", "")
	stranger.Owner = "you"
	const goesOn = "thread t:4 tip=q active=n fence=3; turn t/n running [3:4] after=q anchor=r-q; +1"
	for _, c := range []struct {
		name string
		view View
		step Claim
		want string
	}{
		{"the first turn", fresh, claim("", ""),
			"thread t:1 tip= active=n fence=1; turn t/n running [0:1] after= anchor=; +1"},
		{"after the newest", scene(), claim("", ""), goesOn},
		{"after the tip by name", scene(), claim("q", "c"), goesOn},
		{"after an older turn", older(scene()), claim("p", "c"),
			"forked; thread c:3 tip=p active=n fence=1; of t[:2]; turn c/n running [2:3] after=p anchor=r-p; +1"},
		{"after an older turn without a copy", older(scene()), claim("p", ""), "busy"},
		{"a busy thread", busy(scene(), time.Second), claim("", ""), "busy"},
		{"a busy thread with a copy", busy(scene(), time.Second), claim("q", "c"),
			"forked; thread c:4 tip=q active=n fence=1; of t[:3]; turn c/n running [3:4] after=q anchor=r-q; +1"},
		{"a busy thread without any turn before", busy(fresh, time.Second), claim("", "c"),
			"forked; thread c:1 tip= active=n fence=1; turn c/n running [0:1] after= anchor=; +1"},
		{"after a lost turn", busy(scene(), 0), claim("", ""),
			"thread t:5 tip=x active=n fence=4; turn t/x interrupted [3:4] after=q anchor=; turn t/n running [4:5] after=x " +
				"anchor=; +1"},
		{"after a lost turn by name", busy(View{Thread: scene().Thread, After: busy(scene(), 0).Active}, 0), claim("x", "c"),
			"thread t:5 tip=x active=n fence=4; turn t/x interrupted [3:4] after=q anchor=; turn t/n running [4:5] after=x " +
				"anchor=; +1"},
		{"before a lost turn", busy(scene(), 0), claim("q", "c"),
			"forked; thread t:4 tip=x active= fence=3; thread c:4 tip=q active=n fence=1; of t[:3]; turn t/x interrupted " +
				"[3:4] after=q anchor=; turn c/n running [3:4] after=q anchor=r-q; +1"},
		{"after a turn that runs", busy(View{Thread: scene().Thread, After: busy(scene(), time.Second).Active}, time.Second),
			claim("x", "c"), "busy"},
		{"after a turn that is not there", View{Thread: scene().Thread}, claim("z", "c"), "not_found"},
		{"a thread that is not there", View{}, claim("", "c"), "session_gone"},
		{"somebody else's thread", scene(), stranger, "session_gone"},
		{"the same again", again, claim("", ""), "same"},
		{"the same again in its copy", copied, claim("q", "c"), "same; forked"},
		{"a copy whose id is taken", stolen, claim("q", "c"), "conflict"},
		{"a copy of too many copies", deep, claim("p", "c"), "too_large"},
		{"a thread with too many items", full, claim("", ""), "context_full"},
		{"nothing to do", scene(), Claim{Owner: "me", Thread: "t", Turn: "n", At: noon}, "internal"},
		{"no id", scene(), Claim{Owner: "me", Thread: "t", Items: said("hi"), At: noon}, "internal"},
		{"an id that is too long", scene(), claim(strings.Repeat("z", maxID+1), "c"), "malformed"},
	} {
		if got := told(Decide(c.view, c.step)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestWrites(t *testing.T) {
	mine := busy(scene(), time.Second)
	mine.Turn = mine.Active
	fenced := mine
	fenced.Thread.Fence = 4
	over := scene()
	over.Turn = Turn{ID: "x", Thread: "t", Status: Completed, Fence: 3}
	write := func(from int, items ...string) Append {
		return Append{Owner: "me", Thread: "t", Turn: "x", Fence: 3, At: noon, From: from, Items: said(items...)}
	}
	anchored := write(4, "a")
	anchored.Anchor = &Anchor{Response: "r-x", Items: 5}
	forked := mine
	forked.Turn.Forked = true
	undo := Undo{Owner: "me", Thread: "t", Turn: "x", Fence: 3}
	const grown = "thread t:6 tip=q active=x fence=3; turn t/x running [3:6] after=q anchor=; +2"
	for _, c := range []struct {
		name string
		view View
		step Step
		want string
	}{
		{"items", mine, write(4, "a", "b"), grown},
		{"an anchor", mine, anchored, "thread t:5 tip=q active=x fence=3; turn t/x running [3:5] after=q anchor=r-x; +1"},
		{"a lease", mine, write(0), "thread t:4 tip=q active=x fence=3; turn t/x running [3:4] after=q anchor="},
		{"items again", mine, write(3, "a"), "thread t:4 tip=q active=x fence=3; turn t/x running [3:4] after=q anchor="},
		{"items of another history", mine, write(9, "a"), "taken_over"},
		{"by an older claim", fenced, write(4, "a"), "taken_over"},
		{"after the end", over, write(3, "a"), "taken_over"},
		{"an end", mine, End{Append: write(4, "a"), Status: Completed, Text: "done"},
			"thread t:5 tip=x active= fence=3; turn t/x completed [3:5] after=q anchor=; +1"},
		{"an end again", over, End{Append: write(4, "a"), Status: Completed}, "same"},
		{"another end", over, End{Append: write(4, "a"), Status: Failed}, "taken_over"},
		{"an end by an older claim", fenced, End{Append: write(4), Status: Completed}, "taken_over"},
		{"an end that is none", mine, End{Append: write(4), Status: Running}, "internal"},
		{"undone", mine, undo, "drop; thread t:3 tip=q active= fence=3"},
		{"undone with its copy", forked, undo, "forked; drop"},
		{"undone by an older claim", fenced, undo, "taken_over"},
		{"undone again", scene(), undo, "same"},
		{"an item that is too large", mine, Append{Owner: "me", Thread: "t", Turn: "x", Fence: 3, At: noon, From: 4,
			Items: []Item{{JSON: make([]byte, MaxItem+1)}}}, "too_large"},
		{"a thread", View{}, Create{Owner: "me", Thread: "t", At: noon}, "thread t:0 tip= active= fence=0"},
		{"a thread again", scene(), Create{Owner: "me", Thread: "t", At: noon}, "same"},
		{"a copy at the tip", busy(scene(), time.Second), Fork{Owner: "me", Thread: "t", Copy: "c", At: noon},
			"forked; thread c:3 tip=q active= fence=0; of t[:3]"},
		{"a copy at a turn", older(scene()), Fork{Owner: "me", Thread: "t", After: "p", Copy: "c", At: noon},
			"forked; thread c:2 tip=p active= fence=0; of t[:2]"},
		{"a copy of what was lost", busy(scene(), 0), Fork{Owner: "me", Thread: "t", Copy: "c", At: noon},
			"forked; thread t:4 tip=x active= fence=3; thread c:4 tip=x active= fence=0; of t[:4]; turn t/x interrupted " +
				"[3:4] after=q anchor="},
		{"a copy of nothing", View{}, Fork{Owner: "me", Thread: "t", Copy: "c", At: noon}, "session_gone"},
	} {
		if got := told(Decide(c.view, c.step)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestSteers: what a turn took besides waits until its model gets it, or is unheard.
func TestSteers(t *testing.T) {
	mine := busy(scene(), time.Second)
	mine.Turn = mine.Active
	over := scene()
	over.Turn = Turn{ID: "x", Thread: "t", Status: Completed, Fence: 3}
	write := func(from int, items ...string) Append {
		return Append{Owner: "me", Thread: "t", Turn: "x", Fence: 3, At: noon, From: from, Items: said(items...)}
	}
	steered := mine
	steered.Turn.Steers, steered.Turn.Steered = []Steer{{1, "one"}, {2, "two"}}, 2
	crowded := mine
	for n := range MaxSteers {
		crowded.Turn.Steers = append(crowded.Turn.Steers, Steer{n + 1, "more"})
	}
	crowded.Turn.Steered = MaxSteers
	steer := func(n int, words string) Append {
		w := write(0)
		w.Steer = &Steer{n, words}
		return w
	}
	heard := write(4, "one")
	heard.Heard = 1
	lost := busy(scene(), 0)
	lost.Active.Steers = []Steer{{1, "one"}}
	const waits = "thread t:4 tip=q active=x fence=3; turn t/x running [3:4] after=q anchor=; waits "
	for _, c := range []struct {
		name string
		view View
		step Step
		want string
	}{
		{"a steer", mine, steer(1, "one"), waits + `[{1 one}] unheard []`},
		{"another steer", steered, steer(3, "three"), waits + `[{1 one} {2 two} {3 three}] unheard []`},
		{"a steer again", steered, steer(2, "two"), waits + `[{1 one} {2 two}] unheard []`},
		{"a steer too many", crowded, steer(MaxSteers+1, "more"), "overloaded"},
		{"a steer that is heard", steered, heard,
			`thread t:5 tip=q active=x fence=3; turn t/x running [3:5] after=q anchor=; waits [{2 two}] unheard []; +1`},
		{"a steer after the end", over, steer(1, "one"), "taken_over"},
		{"a steer without a number", mine, steer(0, "one"), "internal"},
		{"a steer that is too long", mine, steer(1, strings.Repeat("z", MaxWords+1)), "internal"},
		{"an end with steers", steered, End{Append: write(4), Status: Interrupted},
			`thread t:4 tip=x active= fence=3; turn t/x interrupted [3:4] after=q anchor=; waits [] unheard ["one" "two"]`},
		{"a copy of what was lost with a steer", lost, Fork{Owner: "me", Thread: "t", Copy: "c", At: noon},
			`forked; thread t:4 tip=x active= fence=3; thread c:4 tip=x active= fence=0; of t[:4]; turn t/x interrupted ` +
				`[3:4] after=q anchor=; waits [] unheard ["one"]`},
	} {
		if got := told(Decide(c.view, c.step)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
	if left := steered.Turn.Steers; len(left) != 2 || left[0].N != 1 {
		t.Errorf("a decision changed what it was shown: %v", left)
	}
}
