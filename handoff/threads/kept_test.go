package threads

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"switchboard/handoff"
)

// TestRefusedWrites: what does not fit what there is changes nothing.
func TestRefusedWrites(t *testing.T) {
	mine := busy(scene(), time.Second)
	mine.Turn = mine.Active
	change := func(v View, change func(*View)) View {
		change(&v)
		return v
	}
	write := Append{Owner: "me", Thread: "t", Turn: "x", Fence: 3, At: noon, From: 4, Items: said("a")}
	large := write
	large.Items = []Item{{JSON: make([]byte, MaxItem+1)}}
	timeless := write
	timeless.At = time.Time{}
	crowded := write
	crowded.From = maxItems
	fork := Fork{Owner: "me", Thread: "t", Copy: "c", At: noon}
	for _, c := range []struct {
		name string
		view View
		step Step
		want string
	}{
		{"a turn that ran elsewhere", change(mine, func(v *View) { v.Turn.Thread = "p" }), write, "taken_over"},
		{"a turn that is not the active one", change(mine, func(v *View) { v.Thread.Active = "y" }), write, "taken_over"},
		{"too many items", change(mine, func(v *View) { v.Thread.Items = maxItems }), crowded, "context_full"},
		{"an end again by an older claim", change(scene(),
			func(v *View) { v.Turn = Turn{ID: "x", Thread: "t", Status: Completed, Fence: 4} }),
			End{Append: write, Status: Completed}, "taken_over"},
		{"an end with an item that is too large", mine, End{Append: large, Status: Completed}, "too_large"},
		{"without a time", mine, timeless, "internal"},
		{"a copy again", change(scene(), func(v *View) { v.Copy = Thread{ID: "c", Owner: "me"} }), fork, "same; forked"},
		{"a copy whose id somebody else has", change(scene(), func(v *View) { v.Copy = Thread{ID: "c", Owner: "you"} }), fork,
			"conflict"},
	} {
		if got := told(Decide(c.view, c.step)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
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

// TestClaimIsKept: whose a claim is, until when it counts, and a title that the thread keeps once it has one.
func TestClaimIsKept(t *testing.T) {
	claim := Claim{Owner: "me", Thread: "t", Turn: "n", Key: "mine", Items: said("hi"), Title: "new", At: noon}
	for had, want := range map[string]string{"": "new", "old": "old"} {
		v := scene()
		v.Thread.Title = had
		c := decided(t, v, claim)
		if c.Thread.Title != want || !c.Thread.Lease.Equal(noon.Add(Lease)) || !c.Thread.Updated.Equal(noon) {
			t.Errorf("the thread is %+v", c.Thread)
		}
		if c.Turn.Claim != "mine" || !c.Turn.Started.Equal(noon) || c.Items[0].Turn != "n" || claim.Items[0].Turn != "" {
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
	v := busy(scene(), time.Second)
	v.Turn = v.Active
	later := noon.Add(time.Minute)
	write := Append{Owner: "me", Thread: "t", Turn: "x", Fence: 3, At: later}
	if c := decided(t, v, write); !c.Thread.Lease.Equal(later.Add(Lease)) || !c.Thread.Updated.Equal(later) {
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
	lost := busy(scene(), -time.Minute)
	c = decided(t, lost, Fork{Owner: "me", Thread: "t", Copy: "c", At: noon})
	if got := c.Turns[0]; !got.Ended.Equal(lost.Thread.Lease) || got.Detail == "" {
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

// TestSee: of its ancestors a copy sees what was before it, and nothing later; a claim that is made again finds its
// turn in the copy.
func TestSee(t *testing.T) {
	for _, c := range []struct {
		step                       Step
		after, active, turn, other string
	}{
		{Claim{Thread: "t", After: "a", Turn: "n"}, "t/a", "/", "/", ""},
		{Claim{Thread: "t", Turn: "c"}, "t/c", "/", "t/c", ""},
		{Claim{Thread: "u", After: "b", Turn: "n"}, "t/b", "/", "/", ""},
		{Claim{Thread: "u", After: "c", Turn: "n"}, "/", "/", "/", ""}, // later than the copy
		{Claim{Thread: "w", After: "a", Turn: "n"}, "t/a", "w/e", "/", ""},
		{Claim{Thread: "w", After: "c", Turn: "n"}, "/", "w/e", "/", ""},
		{Claim{Thread: "w", Turn: "n"}, "u/d", "w/e", "/", ""}, // its tip is an ancestor's turn
		{Claim{Thread: "t", After: "b", Turn: "d", Copy: "u"}, "t/b", "/", "u/d", "u"},
		{Fork{Thread: "w", Copy: "u"}, "u/d", "w/e", "/", "u"},
		{Append{Thread: "w", Turn: "e"}, "u/d", "w/e", "w/e", ""},
		{Append{Thread: "w", Turn: "d"}, "u/d", "w/e", "/", ""}, // an ancestor's is not its own
		{Undo{Thread: "w", Turn: "e"}, "u/d", "w/e", "w/e", ""},
		{Claim{Thread: "nobody", After: "a", Turn: "n", Copy: "u"}, "/", "/", "/", ""},
	} {
		v, err := See(family{}, c.step)
		name := func(turn Turn) string { return turn.Thread + "/" + turn.ID }
		if got := []string{name(v.After), name(v.Active), name(v.Turn), v.Copy.ID}; err != nil ||
			!reflect.DeepEqual(got, []string{c.after, c.active, c.turn, c.other}) {
			t.Errorf("%+v sees %v, %v", c.step, got, err)
		}
	}
}

// TestAdopt: what is adopted has no source any more, and nothing that came after it, also when it goes on.
func TestAdopt(t *testing.T) {
	source := NewMemory()
	step := func(s Step) Result {
		t.Helper()
		r, err := source.Advance(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	step(Create{Owner: "me", Thread: "t", At: noon})
	for _, id := range []string{"a", "b"} {
		r := step(Claim{Owner: "me", Thread: "t", Turn: id, Items: said(id), At: noon})
		step(End{Append: Append{Owner: "me", Thread: "t", Turn: id, Fence: r.Turn.Fence, At: noon}, Status: Completed})
	}
	record, err := source.Read(t.Context(), "me", "t")
	if err != nil {
		t.Fatal(err)
	}
	m := NewMemory()
	if _, err := m.Adopt(record, Fork{Owner: "me", Thread: "t", After: "a", Copy: "c", At: noon}); err != nil {
		t.Fatal(err)
	}
	got, err := m.Read(t.Context(), "me", "c")
	if err != nil || len(got.Turns) != 1 || got.Turns[0].ID != "a" || got.Turns[0].Thread != "c" || len(got.Items) != 1 ||
		got.Thread.Parent != "" || got.Thread.Items != 1 {
		t.Errorf("it has %+v, %v", got, err)
	}
	r, err := m.Advance(t.Context(), Claim{Owner: "me", Thread: "c", Turn: "n", Items: said("n"), At: noon})
	if err != nil || r.Turn.From != 1 || r.Turn.Previous != "a" {
		t.Errorf("it goes on with %+v, %v", r.Turn, err)
	}
	var words, turns []string
	if got, err = m.Read(t.Context(), "me", "c"); err != nil {
		t.Fatal(err)
	}
	for _, it := range got.Items {
		words = append(words, string(it.JSON))
	}
	for _, turn := range got.Turns {
		turns = append(turns, turn.ID)
	}
	if !reflect.DeepEqual(words, []string{`"a"`, `"n"`}) || !reflect.DeepEqual(turns, []string{"a", "n"}) {
		t.Errorf("then it has %v of %v", words, turns)
	}
	m.Drop("c")
	if _, err := m.Read(t.Context(), "me", "c"); handoff.CodeOf(err) != handoff.CodeSessionGone {
		t.Errorf("dropped, it is %v", err)
	}
}
