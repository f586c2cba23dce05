package threads

import (
	"cmp"
	"slices"

	"switchboard/handoff"
)

// A View is the part of a store that a step depends on. A zero value means that the store has no such row.
type View struct {
	Thread Thread // of the step
	After  Turn   // the step's After ("": the tip), of the thread or of an ancestor before the fork
	Active Turn   // the active turn of the thread
	Turn   Turn   // the step's own turn
	Copy   Thread // the thread with the id of the copy
}

// Rows reads rows of a store. It returns a zero value if the store has no such row.
type Rows interface {
	Thread(id string) (Thread, error)
	Turn(thread, id string) (Turn, error) // a turn that ran in the thread itself
}

// ThreadOf returns the id of a step's thread.
func ThreadOf(s Step) string { return s.about().thread }

// See reads the view of a step, and nothing else.
func See(rows Rows, s Step) (v View, err error) {
	a := s.about()
	if v.Thread, err = rows.Thread(a.thread); err != nil || v.Thread.ID == "" {
		return v, err
	}
	if v.After, err = visible(rows, v.Thread, cmp.Or(a.after, v.Thread.Tip)); err != nil {
		return v, err
	}
	if v.Active, err = turnOf(rows, a.thread, v.Thread.Active); err != nil {
		return v, err
	}
	if v.Turn, err = turnOf(rows, a.thread, a.turn); err == nil && a.copied != "" {
		v.Copy, err = rows.Thread(a.copied)
	}
	return v, err
}

// turnOf reads a turn that ran in the thread itself; "" has none.
func turnOf(rows Rows, thread, id string) (Turn, error) {
	if id == "" {
		return Turn{}, nil
	}
	return rows.Turn(thread, id)
}

// visible reads a turn of the thread, or of an ancestor before the fork.
func visible(rows Rows, t Thread, id string) (Turn, error) {
	for seen := t.Items; id != ""; {
		turn, err := rows.Turn(t.ID, id)
		if err != nil || turn.ID != "" && turn.Until <= seen {
			return turn, err
		}
		if t.Parent == "" {
			break
		}
		seen = min(seen, t.ForkAt)
		if t, err = rows.Thread(t.Parent); err != nil {
			return Turn{}, err
		}
	}
	return Turn{}, nil
}

// A Change is what a store writes: all of it or nothing, and only if the rows of the view have not changed.
type Change struct {
	Result
	Threads []Thread // new or changed
	Turns   []Turn   // new or changed
	Items   []Item   // appended to Result.Thread, which then has Result.Thread.Items of them
}

// Decide returns the change of a step. The error is nil if the step is valid, or a repetition.
func Decide(v View, s Step) (Change, error) {
	if err := check(s); err != nil {
		return Change{}, err
	}
	if v.Thread.ID != "" && v.Thread.Owner != s.about().owner {
		v = View{} // somebody else's thread looks like none
	}
	if c, ok := s.(Create); ok {
		if v.Thread.ID != "" {
			return Change{Result: Result{Thread: v.Thread, Same: true}}, nil
		}
		t := Thread{ID: c.Thread, Owner: c.Owner, Title: c.Title, Dir: c.Dir, Created: c.At, Updated: c.At}
		return Change{Result: Result{Thread: t}, Threads: []Thread{t}}, nil
	}
	if v.Thread.ID == "" {
		return Change{}, handoff.Fault(handoff.CodeSessionGone, "", "there is no such thread")
	}
	switch s := s.(type) {
	case Fork:
		return v.fork(s)
	case Claim:
		return v.claim(s)
	case Append:
		return v.append(s)
	case End:
		return v.end(s)
	}
	return Change{}, handoff.Fault(handoff.CodeInternal, "", "a step of threads that nobody knows")
}

// without returns the thread with a lost active turn ended, and that turn, if there is one.
func (v View) without(turn string) (Thread, []Turn) {
	t := v.Thread
	if t.Active == "" || t.Active != turn {
		return t, nil
	}
	lost := v.Active
	lost.Status, lost.Until, lost.Ended, lost.Detail = Interrupted, t.Items, t.Updated, "whoever ran it was lost"
	lost.Unheard, lost.Steers = lost.Left(), nil
	t.Tip, t.Active = t.Active, ""
	return t, []Turn{lost}
}

func (v View) fork(s Fork) (Change, error) {
	if v.Copy.ID != "" {
		if v.Copy.Owner != v.Thread.Owner {
			return Change{}, handoff.Fault(handoff.CodeConflict, "", "the id of the copy is taken")
		}
		return Change{Result: Result{Thread: v.Copy, Forked: true, Same: true}}, nil
	}
	t, lost := v.without(s.Lost)
	after := v.After
	if len(lost) == 1 && (s.After == "" || s.After == lost[0].ID) {
		after = lost[0]
	}
	switch {
	case s.After != "" && after.ID == "":
		return Change{}, handoff.Fault(handoff.CodeNotFound, "such turn", "previous turn "+s.After+" is not there")
	case s.After != "" && after.Status == Running:
		return Change{}, handoff.Fault(handoff.CodeBusy, "", "the previous turn still runs")
	case after.ID != "" && t.Depth == maxDepth:
		return Change{}, handoff.Fault(handoff.CodeTooLarge, "this has been copied too often", "")
	}
	c := Thread{ID: s.Copy, Owner: t.Owner, Title: t.Title, Dir: t.Dir, Created: s.At, Updated: s.At}
	if after.ID != "" {
		c.Tip, c.Parent, c.ForkAt, c.Items = after.ID, after.Thread, after.Until, after.Until
		c.Depth = t.Depth + 1 // if the turn is of an ancestor, it is less; this is an upper bound
	}
	made := Change{Result: Result{Thread: c, Forked: true}, Threads: []Thread{c}, Turns: lost}
	if len(lost) > 0 { // so that the lost runner can write no more
		made.Threads = []Thread{t, c}
	}
	return made, nil
}

func (v View) claim(s Claim) (Change, error) {
	if v.Turn.ID != "" {
		return Change{Result: Result{Thread: v.Thread, Turn: v.Turn, Same: true}}, nil
	}
	t, turns := v.without(s.Lost)
	after := v.After
	switch {
	case t.Active != "":
		return Change{}, handoff.Fault(handoff.CodeBusy, "", "it runs a turn")
	case t.Items+len(s.Items) > maxItems:
		return Change{}, errFull()
	case len(turns) == 1:
		after = turns[0]
	}
	turn := Turn{
		ID: s.Turn, Thread: t.ID, Previous: after.ID, Claim: s.Key, Status: Running, Fence: t.Fence + 1, From: t.Items,
		Until: t.Items + len(s.Items), Anchor: after.Anchor, Started: s.At,
	}
	t.Active, t.Fence, t.Items, t.Updated = turn.ID, turn.Fence, turn.Until, s.At
	t.Title = cmp.Or(t.Title, s.Title)
	return Change{Result: Result{Thread: t, Turn: turn}, Threads: []Thread{t}, Turns: append(turns, turn),
		Items: of(turn, s.Items)}, nil
}

// errFull is the error of a step after which a thread would have too many items.
func errFull() error {
	return handoff.Fault(handoff.CodeContextFull, "", "the thread has too many items")
}

// of returns the items with their turn set.
func of(turn Turn, items []Item) []Item {
	items = slices.Clone(items)
	for i := range items {
		items[i].Turn = turn.ID
	}
	return items
}

func (v View) append(s Append) (Change, error) {
	t, turn, items := v.Thread, v.Turn, s.Items
	switch {
	case turn.ID == "", turn.Thread != t.ID, t.Active != s.Turn, t.Fence != s.Fence, turn.Fence != s.Fence:
		return Change{}, handoff.Fault(handoff.CodeTakenOver, "", "the turn is over, or somebody else's by now")
	case t.Items == s.From, len(items) == 0:
	case t.Items == s.From+len(items):
		items = nil // written before
	default:
		return Change{}, handoff.Fault(handoff.CodeTakenOver, "", "the thread has other items")
	}
	if t.Items += len(items); t.Items > maxItems {
		return Change{}, errFull()
	}
	if s.Anchor != nil {
		turn.Anchor = *s.Anchor
	}
	turn.Steers = slices.DeleteFunc(slices.Clone(turn.Steers), func(w Steer) bool { return w.N <= s.Heard })
	if s.Steer != nil && s.Steer.N > turn.Steered {
		if len(turn.Steers) == MaxSteers {
			return Change{}, handoff.Fault(handoff.CodeOverloaded, "", "too much waits for the model already")
		}
		turn.Steers, turn.Steered = append(turn.Steers, *s.Steer), s.Steer.N
	}
	turn.Until = t.Items
	t.Updated = s.At
	return Change{Result: Result{Thread: t, Turn: turn}, Threads: []Thread{t}, Turns: []Turn{turn},
		Items: of(turn, items)}, nil
}

func (v View) end(s End) (Change, error) {
	if v.Turn.ID != "" && v.Turn.Thread == v.Thread.ID && v.Turn.Fence == s.Fence && v.Turn.Status == s.Status {
		return Change{Result: Result{Thread: v.Thread, Turn: v.Turn, Same: true}}, nil
	}
	c, err := v.append(s.Append)
	if err != nil {
		return Change{}, err
	}
	c.Thread.Tip, c.Thread.Active = c.Turn.ID, ""
	c.Turn.Status, c.Turn.Ended, c.Turn.Code, c.Turn.Detail, c.Turn.Text, c.Turn.Usage = s.Status, s.At, s.Code, s.Detail,
		s.Text, s.Usage
	c.Turn.Unheard, c.Turn.Steers = c.Turn.Left(), nil
	c.Threads, c.Turns = []Thread{c.Thread}, []Turn{c.Turn}
	return c, nil
}
