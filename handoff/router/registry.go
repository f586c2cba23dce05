package router

import (
	"slices"
	"sync"
	"time"

	"switchboard/handoff"
)

// Bounds of what is kept of a caller. When full, the oldest record goes whose outcome was heard, and the oldest
// item of a record. Records that are still to be told stay up to a bound of their own; beyond it the oldest
// is left to the ledger, where a later call finds it.
const (
	maxRecords = 100
	maxUntold  = 1000
	maxItems   = 200
	maxOutput  = 64 << 10 // bytes of one item's text or output that are shown; the end is kept
)

// A registry holds the records of a caller. Its mutex also guards who hears of their runs ([feed]), since that
// changes together with them.
type registry struct {
	pages  *handoff.Feed // Set once: what pages follow
	counts *Counts       // Set once

	opening sync.Mutex // held while a run is added, so that its key is looked for and taken in one; before mu

	moving sync.Mutex // held while what waits is put in another order and shown so; before mu

	mu       sync.Mutex
	records  []*recordState    // Guarded by mu: oldest first
	byKey    map[string]string // Guarded by mu: record ids, by the key of their ledger entry
	recalled bool              // Guarded by mu: what is history from before is among the records
}

// A recordState is a record with what else is known of it. Guarded by the mu of its registry.
type recordState struct {
	handoff.Record
	run     *run          // nil: it has ended
	offered bool          // whoever attends may hear of the run, or somebody does
	hears   *attendance   // who does; nil: nobody
	unheard bool          // its outcome is in the outbox: whoever attends next is given it
	told    *attendance   // who was given its outcome, which nobody heard so far; nil: nobody
	log     runLog        // what happened
	writer  *ledgerWriter // what the ledger is told; may be nil
	gone    handoff.IDSet // items that it let go of
	noticed bool          // its outcome was told outside of calls
	begun   string        // the id of what was begun instead of it; ""
	key     keyed         // of its request
	attempt int           // how often its start may have been sent
	waiting string        // the whole request while its words wait or are paused, see [waitingOf]; ""
}

// open adds a record, and returns one that it took out because there are too many: one whose outcome was heard, or
// else the oldest that has one. Nil: there was room.
func (g *registry) open(rec handoff.Record, w *run) (removed *recordState) {
	g.mu.Lock()
	if len(g.records) >= maxRecords {
		i := slices.IndexFunc(g.records, func(r *recordState) bool { return r.heard() })
		if i < 0 && len(g.records) >= maxUntold {
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
	at := len(g.records) // by when it was asked for: after a restart what is taken up comes in any order
	for at > 0 && g.records[at-1].CreatedAt.After(rec.CreatedAt) {
		at--
	}
	g.records = slices.Insert(g.records, at, added)
	shown := rec.Clone()
	g.mu.Unlock()
	g.pages.Publish(handoff.PageEvent{Kind: handoff.EventHandoff, Handoff: rec.ID, Record: &shown})
	return removed
}

// heard reports whether nothing of the record is left to be told or asked.
func (r *recordState) heard() bool { return r.State == handoff.StatusDelivered && !r.Paused }

// removeLocked forgets a record and all that is known of it.
func (g *registry) removeLocked(i int) *recordState {
	rec := g.records[i]
	if g.byKey[rec.key.key] == rec.ID { // else another was begun under it since
		delete(g.byKey, rec.key.key)
	}
	g.records = slices.Delete(g.records, i, i+1)
	return rec
}

// forgetUnkept forgets a record that was heard and is not to be kept.
func (g *registry) forgetUnkept(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.IndexFunc(g.records, func(r *recordState) bool { return r.ID == id }); i >= 0 && g.records[i].Unkept {
		g.removeLocked(i)
	}
}

// change lets fn alter a record and shows it to the pages. It returns the record as it is then.
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

// asker returns the work whose agent asks for more work, if it runs here: at most [maxChain] such steps follow
// one another. What asked for work that is not known any more counts as too many, so that no loop hides behind it.
func (g *registry) asker(o handoff.Origin) (handoff.RunID, *handoff.Error) {
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

// addItem adds an item; a full record lets go of its oldest.
func (r *recordState) addItem(it handoff.RecordItem) {
	if len(r.Items) >= maxItems {
		r.dropItem(0)
	}
	r.Items = append(r.Items, it)
}

// dropItem takes an item out of a record for good.
func (r *recordState) dropItem(i int) {
	r.gone.Add(r.Items[i].ID)
	r.Items = slices.Delete(r.Items, i, i+1)
}

// delta appends to an item: to a command's output, to anything else's text. What is gone is not brought back
// by it.
func (g *registry) delta(id string, d handoff.Delta) {
	g.mu.Lock()
	rec := g.findLocked(id)
	if rec == nil || rec.gone.Known(d.ItemID) {
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

// drop withdraws an item. What a command did until it was stopped has happened: it stays, as one that was cut off.
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

// notice returns a record in the outbox, to be told of outside of calls. Asked again it returns none.
func (g *registry) notice(id string) (handoff.Record, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	rec := g.findLocked(id)
	if rec == nil || rec.noticed || !rec.unheard {
		return handoff.Record{}, false
	}
	rec.noticed = true
	return rec.Clone(), true
}

// delivered marks a record whose outcome was given. False means that it was marked before.
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

// runs returns those that have not ended.
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

// waits counts the work that a server which was lost at a time keeps waiting: what has not ended, what was not begun,
// and what ended since then without anybody knowing how.
func (g *registry) waits(server string, lost time.Time) (n int) {
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

func (g *registry) find(id string) (found handoff.Record, w *run) {
	g.with(id, func(rec *recordState) { found, w = rec.Clone(), rec.run })
	return found, w
}

func (g *registry) findLocked(id string) *recordState {
	for _, rec := range slices.Backward(g.records) {
		if rec.ID == id {
			return rec
		}
	}
	return nil
}

// with lets do use what is known of a record, unless it was pushed out by newer ones.
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

// writer returns what the ledger is told of a record; it may be nil.
func (g *registry) writer(id string) (l *ledgerWriter) {
	g.with(id, func(rec *recordState) { l = rec.writer })
	return l
}

// writers returns what the ledger is told of each record.
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

// setPast puts what was done before among the records, by when it was asked for. What is known already stays as it is.
func (g *registry) setPast(past []handoff.Record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.recalled {
		return
	}
	g.recalled = true
	for _, rec := range past {
		if len(g.records) < maxRecords && g.findLocked(rec.ID) == nil {
			g.records = append(g.records, &recordState{Record: rec})
		}
	}
	slices.SortStableFunc(g.records, func(x, y *recordState) int { return x.CreatedAt.Compare(y.CreatedAt) })
}
