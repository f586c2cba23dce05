package threads

import (
	"cmp"
	"slices"
	"time"

	"switchboard/handoff"
)

// A View is the part of a store that a step depends on. A zero value means that the store has no such row.
type View struct {
	Thread Thread // of the step
	After  Turn   // the step's After ("": the tip), of the thread or of an ancestor before the fork
	Active Turn   // the active turn of the thread
	Turn   Turn   // the step's own turn, in the thread or in the copy
	Copy   Thread // the thread with the id of the copy
}

// Rows reads rows of a store. It returns a zero value if the store has no such row.
type Rows interface {
	Thread(id string) (Thread, error)
	Turn(thread, id string) (Turn, error) // a turn that ran in the thread itself
}

// ThreadOf returns the id of a step's thread.
func ThreadOf(s Step) string {
	_, thread := s.about()
	return thread
}

// See reads the view of a step, and nothing else.
func See(rows Rows, s Step) (v View, err error) {
	thread := ThreadOf(s)
	after, turn, copied := "", "", ""
	switch s := s.(type) {
	case Fork:
		after, copied = s.After, s.Copy
	case Claim:
		after, turn, copied = s.After, s.Turn, s.Copy
	case Append:
		turn = s.Turn
	case End:
		turn = s.Turn
	case Undo:
		turn = s.Turn
	}
	if v.Thread, err = rows.Thread(thread); err != nil || v.Thread.ID == "" {
		return v, err
	}
	if v.After, err = visible(rows, v.Thread, cmp.Or(after, v.Thread.Tip)); err != nil {
		return v, err
	}
	if v.Active, err = turnOf(rows, thread, v.Thread.Active); err != nil {
		return v, err
	}
	if v.Turn, err = turnOf(rows, thread, turn); err != nil || copied == "" {
		return v, err
	}
	if v.Copy, err = rows.Thread(copied); err != nil || v.Copy.ID == "" {
		return v, err
	}
	again, err := turnOf(rows, copied, turn)
	if again.ID != "" {
		v.Turn = again
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
	// Drop deletes Result.Turn, every item of Result.Thread from Result.Turn.From on, and, if Forked, that thread.
	Drop bool
}

// Decide returns the change of a step. The error is nil if the step is valid, or a repetition.
func Decide(v View, s Step) (Change, error) {
	if err := check(s); err != nil {
		return Change{}, err
	}
	owner, _ := s.about()
	if v.Thread.ID != "" && v.Thread.Owner != owner {
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
	case Undo:
		return v.undo(s)
	}
	return Change{}, handoff.Fault(handoff.CodeInternal, "", "a step of threads that nobody knows")
}

// withoutExpired returns the thread with an expired active turn ended, and that turn, if there is one.
func (v View) withoutExpired(now time.Time) (Thread, []Turn) {
	t := v.Thread
	if t.Active == "" || t.Running(now) != "" {
		return t, nil
	}
	lost := v.Active
	lost.Status, lost.Until, lost.Ended, lost.Detail = Interrupted, t.Items, t.Lease, "whoever ran it was lost"
	lost.Unheard, lost.Steers = lost.Left(), nil
	t.Tip, t.Active = t.Active, ""
	return t, []Turn{lost}
}

// after returns the turn before the new one: v.After, or the active turn if that was lost.
func (v View) after(id string, lost []Turn) (Turn, error) {
	after := v.After
	if len(lost) == 1 && (id == "" || id == lost[0].ID) {
		after = lost[0]
	}
	switch {
	case id != "" && after.ID == "":
		return Turn{}, handoff.Fault(handoff.CodeNotFound, "such turn", "previous turn "+id+" is not there")
	case id != "" && after.Status == Running:
		return Turn{}, handoff.Fault(handoff.CodeBusy, "", "the previous turn still runs")
	}
	return after, nil
}

// copied returns a copy of the thread up to the end of a turn; without a turn, it is empty.
func (v View) copied(after Turn, id string, now time.Time) (Thread, error) {
	t := v.Thread
	c := Thread{ID: id, Owner: t.Owner, Title: t.Title, Dir: t.Dir, Created: now, Updated: now}
	if after.ID == "" {
		return c, nil
	}
	c.Tip, c.Parent, c.ForkAt, c.Items = after.ID, after.Thread, after.Until, after.Until
	c.Depth = t.Depth + 1 // if the turn is of an ancestor, it is less; this is an upper bound
	if c.Depth > maxDepth {
		return c, handoff.Fault(handoff.CodeTooLarge, "this has been copied too often", "")
	}
	return c, nil
}

func (v View) fork(s Fork) (Change, error) {
	if v.Copy.ID != "" {
		return v.again(v.Copy, Turn{})
	}
	t, lost := v.withoutExpired(s.At)
	after, err := v.after(s.After, lost)
	if err != nil {
		return Change{}, err
	}
	c, err := v.copied(after, s.Copy, s.At)
	if err != nil {
		return Change{}, err
	}
	return Change{Result: Result{Thread: c, Forked: true}, Threads: beside(lost, t, c), Turns: lost}, nil
}

// beside returns the threads to write for a copy: the copy, and its source if the active turn of that was lost, so that
// the lost runner can write no more.
func beside(lost []Turn, source, c Thread) []Thread {
	if len(lost) == 0 {
		return []Thread{c}
	}
	return []Thread{source, c}
}

// again returns the result of a repeated step: the thread and turn that have its ids.
func (v View) again(t Thread, turn Turn) (Change, error) {
	if t.Owner != v.Thread.Owner {
		return Change{}, handoff.Fault(handoff.CodeConflict, "", "the id of the copy is taken")
	}
	return Change{Result: Result{Thread: t, Turn: turn, Forked: t.ID != v.Thread.ID, Same: true}}, nil
}

func (v View) claim(s Claim) (Change, error) {
	switch {
	case v.Turn.ID != "" && v.Turn.Thread == v.Copy.ID:
		return v.again(v.Copy, v.Turn)
	case v.Turn.ID != "":
		return v.again(v.Thread, v.Turn)
	case v.Copy.ID != "":
		return Change{}, handoff.Fault(handoff.CodeConflict, "", "the id of the copy is taken")
	}
	t, turns := v.withoutExpired(s.At)
	after, err := v.after(s.After, turns)
	if err != nil {
		return Change{}, err
	}
	source := t
	free := t.Active == "" && (s.After == "" || s.After == t.Tip)
	if !free {
		if s.Copy == "" {
			return Change{}, handoff.Fault(handoff.CodeBusy, "", "it runs a turn or is further")
		}
		if t, err = v.copied(after, s.Copy, s.At); err != nil {
			return Change{}, err
		}
	}
	turn := Turn{
		ID: s.Turn, Thread: t.ID, Previous: after.ID, Forked: !free, Claim: s.Key, Status: Running, Fence: t.Fence + 1,
		From: t.Items, Anchor: after.Anchor, Started: s.At,
	}
	t.Active, t.Fence, t.Lease, t.Updated = turn.ID, turn.Fence, s.At.Add(Lease), s.At
	t.Title = cmp.Or(t.Title, s.Title)
	if t.Items += len(s.Items); t.Items > maxItems {
		return Change{}, handoff.Fault(handoff.CodeContextFull, "", "the thread has too many items")
	}
	turn.Until = t.Items
	c := Change{Result: Result{Thread: t, Turn: turn, Forked: !free}, Threads: []Thread{t}, Turns: append(turns, turn),
		Items: of(turn, s.Items)}
	if !free {
		c.Threads = beside(turns, source, t)
	}
	return c, nil
}

// of returns the items with their turn set.
func of(turn Turn, items []Item) []Item {
	items = slices.Clone(items)
	for i := range items {
		items[i].Turn = turn.ID
	}
	return items
}

// writer returns an error unless the claim with this fence may still write the turn.
func (v View) writer(turn string, fence int64) error {
	t := v.Thread
	if v.Turn.ID != "" && v.Turn.Thread == t.ID && t.Active == turn && t.Fence == fence && v.Turn.Fence == fence {
		return nil
	}
	return handoff.Fault(handoff.CodeTakenOver, "", "the turn is over, or somebody else's by now")
}

func (v View) append(s Append) (Change, error) {
	if err := v.writer(s.Turn, s.Fence); err != nil {
		return Change{}, err
	}
	t, turn := v.Thread, v.Turn
	items := s.Items
	switch {
	case t.Items == s.From, len(items) == 0:
	case t.Items == s.From+len(items):
		items = nil // written before
	default:
		return Change{}, handoff.Fault(handoff.CodeTakenOver, "", "the thread has other items")
	}
	if t.Items += len(items); t.Items > maxItems {
		return Change{}, handoff.Fault(handoff.CodeContextFull, "", "the thread has too many items")
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
	t.Lease, t.Updated = s.At.Add(Lease), s.At
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

func (v View) undo(s Undo) (Change, error) {
	if v.Turn.ID == "" {
		return Change{Result: Result{Thread: v.Thread, Same: true}}, nil
	}
	if err := v.writer(s.Turn, s.Fence); err != nil {
		return Change{}, err
	}
	t := v.Thread
	t.Active, t.Items = "", v.Turn.From
	c := Change{Result: Result{Thread: t, Turn: v.Turn, Forked: v.Turn.Forked}, Drop: true}
	if !c.Forked {
		c.Threads = []Thread{t}
	}
	return c, nil
}
