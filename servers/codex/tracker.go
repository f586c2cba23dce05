package codex

import (
	"slices"

	"switchboard/handoff"
)

// A tracker turns what the server says about one turn into updates. It is pure: no time, no I/O, no lock.
//
// Deltas are advisory and may be missing, because what was said before a subscription is not repeated.
// An item that will never be finished is withdrawn: the server abandons the message being written when a
// turn is steered, when a model's stream is retried, and when the turn is interrupted, without a word.
type tracker struct {
	turn    handoff.TurnID // Set once
	started bool           // Started was reported
	ended   bool           // TurnEnded was reported
	open    []openItem     // begun and not finished, oldest first
	closed  map[string]closing
	last    string        // the last finished message
	final   string        // the last finished message that the model calls its answer
	isFinal bool          // there was one
	used    handoff.Usage // as far as was heard
	total   wireTokens    // of the thread, when the newest usage was told
}

// A closing is how an item left the open ones; absent: it has not.
type closing int

const (
	closedDone    closing = iota + 1 // finished
	closedDropped                    // withdrawn; it may be finished nevertheless
)

// openItem is an item that was announced, or of which a delta came.
type openItem struct {
	id     string
	spoken bool     // written by the model itself, one at a time
	paths  []string // of a fileChange
}

func newTracker(turn handoff.TurnID) tracker {
	return tracker{turn: turn, closed: map[string]closing{}}
}

// begin reports the turn once.
func (t *tracker) begin() []handoff.Update {
	if t.started || t.ended {
		return nil
	}
	t.started = true
	return []handoff.Update{handoff.Started{Turn: t.turn}}
}

// itemStarted takes item/started.
func (t *tracker) itemStarted(w *wireItem) []handoff.Update {
	if t.ended {
		return nil
	}
	updates := t.begin()
	if w.fromUser() || t.closed[w.ID] != 0 {
		return updates
	}
	if t.isOpen(w.ID) { // its deltas came first
		return append(updates, handoff.ItemStarted{Item: w.item()})
	}
	if w.spoken() {
		updates = append(updates, t.abandonSpoken()...)
	}
	updates = append(updates, t.hold(openItem{id: w.ID, spoken: w.spoken(), paths: w.paths()})...)
	return append(updates, handoff.ItemStarted{Item: w.item()})
}

// delta takes a piece of a message or of a command's output. Its item may be unknown.
func (t *tracker) delta(id, text string, kind handoff.DeltaKind) []handoff.Update {
	if t.ended {
		return nil
	}
	updates := t.begin()
	if t.closed[id] != 0 || text == "" {
		return updates
	}
	if !t.isOpen(id) {
		spoken := kind == handoff.DeltaMessage
		if spoken {
			updates = append(updates, t.abandonSpoken()...)
		}
		updates = append(updates, t.hold(openItem{id: id, spoken: spoken})...)
	}
	return append(updates, handoff.Delta{ItemID: id, Kind: kind, Text: text})
}

// usage takes what an answer of the model used. The same may be told twice.
func (t *tracker) usage(w *wireUsage) []handoff.Update {
	if t.ended || w.Total == t.total {
		return nil
	}
	t.total = w.Total
	t.used.Input += w.Last.Input
	t.used.Cached += w.Last.Cached
	t.used.Output += w.Last.Output
	t.used.Reasoning += w.Last.Reasoning
	return append(t.begin(), t.used)
}

// itemCompleted takes item/completed. An item is finished once, also when it was withdrawn before.
func (t *tracker) itemCompleted(w *wireItem) []handoff.Update {
	if t.ended {
		return nil
	}
	updates := t.begin()
	if w.fromUser() || !t.finish(w) {
		return updates
	}
	return append(updates, handoff.ItemDone{Item: w.item()})
}

// catchUp takes what the turn finished before it was heard of, oldest first. What is open or closed since
// then is left to what is heard. The words heard since are newer than these.
func (t *tracker) catchUp(items []wireItem) []handoff.Update {
	var updates []handoff.Update
	last, final, isFinal := t.last, t.final, t.isFinal
	for i := range items {
		w := &items[i]
		if w.fromUser() || !w.fit() || t.closed[w.ID] != 0 || t.isOpen(w.ID) {
			continue
		}
		t.finish(w)
		if !t.ended {
			updates = append(updates, t.begin()...)
		}
		updates = append(updates, handoff.ItemDone{Item: w.item()})
	}
	if last != "" {
		t.last = last
	}
	if isFinal {
		t.final, t.isFinal = final, true
	}
	return updates
}

// retrying takes an error after which the model's stream begins again.
func (t *tracker) retrying() []handoff.Update {
	if t.ended {
		return nil
	}
	return append(t.begin(), t.abandonSpoken()...)
}

// completed takes the end of the turn. items are those that the end itself tells: the last message, or
// what was read afterwards. Only items that are still open are reported as finished from them; older ones
// were reported or began before anybody listened.
func (t *tracker) completed(w *wireTurn, items []wireItem) []handoff.Update {
	if t.ended {
		return nil
	}
	updates := t.begin()
	for i := range items {
		w := &items[i]
		if w.fromUser() || !w.fit() {
			continue
		}
		wasOpen := t.isOpen(w.ID)
		if t.finish(w) && wasOpen {
			updates = append(updates, handoff.ItemDone{Item: w.item()})
		}
		t.remember(w) // also one that was heard: they are in order
	}
	for _, o := range t.open {
		updates = append(updates, handoff.ItemDropped{ItemID: o.id})
	}
	t.open, t.ended = nil, true
	return append(updates, t.end(w))
}

// end describes the end of the turn.
func (t *tracker) end(w *wireTurn) handoff.TurnEnded {
	e := handoff.TurnEnded{Status: handoff.TurnInterrupted, Text: t.answer()}
	switch w.Status {
	case statusCompleted:
		e.Status = handoff.TurnCompleted
	case statusFailed:
		e.Status = handoff.TurnFailed
	}
	if w.Error != nil {
		e.Code = w.Error.code()
		e.Detail = handoff.ClipRunes(w.Error.Message, maxDetail)
		if d := w.Error.AdditionalDetails; d != nil && *d != "" {
			e.Detail += ": " + handoff.ClipRunes(*d, maxDetail)
		}
	}
	return e
}

// answer returns the authoritative words of the turn so far.
func (t *tracker) answer() string {
	if t.isFinal {
		return t.final
	}
	return t.last
}

// finish takes an item off the open ones and remembers a message. It reports whether the item is new.
func (t *tracker) finish(w *wireItem) bool {
	if t.closed[w.ID] == closedDone {
		return false
	}
	t.shut(w.ID, closedDone)
	t.open = slices.DeleteFunc(t.open, func(o openItem) bool { return o.id == w.ID })
	t.remember(w)
	return true
}

// remember keeps the words of a message as the newest.
func (t *tracker) remember(w *wireItem) {
	if w.Type != typeAgentMessage {
		return
	}
	t.last = handoff.Clip(w.Text, maxText)
	if w.Phase != nil && *w.Phase == phaseFinal {
		t.final, t.isFinal = t.last, true
	}
}

// hold remembers an item as open, and withdraws the oldest when there are too many.
func (t *tracker) hold(o openItem) []handoff.Update {
	t.open = append(t.open, o)
	if len(t.open) <= maxOpen {
		return nil
	}
	oldest := t.open[0].id
	t.open = slices.Delete(t.open, 0, 1)
	t.shut(oldest, closedDropped)
	return []handoff.Update{handoff.ItemDropped{ItemID: oldest}}
}

// shut remembers how an item left the open ones.
func (t *tracker) shut(id string, how closing) {
	if len(t.closed) >= maxClosed {
		clear(t.closed)
	}
	t.closed[id] = how
}

// abandonSpoken withdraws what the model was writing.
func (t *tracker) abandonSpoken() []handoff.Update {
	var updates []handoff.Update
	t.open = slices.DeleteFunc(t.open, func(o openItem) bool {
		if o.spoken {
			updates = append(updates, handoff.ItemDropped{ItemID: o.id})
			t.shut(o.id, closedDropped)
		}
		return o.spoken
	})
	return updates
}

// changes returns the paths of an open fileChange.
func (t *tracker) changes(id string) []string {
	for _, o := range t.open {
		if o.id == id {
			return o.paths
		}
	}
	return nil
}

func (t *tracker) isOpen(id string) bool {
	return slices.ContainsFunc(t.open, func(o openItem) bool { return o.id == id })
}
