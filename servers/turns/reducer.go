package turns

import (
	"cmp"
	"slices"

	"switchboard/handoff"
)

// Bounds of the items of a turn that are remembered. The oldest open one is withdrawn; of closed ones all are
// forgotten, so that one that is finished twice may be told twice.
const (
	maxOpen   = 1024
	maxClosed = 8192
)

// An Item is what an agent did, as its server tells it.
type Item struct {
	handoff.Item
	Streamed bool     // the model itself writes it, one at a time: when the next begins, this one is finished or abandoned
	Answer   bool     // a message that the model calls its answer; others comment on the work
	Paths    []string // that an edit touches
}

// A Reducer turns what a server says about one turn into updates.
//
// Deltas are advisory and may be missing, because what was said before a subscription is not repeated.
// An item that will never be finished is withdrawn: a server abandons the message being written when a
// turn is steered, when a model's stream is retried, and when the turn is interrupted, without a word.
type Reducer struct {
	turn    handoff.TurnID // Set once
	started bool           // Started was reported
	ended   bool           // TurnEnded was reported
	open    []openItem     // begun and not finished, oldest first
	closed  map[string]closing
	last    string        // the last finished message
	final   string        // the last finished message that the model calls its answer
	isFinal bool          // there was one
	plan    string        // the last plan; the answer of a turn that says nothing else
	used    handoff.Usage // as far as was heard
}

// A closing is how an item left the open ones; absent: it has not.
type closing int

const (
	closedDone    closing = iota + 1 // finished
	closedDropped                    // withdrawn; it may be finished nevertheless
)

// openItem is an item that was announced, or of which a delta came.
type openItem struct {
	id       string
	streamed bool     // written by the model itself, one at a time
	paths    []string // of an edit
}

// NewReducer returns the reducer of a turn of which nothing was said.
func NewReducer(turn handoff.TurnID) Reducer {
	return Reducer{turn: turn, closed: map[string]closing{}}
}

// Begin reports the turn once.
func (r *Reducer) Begin() []handoff.Update {
	if r.started || r.ended {
		return nil
	}
	r.started = true
	return []handoff.Update{handoff.Started{Turn: r.turn}}
}

// ItemStarted takes the beginning of an item.
func (r *Reducer) ItemStarted(it Item) []handoff.Update {
	if r.ended {
		return nil
	}
	updates := r.Begin()
	if r.closed[it.ID] != 0 {
		return updates
	}
	if r.isOpen(it.ID) { // its deltas came first
		return append(updates, handoff.ItemStarted{Item: it.Item})
	}
	if it.Streamed {
		updates = append(updates, r.abandonStreamed()...)
	}
	updates = append(updates, r.hold(openItem{id: it.ID, streamed: it.Streamed, paths: it.Paths})...)
	return append(updates, handoff.ItemStarted{Item: it.Item})
}

// Delta takes a piece of a message or of a command's output. Its item may be unknown.
func (r *Reducer) Delta(id, text string, kind handoff.DeltaKind) []handoff.Update {
	if r.ended {
		return nil
	}
	updates := r.Begin()
	if r.closed[id] != 0 || text == "" {
		return updates
	}
	if !r.isOpen(id) {
		streamed := kind != handoff.DeltaOutput
		if streamed {
			updates = append(updates, r.abandonStreamed()...)
		}
		updates = append(updates, r.hold(openItem{id: id, streamed: streamed})...)
	}
	return append(updates, handoff.Delta{ItemID: id, Kind: kind, Text: text})
}

// Used takes what one answer of the model used.
func (r *Reducer) Used(u handoff.Usage) []handoff.Update {
	if r.ended {
		return nil
	}
	r.used.Input += u.Input
	r.used.Cached += u.Cached
	r.used.Output += u.Output
	r.used.Reasoning += u.Reasoning
	return append(r.Begin(), r.used)
}

// ItemDone takes a finished item. It is finished once, also when it was withdrawn before.
func (r *Reducer) ItemDone(it Item) []handoff.Update {
	if r.ended {
		return nil
	}
	updates := r.Begin()
	if !r.finish(it) {
		return updates
	}
	return append(updates, handoff.ItemDone{Item: it.Item})
}

// CatchUp takes what the turn finished before it was heard of, oldest first. What is open or closed since
// then is left to what is heard. The words heard since are newer than these.
func (r *Reducer) CatchUp(items []Item) []handoff.Update {
	var updates []handoff.Update
	last, final, isFinal := r.last, r.final, r.isFinal
	for _, it := range items {
		if r.closed[it.ID] != 0 || r.isOpen(it.ID) {
			continue
		}
		r.finish(it)
		if !r.ended {
			updates = append(updates, r.Begin()...)
		}
		updates = append(updates, handoff.ItemDone{Item: it.Item})
	}
	if last != "" {
		r.last = last
	}
	if isFinal {
		r.final, r.isFinal = final, true
	}
	return updates
}

// Retrying takes an error after which the model's stream begins again.
func (r *Reducer) Retrying() []handoff.Update {
	if r.ended {
		return nil
	}
	return append(r.Begin(), r.abandonStreamed()...)
}

// End takes the end of the turn and gives it its words. items are those that the end itself tells: the last
// message, or what was read afterwards. Only items that are still open are reported as finished from them; older
// ones were reported or began before anybody listened.
func (r *Reducer) End(end handoff.TurnEnded, items []Item) []handoff.Update {
	if r.ended {
		return nil
	}
	updates := r.Begin()
	for _, it := range items {
		wasOpen := r.isOpen(it.ID)
		if r.finish(it) && wasOpen {
			updates = append(updates, handoff.ItemDone{Item: it.Item})
		}
		r.remember(it) // also one that was heard: they are in order
	}
	for _, o := range r.open {
		if o.streamed || end.Status == handoff.TurnCompleted { // a command that was cut short has run: what it printed stays
			updates = append(updates, handoff.ItemDropped{ItemID: o.id})
		}
	}
	r.open, r.ended = nil, true
	end.Text = r.Answer()
	return append(updates, end)
}

// Turn is the turn that it reduces.
func (r *Reducer) Turn() handoff.TurnID { return r.turn }

// Begun reports whether its beginning was told.
func (r *Reducer) Begun() bool { return r.started }

// Ended reports whether its end was told.
func (r *Reducer) Ended() bool { return r.ended }

// Answer returns the authoritative words of the turn so far.
func (r *Reducer) Answer() string {
	if r.isFinal {
		return cmp.Or(r.final, r.plan)
	}
	return cmp.Or(r.last, r.plan)
}

// Answered reports whether a message came that the model calls its answer.
func (r *Reducer) Answered() bool { return r.isFinal }

// finish takes an item off the open ones and remembers a message. It reports whether the item is new.
func (r *Reducer) finish(it Item) bool {
	if r.closed[it.ID] == closedDone {
		return false
	}
	r.shut(it.ID, closedDone)
	r.open = slices.DeleteFunc(r.open, func(o openItem) bool { return o.id == it.ID })
	r.remember(it)
	return true
}

// remember keeps the words of a message, or a plan, as the newest.
func (r *Reducer) remember(it Item) {
	if it.Kind == handoff.ItemPlan {
		r.plan = it.Text
	}
	if it.Kind != handoff.ItemMessage {
		return
	}
	r.last = it.Text
	if it.Answer {
		r.final, r.isFinal = it.Text, true
	}
}

// hold remembers an item as open, and withdraws the oldest when there are too many.
func (r *Reducer) hold(o openItem) []handoff.Update {
	r.open = append(r.open, o)
	if len(r.open) <= maxOpen {
		return nil
	}
	oldest := r.open[0].id
	r.open = slices.Delete(r.open, 0, 1)
	r.shut(oldest, closedDropped)
	return []handoff.Update{handoff.ItemDropped{ItemID: oldest}}
}

// shut remembers how an item left the open ones.
func (r *Reducer) shut(id string, how closing) {
	if len(r.closed) >= maxClosed {
		clear(r.closed)
	}
	r.closed[id] = how
}

// abandonStreamed withdraws what the model was writing.
func (r *Reducer) abandonStreamed() []handoff.Update {
	var updates []handoff.Update
	r.open = slices.DeleteFunc(r.open, func(o openItem) bool {
		if o.streamed {
			updates = append(updates, handoff.ItemDropped{ItemID: o.id})
			r.shut(o.id, closedDropped)
		}
		return o.streamed
	})
	return updates
}

// Changes returns the paths of an open edit.
func (r *Reducer) Changes(id string) []string {
	for _, o := range r.open {
		if o.id == id {
			return o.paths
		}
	}
	return nil
}

func (r *Reducer) isOpen(id string) bool {
	return slices.ContainsFunc(r.open, func(o openItem) bool { return o.id == id })
}
