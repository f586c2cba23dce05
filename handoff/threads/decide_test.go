package threads

import (
	"encoding/json"
	"fmt"
	"reflect"
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

// busy has a turn run in the scene.
func busy(v View) View {
	v.Active = Turn{ID: "x", Thread: "t", Previous: "q", Status: Running, Fence: 3, From: 3, Until: 4}
	v.Thread.Active, v.Thread.Fence, v.Thread.Items, v.Thread.Updated = "x", 3, 4, noon.Add(-time.Minute)
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

func claim(change func(*Claim)) Claim {
	c := Claim{Owner: "me", Thread: "t", Turn: "n", Items: said("hi"), At: noon}
	change(&c)
	return c
}

func asIs(*Claim) {}

func after(c *Claim) { c.Lost = "x" }

// TestClaims: of any number of claims one goes on, after the newest turn, and the others are refused.
func TestClaims(t *testing.T) {
	again := scene()
	again.Turn = Turn{ID: "n", Thread: "t", Status: Running}
	full := scene()
	full.Thread.Items = maxItems
	for _, c := range []struct {
		name string
		view View
		step Claim
		want string
	}{
		{"the first turn", View{Thread: Thread{ID: "t", Owner: "me"}}, claim(asIs),
			"thread t:1 tip= active=n fence=1; turn t/n running [0:1] after= anchor=; +1"},
		{"after the newest", scene(), claim(asIs),
			"thread t:4 tip=q active=n fence=3; turn t/n running [3:4] after=q anchor=r-q; +1"},
		{"a busy thread", busy(scene()), claim(asIs), "busy"},
		{"a thread that is busy with another turn than the lost one", busy(scene()), claim(func(c *Claim) { c.Lost = "q" }), "busy"},
		{"after what was lost and ended since", scene(), claim(after),
			"thread t:4 tip=q active=n fence=3; turn t/n running [3:4] after=q anchor=r-q; +1"},
		{"after a lost turn", busy(scene()), claim(after),
			"thread t:5 tip=x active=n fence=4; turn t/x interrupted [3:4] after=q anchor=; turn t/n running [4:5] after=x " +
				"anchor=; +1"},
		{"a thread that is not there", View{}, claim(asIs), "session_gone"},
		{"somebody else's thread", scene(), claim(func(c *Claim) { c.Owner = "you" }), "session_gone"},
		{"the same again", again, claim(asIs), "same"},
		{"a thread with too many items", full, claim(asIs), "context_full"},
		{"nothing to do", scene(), claim(func(c *Claim) { c.Items = nil }), "internal"},
		{"no id", scene(), claim(func(c *Claim) { c.Turn = "" }), "internal"},
		{"an id that is too long", scene(), claim(func(c *Claim) { c.Turn = strings.Repeat("z", maxID+1) }), "malformed"},
	} {
		if got := told(Decide(c.view, c.step)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func changed(v View, change func(*View)) View {
	change(&v)
	return v
}

// running is the view of who runs the turn x in the scene.
func running() View {
	return changed(busy(scene()), func(v *View) { v.Turn = v.Active })
}

// TestSteps: what a writer may do, and what does not fit what there is changes nothing. Steers wait until the model
// gets them, or are unheard.
func TestSteps(t *testing.T) {
	mine := running()
	fenced := changed(mine, func(v *View) { v.Thread.Fence = 4 })
	over := changed(scene(), func(v *View) { v.Turn = Turn{ID: "x", Thread: "t", Status: Completed, Fence: 3} })
	steered := changed(mine, func(v *View) { v.Turn.Steers, v.Turn.Steered = []Steer{{1, "one"}, {2, "two"}}, 2 })
	crowded := changed(mine, func(v *View) {
		for n := range MaxSteers {
			v.Turn.Steers, v.Turn.Steered = append(v.Turn.Steers, Steer{n + 1, "more"}), n+1
		}
	})
	write := func(from int, items ...string) Append {
		return Append{Owner: "me", Thread: "t", Turn: "x", Fence: 3, At: noon, From: from, Items: said(items...)}
	}
	steer := func(n int, words string) Append {
		w := write(0)
		w.Steer = &Steer{n, words}
		return w
	}
	anchored, heard, large, timeless := write(4, "a"), write(4, "one"), write(4, "a"), write(4, "a")
	anchored.Anchor = &Anchor{Response: "r-x", Items: 5}
	heard.Heard = 1
	large.Items = []Item{{JSON: make([]byte, MaxItem+1)}}
	timeless.At = time.Time{}
	const grown = "thread t:6 tip=q active=x fence=3; turn t/x running [3:6] after=q anchor=; +2"
	const stays = "thread t:4 tip=q active=x fence=3; turn t/x running [3:4] after=q anchor="
	for _, c := range []struct {
		name string
		view View
		step Step
		want string
	}{
		{"items", mine, write(4, "a", "b"), grown},
		{"an anchor", mine, anchored, "thread t:5 tip=q active=x fence=3; turn t/x running [3:5] after=q anchor=r-x; +1"},
		{"nothing", mine, write(0), stays},
		{"items again", mine, write(3, "a"), stays},
		{"items of another history", mine, write(9, "a"), "taken_over"},
		{"by an older claim", fenced, write(4, "a"), "taken_over"},
		{"after the end", over, write(3, "a"), "taken_over"},
		{"a turn that ran elsewhere", changed(mine, func(v *View) { v.Turn.Thread = "p" }), write(4, "a"), "taken_over"},
		{"a turn that is not the active one", changed(mine, func(v *View) { v.Thread.Active = "y" }), write(4, "a"),
			"taken_over"},
		{"too many items", changed(mine, func(v *View) { v.Thread.Items = maxItems }), write(maxItems, "a"), "context_full"},
		{"an item that is too large", mine, large, "too_large"},
		{"without a time", mine, timeless, "internal"},

		{"an end", mine, End{Append: write(4, "a"), Status: Completed, Text: "done"},
			"thread t:5 tip=x active= fence=3; turn t/x completed [3:5] after=q anchor=; +1"},
		{"an end again", over, End{Append: write(4, "a"), Status: Completed}, "same"},
		{"an end again by an older claim", changed(over, func(v *View) { v.Turn.Fence = 4 }),
			End{Append: write(4, "a"), Status: Completed}, "taken_over"},
		{"another end", over, End{Append: write(4, "a"), Status: Failed}, "taken_over"},
		{"an end by an older claim", fenced, End{Append: write(4), Status: Completed}, "taken_over"},
		{"an end that is none", mine, End{Append: write(4), Status: Running}, "internal"},
		{"an end with an item that is too large", mine, End{Append: large, Status: Completed}, "too_large"},

		{"a thread", View{}, Create{Owner: "me", Thread: "t", At: noon}, "thread t:0 tip= active= fence=0"},
		{"a thread again", scene(), Create{Owner: "me", Thread: "t", At: noon}, "same"},

		{"a steer", mine, steer(1, "one"), stays + `; waits [{1 one}] unheard []`},
		{"another steer", steered, steer(3, "three"), stays + `; waits [{1 one} {2 two} {3 three}] unheard []`},
		{"a steer again", steered, steer(2, "two"), stays + `; waits [{1 one} {2 two}] unheard []`},
		{"a steer too many", crowded, steer(MaxSteers+1, "more"), "overloaded"},
		{"a steer that is heard", steered, heard,
			`thread t:5 tip=q active=x fence=3; turn t/x running [3:5] after=q anchor=; waits [{2 two}] unheard []; +1`},
		{"a steer after the end", over, steer(1, "one"), "taken_over"},
		{"a steer without a number", mine, steer(0, "one"), "internal"},
		{"a steer that is too long", mine, steer(1, strings.Repeat("z", MaxWords+1)), "internal"},
		{"an end with steers", steered, End{Append: write(4), Status: Interrupted},
			`thread t:4 tip=x active= fence=3; turn t/x interrupted [3:4] after=q anchor=; waits [] unheard ["one" "two"]`},
	} {
		if got := told(Decide(c.view, c.step)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
	if left := steered.Turn.Steers; len(left) != 2 || left[0].N != 1 {
		t.Errorf("a decision changed what it was shown: %v", left)
	}
}

// TestCopies: a copy has what was before a turn that has ended, or was lost.
func TestCopies(t *testing.T) {
	fork := Fork{Owner: "me", Thread: "t", Copy: "c", At: noon}
	after := func(id string) Fork { f := fork; f.After = id; return f }
	losing := func(f Fork) Fork { f.Lost = "x"; return f }
	lost := busy(scene())
	lost.Active.Steers = []Steer{{1, "one"}}
	const copied = "forked; thread t:4 tip=x active= fence=3; thread c:4 tip=x active= fence=0; of t[:4]; turn t/x " +
		"interrupted [3:4] after=q anchor="
	for _, c := range []struct {
		name string
		view View
		step Fork
		want string
	}{
		{"a copy at the tip", busy(scene()), fork, "forked; thread c:3 tip=q active= fence=0; of t[:3]"},
		{"a copy at a turn", older(scene()), after("p"), "forked; thread c:2 tip=p active= fence=0; of t[:2]"},
		{"a copy of what was lost", busy(scene()), losing(fork), copied},
		{"a copy of what was lost, by its name", busy(View{Thread: scene().Thread, After: busy(scene()).Active}),
			losing(after("x")), copied},
		{"a copy before what was lost", busy(older(scene())), losing(after("p")), "forked; thread t:4 tip=x active= fence=3; " +
			"thread c:2 tip=p active= fence=0; of t[:2]; turn t/x interrupted [3:4] after=q anchor="},
		{"a copy at a turn that runs", busy(View{Thread: scene().Thread, After: running().Active}), after("x"),
			"busy"},
		{"a copy at a turn that is not there", View{Thread: scene().Thread}, after("z"), "not_found"},
		{"a copy of nothing", View{}, fork, "session_gone"},
		{"a copy of too many copies", changed(scene(), func(v *View) { v.Thread.Depth = maxDepth }), fork, "too_large"},
		{"a copy again", changed(scene(), func(v *View) { v.Copy = Thread{ID: "c", Owner: "me"} }), fork, "same; forked"},
		{"a copy whose id somebody else has", changed(scene(), func(v *View) { v.Copy = Thread{ID: "c", Owner: "you"} }),
			fork, "conflict"},
		{"a copy without an id", scene(), Fork{Owner: "me", Thread: "t", At: noon}, "internal"},
		{"a copy of what was lost with a steer", lost, losing(fork), copied + `; waits [] unheard ["one"]`},
	} {
		if got := told(Decide(c.view, c.step)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// decided is a step that is made.
func decided(t *testing.T, v View, s Step) Change {
	t.Helper()
	c, err := Decide(v, s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestClaimIsKept: whose a claim is, and a title that the thread keeps once it has one.
func TestClaimIsKept(t *testing.T) {
	step := claim(func(c *Claim) { c.Key, c.Title = "mine", "new" })
	for had, want := range map[string]string{"": "new", "old": "old"} {
		v := scene()
		v.Thread.Title = had
		c := decided(t, v, step)
		if c.Thread.Title != want || !c.Thread.Updated.Equal(noon) {
			t.Errorf("the thread is %+v", c.Thread)
		}
		if c.Turn.Claim != "mine" || !c.Turn.Started.Equal(noon) || c.Items[0].Turn != "n" || step.Items[0].Turn != "" {
			t.Errorf("the turn is %+v, its items %+v", c.Turn, c.Items)
		}
		if c.Thread.Newest() != "n" || v.Thread.Newest() != "q" {
			t.Errorf("the newest is %q, and was %q", c.Thread.Newest(), v.Thread.Newest())
		}
	}
}

// TestCopyIsKept: a copy reads from where the turn ran, and looks like what it was copied from.
func TestCopyIsKept(t *testing.T) {
	v := older(scene())
	v.After.Thread = "s" // an ancestor
	v.Thread.Title, v.Thread.Dir = "title", "/work"
	c := decided(t, v, Fork{Owner: "me", Thread: "t", After: "p", Copy: "c", At: noon})
	want := Thread{ID: "c", Owner: "me", Title: "title", Dir: "/work", Parent: "s", ForkAt: 2, Depth: 1, Items: 2,
		Tip: "p", Created: noon, Updated: noon}
	if c.Thread != want {
		t.Errorf("it is %+v", c.Thread)
	}
}

// TestEndIsKept: all that is told of a write and of an end, and of one whose runner was lost when that was.
func TestEndIsKept(t *testing.T) {
	v := busy(scene())
	v.Turn = v.Active
	later := noon.Add(time.Minute)
	write := Append{Owner: "me", Thread: "t", Turn: "x", Fence: 3, At: later}
	if c := decided(t, v, write); !c.Thread.Updated.Equal(later) {
		t.Errorf("after a write the thread is %+v", c.Thread)
	}
	used := json.RawMessage(`{"input_tokens":1}`)
	c := decided(t, v, End{Append: write, Status: Failed, Code: "agent_failed", Detail: "broke", Text: "half",
		Usage: used})
	want := v.Active
	want.Status, want.Ended, want.Code, want.Detail, want.Text, want.Usage = Failed, later, "agent_failed", "broke",
		"half", used
	if !reflect.DeepEqual(c.Turn, want) || len(c.Turns) != 1 || !reflect.DeepEqual(c.Turns[0], want) {
		t.Errorf("got  %+v\nwant %+v", c.Turn, want)
	}
	write.Steer = &Steer{N: 7, Words: "more"}
	if c := decided(t, v, write); c.Turn.Steered != 7 {
		t.Errorf("the newest steer is %d", c.Turn.Steered)
	}
	lost := busy(scene())
	c = decided(t, lost, Fork{Owner: "me", Thread: "t", Lost: "x", Copy: "c", At: noon})
	if got := c.Turns[0]; !got.Ended.Equal(lost.Thread.Updated) || got.Detail == "" {
		t.Errorf("lost %+v", got)
	}
}

// A family is a thread with its copies: t has the turns a, b and c, u goes on from b with d, w from d with e.
type family struct{}

func (family) Thread(id string) (Thread, error) {
	return map[string]Thread{
		"t": {ID: "t", Owner: "me", Items: 6, Tip: "c"},
		"u": {ID: "u", Owner: "me", Parent: "t", ForkAt: 4, Depth: 1, Items: 6, Tip: "d"},
		"w": {ID: "w", Owner: "me", Parent: "u", ForkAt: 6, Depth: 2, Items: 8, Tip: "d", Active: "e"},
	}[id], nil
}

func (family) Turn(thread, id string) (Turn, error) {
	return map[string]Turn{
		"t a": {ID: "a", Thread: "t", Until: 2}, "t b": {ID: "b", Thread: "t", Until: 4},
		"t c": {ID: "c", Thread: "t", Until: 6},
		"u d": {ID: "d", Thread: "u", Until: 6}, "w e": {ID: "e", Thread: "w", Until: 8},
	}[thread+" "+id], nil
}

// TestSee: of its ancestors a copy sees what was before it, and nothing later.
func TestSee(t *testing.T) {
	for _, c := range []struct {
		step                       Step
		after, active, turn, other string
	}{
		{Fork{Thread: "t", After: "a"}, "t/a", "/", "/", ""},
		{Claim{Thread: "t", Turn: "c"}, "t/c", "/", "t/c", ""},
		{Fork{Thread: "u", After: "b"}, "t/b", "/", "/", ""},
		{Fork{Thread: "u", After: "c"}, "/", "/", "/", ""}, // later than the copy
		{Fork{Thread: "w", After: "a"}, "t/a", "w/e", "/", ""},
		{Fork{Thread: "w", After: "c"}, "/", "w/e", "/", ""},
		{Claim{Thread: "w", Turn: "n"}, "u/d", "w/e", "/", ""}, // its tip is an ancestor's turn
		{Fork{Thread: "w", Copy: "u"}, "u/d", "w/e", "/", "u"},
		{Append{Thread: "w", Turn: "e"}, "u/d", "w/e", "w/e", ""},
		{End{Append: Append{Thread: "w", Turn: "d"}}, "u/d", "w/e", "/", ""}, // an ancestor's is not its own
		{Fork{Thread: "nobody", After: "a", Copy: "u"}, "/", "/", "/", ""},
	} {
		v, err := See(family{}, c.step)
		name := func(turn Turn) string { return turn.Thread + "/" + turn.ID }
		if got := []string{name(v.After), name(v.Active), name(v.Turn), v.Copy.ID}; err != nil ||
			!reflect.DeepEqual(got, []string{c.after, c.active, c.turn, c.other}) {
			t.Errorf("%+v sees %v, %v", c.step, got, err)
		}
	}
}

// TestAdopt: what is adopted has no source any more, and nothing that came after it, also when it goes on. The source
// stays as it was.
func TestAdopt(t *testing.T) {
	source := Record{
		Thread: Thread{ID: "t", Owner: "me", Parent: "s", ForkAt: 1, Depth: 1, Items: 2, Tip: "b"}, Items: said("a", "b"),
		Turns: []Turn{{ID: "a", Thread: "s", Status: Completed, Until: 1}, {ID: "b", Thread: "t", Status: Completed, From: 1,
			Until: 2}},
	}
	m := NewMemory()
	_, err := m.Adopt(source, Fork{Owner: "me", Thread: "t", After: "a", Copy: "c", At: noon})
	if err == nil {
		_, err = m.Advance(t.Context(), Claim{Owner: "me", Thread: "c", Turn: "n", Items: said("n"), At: noon})
	}
	got, unread := m.Read(t.Context(), "me", "c")
	if err != nil || unread != nil || len(got.Turns) != 2 || got.Turns[0].Thread != "c" || got.Turns[1].Previous != "a" ||
		got.Turns[1].From != 1 || got.Thread.Parent != "" || !reflect.DeepEqual(got.Items, append(said("a"), Item{Turn: "n",
		JSON: said("n")[0].JSON})) {
		t.Errorf("it has %+v, %v, %v", got, err, unread)
	}
	if string(source.Items[1].JSON) != `"b"` || source.Turns[0].Thread != "s" {
		t.Errorf("the source became %+v", source)
	}
	m.Drop("c")
	if _, err := m.Read(t.Context(), "me", "c"); handoff.CodeOf(err) != handoff.CodeSessionGone {
		t.Errorf("dropped, it is %v", err)
	}
}
