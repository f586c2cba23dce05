package turns

import (
	"cmp"
	"slices"
	"strings"

	"switchboard/handoff"
)

// Bounds of the items of a turn that a reducer knows.
const (
	maxOpen   = 1024 // one more withdraws the oldest
	maxClosed = 8192 // one more forgets all: an item that is finished twice may then be reported twice
)

// An Item is an item of a turn from its server.
type Item struct {
	handoff.Item
	Streamed bool     // the model itself writes it, one at a time: the begin of the next one ends or abandons it
	Answer   bool     // a message that the model calls its answer; others comment on the work
	Paths    []string // of an edit
}

// A Reducer makes updates from the messages of a server about one turn.
//
// Deltas are advisory and may be missing, because a server does not repeat those from before a subscription. An item
// that will never be finished is withdrawn: without a message, servers abandon the message that is being written when a
// turn is steered or interrupted, and when a model's stream is retried.
type Reducer struct {
	turn    handoff.TurnID // Set once
	started bool           // Started was reported
	ended   bool           // TurnEnded was reported
	open    []openItem     // begun and not finished, oldest first
	closed  map[string]closing
	last    string        // the last finished message
	final   string        // the last finished message that the model calls its answer
	isFinal bool          // there was such a message
	asked   string        // see Ask
	plan    string        // the last plan: the answer of a turn without messages
	used    handoff.Usage // so far
}

// A closing says how an item was closed; 0: it was not.
type closing int

const (
	closedDone    closing = iota + 1 // finished
	closedDropped                    // withdrawn; it may still be finished
)

// openItem is an item that has begun, or of which a delta came.
type openItem struct {
	id       string
	streamed bool     // written by the model itself, one at a time
	paths    []string // of an edit
}

// NewReducer returns the reducer of a turn without messages.
func NewReducer(turn handoff.TurnID) Reducer {
	return Reducer{turn: turn, closed: map[string]closing{}}
}

// Begin reports the beginning of the turn, once.
func (r *Reducer) Begin() []handoff.Update {
	if r.started || r.ended {
		return nil
	}
	r.started = true
	return []handoff.Update{handoff.Started{Turn: r.turn}}
}

// ItemStarted handles the beginning of an item.
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

// Delta handles a piece of a message or of a command's output. Its item may be unknown.
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

// Used handles the usage of one answer of the model, and reports the sum.
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

// ItemDone handles a finished item. It reports an item once, also if it was withdrawn before.
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

// Add is like ItemDone, but a message is added to the answer of the turn, and does not replace it.
func (r *Reducer) Add(it Item) []handoff.Update {
	before, fresh := r.Answer(), r.closed[it.ID] != closedDone
	updates := r.ItemDone(it)
	if it.Kind == handoff.ItemMessage && fresh && !r.ended {
		r.final, r.isFinal = handoff.Clip(strings.TrimSpace(before+"\n\n"+it.Text), SoftBytes), true
	}
	return updates
}

// CatchUp handles items that were read, oldest first: those that the turn finished before its first message here. It
// skips items that are known from messages. Messages that are known are newer than the ones that were read.
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

// Retrying handles an error after which the model's stream begins again.
func (r *Reducer) Retrying() []handoff.Update {
	if r.ended {
		return nil
	}
	return append(r.Begin(), r.abandonStreamed()...)
}

// Ask has the answer of the turn end with a question that is open then.
func (r *Reducer) Ask(text string) { r.asked += "\n" + text }

// End handles the end of the turn, and sets its text: the answer, and what [Reducer.Ask] said. items came with the end
// (the last message), or were read afterwards. Of these, only items that are still open are reported; the others were
// reported, or began before the first message here.
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
		r.remember(it) // also a known one: the items are in order
	}
	for _, o := range r.open {
		if o.streamed || end.Status == handoff.TurnCompleted { // the output of a command that was cut short stays
			updates = append(updates, handoff.ItemDropped{ItemID: o.id})
		}
	}
	r.open, r.ended = nil, true
	if r.asked != "" {
		r.final, r.isFinal = handoff.Clip(strings.TrimSpace(r.Answer()+"\n\n"+strings.TrimSpace(r.asked)), SoftBytes), true
	}
	end.Text = r.Answer()
	return append(updates, end)
}

// Turn returns the id of the turn.
func (r *Reducer) Turn() handoff.TurnID { return r.turn }

// Begun reports whether the beginning of the turn was reported.
func (r *Reducer) Begun() bool { return r.started }

// Ended reports whether the end of the turn was reported.
func (r *Reducer) Ended() bool { return r.ended }

// Answer returns the answer of the turn so far: its final message, or else its last message, or else its plan.
func (r *Reducer) Answer() string {
	if r.isFinal {
		return cmp.Or(r.final, r.plan)
	}
	return cmp.Or(r.last, r.plan)
}

// Answered reports whether a message came that the model calls its answer.
func (r *Reducer) Answered() bool { return r.isFinal }

// finish closes an item as finished, and reports whether it was not finished before.
func (r *Reducer) finish(it Item) bool {
	if r.closed[it.ID] == closedDone {
		return false
	}
	r.shut(it.ID, closedDone)
	r.open = slices.DeleteFunc(r.open, func(o openItem) bool { return o.id == it.ID })
	r.remember(it)
	return true
}

// remember stores the text of a message or plan as the newest.
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

// hold adds an open item, and withdraws the oldest one if there are too many.
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

// shut stores how an item was closed.
func (r *Reducer) shut(id string, how closing) {
	if len(r.closed) >= maxClosed {
		clear(r.closed)
	}
	r.closed[id] = how
}

// abandonStreamed withdraws the open items that the model itself writes.
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
