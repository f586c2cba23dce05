package router

import (
	"slices"
	"sync"
	"time"

	"switchboard/handoff"
)

// Bounds of a caller's records. When there are too many records, the oldest whose outcome was heard is removed; when a
// record has too many items, its oldest item. Records whose outcome was not heard, or whose asker has no answer, have a
// bound of their own; beyond it
// the oldest is removed, and a later call finds it in the ledger.
const (
	maxRecords = 100
	maxUnheard = 1000
	maxItems   = 200
	maxOutput  = 64 << 10 // bytes of one item's text or output that are shown; the end is kept
)

// A registry holds the records of a caller. Its mutex also guards the listeners of [feed], which change together with
// the records.
type registry struct {
	pages  *handoff.Feed // Set once: what pages follow
	counts *Counts       // Set once

	opening sync.Mutex // held while a key is looked up and its run added; locked before mu

	moving sync.Mutex // held while waiting work is reordered and its places are shown; locked before mu

	mu       sync.Mutex
	records  []*recordState    // Guarded by mu: oldest first
	byKey    map[string]string // Guarded by mu: record ids, by the key of their ledger entry
	recalled bool              // Guarded by mu: the records include the history of earlier lives
}

// A recordState is a record and the router's own state of it. Guarded by the mu of its registry.
type recordState struct {
	handoff.Record
	run        *run          // nil: it has ended
	offered    bool          // the run may be given to a listener
	attendedBy *attendance   // the listener that gets the run's events; nil: none
	unheard    bool          // its outcome is in the outbox, for the next listener
	givenTo    *attendance   // the listener that was given the outcome, until the caller has heard it; nil: none
	log        runLog        // the newest events
	writer     *ledgerWriter // may be nil
	dropped    handoff.IDSet // items that were removed
	notified   bool          // a notice of its outcome was sent outside of calls
	begunAs    string        // the id of the run that was begun in place of this one; "": none
	key        ledgerKey     // of its request
	print      string        // of its request, until who asked has the answer; "": none
	asking     bool          // who asked still waits for an answer, so that an equal request is another one
	attempts   int           // how often its start may have been sent
	request    string        // the whole request while it waits or is paused, see [encodeRequest]; ""
}

// open adds a record. If there are too many, it removes and returns one: one whose outcome was heard, or else the
// oldest that has an outcome. It returns nil if there was room.
func (g *registry) open(rec handoff.Record, w *run) (removed *recordState) {
	g.mu.Lock()
	if len(g.records) >= maxRecords {
		i := slices.IndexFunc(g.records, func(r *recordState) bool { return r.heard() && !r.repeatable() })
		if i < 0 && len(g.records) >= maxUnheard {
			i = slices.IndexFunc(g.records, func(r *recordState) bool { return r.Outcome != "" })
		}
		if i >= 0 {
			removed = g.removeLocked(i)
		}
	}
	added := &recordState{Record: rec, run: w}
	if w != nil {
		added.writer = w.writer
	}
	at := len(g.records) // sorted by CreatedAt: after a restart records are added in any order
	for at > 0 && g.records[at-1].CreatedAt.After(rec.CreatedAt) {
		at--
	}
	g.records = slices.Insert(g.records, at, added)
	shown := rec.Clone()
	g.mu.Unlock()
	g.pages.Publish(handoff.PageEvent{Kind: handoff.EventHandoff, Handoff: rec.ID, Record: &shown})
	return removed
}

// heard reports whether the caller was told the outcome, and is not to be asked about it.
func (r *recordState) heard() bool { return r.State == handoff.StatusDelivered && !r.Paused }

// removeLocked removes the record at index i, and its key.
func (g *registry) removeLocked(i int) *recordState {
	rec := g.records[i]
	if g.byKey[rec.key.key] == rec.ID { // else another run has the key by now
		delete(g.byKey, rec.key.key)
	}
	g.records = slices.Delete(g.records, i, i+1)
	return rec
}

// forgetUnkept removes a record, which was heard, if it is not to be kept.
func (g *registry) forgetUnkept(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.IndexFunc(g.records, func(r *recordState) bool { return r.ID == id }); i >= 0 && g.records[i].Unkept {
		g.removeLocked(i)
	}
}

// change lets fn alter a record, and shows the pages the new one, which it returns.
func (g *registry) change(id string, fn func(*handoff.Record)) handoff.Record {
	g.mu.Lock()
	rec := g.findLocked(id)
	if rec == nil { // pushed out by newer ones
		g.mu.Unlock()
		return handoff.Record{ID: id}
	}
	was := rec.State
	fn(&rec.Record)
	rec.log.rec = nil
	g.counts.moved(was, &rec.Record, rec.run)
	shown := rec.Clone()
	g.mu.Unlock()
	g.pages.Publish(handoff.PageEvent{Kind: handoff.EventHandoff, Handoff: id, Record: &shown})
	return shown
}

// maxChain bounds work that agents ask for: an agent's work may ask for work, and that for work once more. Without a
// bound two agents could give work to each other for ever.
const maxChain = 2

// parentOf returns the run whose agent asks for more work, or "" if no agent of ours does. A chain of more than
// [maxChain] such requests is refused. So is a chain whose beginning was removed, since it may be a loop.
func (g *registry) parentOf(o handoff.Origin) (handoff.RunID, *handoff.Error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.IndexFunc(g.records, func(r *recordState) bool {
		return o.Thread != "" && r.ThreadID == o.Thread && r.Outcome == ""
	})
	if i < 0 {
		return "", nil
	}
	depth := 1
	for at := g.records[i]; at.Parent != ""; depth++ {
		if at = g.findLocked(string(at.Parent)); at == nil || depth == maxChain {
			return "", handoff.Fault(handoff.CodeTooDeep, "", "")
		}
	}
	return handoff.RunID(g.records[i].ID), nil
}

// item adds an item to a record, or replaces the one with its id.
func (g *registry) item(id string, it handoff.RecordItem) {
	it.Text, it.Output = handoff.Tail(it.Text, maxOutput), handoff.Tail(it.Output, maxOutput)
	g.mu.Lock()
	if rec := g.findLocked(id); rec != nil {
		if i := indexItem(rec.Items, it.ID); i >= 0 {
			rec.Items[i] = it
		} else {
			rec.addItem(it)
		}
	}
	g.mu.Unlock()
	g.pages.Publish(handoff.PageEvent{Kind: handoff.EventItem, Handoff: id, Item: &it})
}

// addItem adds an item; a full record drops its oldest.
func (r *recordState) addItem(it handoff.RecordItem) {
	if len(r.Items) >= maxItems {
		r.dropItem(0)
	}
	r.Items = append(r.Items, it)
}

// dropItem removes an item from a record for good.
func (r *recordState) dropItem(i int) {
	r.dropped.Add(r.Items[i].ID)
	r.Items = slices.Delete(r.Items, i, i+1)
}

// delta appends to an item: to the output of a command, or else to the text. A delta of a dropped item is ignored.
func (g *registry) delta(id string, d handoff.Delta) {
	g.mu.Lock()
	rec := g.findLocked(id)
	if rec == nil || rec.dropped.Known(d.ItemID) {
		g.mu.Unlock()
		return
	}
	at, i := 0, indexItem(rec.Items, d.ItemID)
	if i < 0 { // its beginning was missed: the thread was resumed in the middle
		rec.addItem(handoff.RecordItem{ID: d.ItemID, Kind: handoff.ItemMessage, State: itemRunning})
		at, i = -1, len(rec.Items)-1
	}
	it := &rec.Items[i]
	text := &it.Text
	if it.Kind == handoff.ItemCommand {
		text = &it.Output
	}
	if at == 0 {
		at = len(*text)
	}
	if at+len(d.Text) > maxOutput {
		at = -1
	}
	*text = handoff.Tail(*text+d.Text, maxOutput)
	rec.delta(handoff.RunDelta{ItemID: d.ItemID, Kind: d.Kind, At: at, Text: d.Text})
	g.mu.Unlock()
	g.pages.Publish(handoff.PageEvent{Kind: handoff.EventDelta, Handoff: id, ItemID: d.ItemID, Delta: d.Text})
}

// drop removes an item that the agent withdrew. A command stays, as failed: it may have had effects.
func (g *registry) drop(id, itemID string) {
	g.mu.Lock()
	if rec := g.findLocked(id); rec != nil {
		i := indexItem(rec.Items, itemID)
		switch {
		case i < 0:
		case rec.Items[i].Kind == handoff.ItemCommand:
			if rec.Items[i].State == itemRunning {
				rec.Items[i].State = itemFailed
			}
		default:
			rec.dropItem(i)
		}
	}
	g.mu.Unlock()
	g.pages.Publish(handoff.PageEvent{Kind: handoff.EventDropped, Handoff: id, ItemID: itemID})
}

// notify returns a record of the outbox for a notice outside of calls, and true: once for each record, then false.
func (g *registry) notify(id string) (handoff.Record, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	rec := g.findLocked(id)
	if rec == nil || rec.notified || !rec.unheard {
		return handoff.Record{}, false
	}
	rec.notified = true
	return rec.Clone(), true
}

// delivered marks a record as delivered. It returns false if it was marked before, or has no outcome.
func (g *registry) delivered(id string) bool {
	first := false
	g.change(id, func(r *handoff.Record) {
		if r.State == handoff.StatusCompleted {
			r.State, first = handoff.StatusDelivered, true
		}
	})
	return first
}

// list returns the records, newest first.
func (g *registry) list() []handoff.Record {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]handoff.Record, 0, len(g.records))
	for _, rec := range slices.Backward(g.records) {
		out = append(out, rec.Clone())
	}
	return out
}

// working reports whether a run on a server has not ended.
func (g *registry) working(server string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.records, func(r *recordState) bool { return r.run != nil && r.Server == server })
}

// runs returns the runs that have not ended.
func (g *registry) runs() (open []*run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.records {
		if r.run != nil {
			open = append(open, r.run)
		}
	}
	return open
}

// countWaiting counts the work that waits for a server, which is lost since the time lost: work that has not ended,
// work that was not begun, and work whose outcome became unknown since then.
func (g *registry) countWaiting(server string, lost time.Time) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.records {
		unknown := r.Outcome == handoff.OutcomeUnknown && r.EndedAt != nil && !r.EndedAt.Before(lost)
		if r.Server == server && (r.run != nil || r.Outcome == "" || r.NotBegun() && !r.heard() || unknown) {
			n++
		}
	}
	return n
}

// find returns a copy of a record, and its run, nil if that has ended. Without such a record, both are zero.
func (g *registry) find(id string) (copied handoff.Record, w *run) {
	g.with(id, func(rec *recordState) { copied, w = rec.Clone(), rec.run })
	return copied, w
}

func (g *registry) findLocked(id string) *recordState {
	for _, rec := range slices.Backward(g.records) {
		if rec.ID == id {
			return rec
		}
	}
	return nil
}

// with calls do with a record, under the lock, unless newer ones pushed the record out.
func (g *registry) with(id string, do func(*recordState)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if rec := g.findLocked(id); rec != nil {
		do(rec)
	}
}

// States of a [handoff.RecordItem].
const (
	itemRunning = "running"
	itemDone    = "done"
	itemFailed  = "failed"
)

func indexItem(items []handoff.RecordItem, id string) int {
	return slices.IndexFunc(items, func(it handoff.RecordItem) bool { return it.ID == id })
}

func recordError(e *handoff.Error) *handoff.RecordError {
	if e == nil {
		return nil
	}
	return &handoff.RecordError{Code: e.Code, Message: e.Spoken(), Next: e.NextStep(), Detail: e.Detail}
}

// writer returns the ledger writer of a record; it may be nil.
func (g *registry) writer(id string) (l *ledgerWriter) {
	g.with(id, func(rec *recordState) { l = rec.writer })
	return l
}

// writers returns the ledger writers of all records.
func (g *registry) writers() (all []*ledgerWriter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, rec := range g.records {
		if rec.writer != nil {
			all = append(all, rec.writer)
		}
	}
	return all
}

func (g *registry) hasPast() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.recalled
}

// setPast adds the records of earlier lives, once, sorted by CreatedAt. Records that are there already stay. prints are
// those of past, in the same order; there may be fewer.
func (g *registry) setPast(past []handoff.Record, prints ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.recalled {
		return
	}
	g.recalled = true
	for i, rec := range past {
		if len(g.records) < maxRecords && g.findLocked(rec.ID) == nil {
			added := &recordState{Record: rec}
			if i < len(prints) {
				added.print = prints[i]
			}
			g.records = append(g.records, added)
		}
	}
	slices.SortStableFunc(g.records, func(x, y *recordState) int { return x.CreatedAt.Compare(y.CreatedAt) })
}
