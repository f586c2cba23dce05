package router

import (
	"maps"
	"slices"
	"strings"
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

// A callerState is what the router knows of one caller: what the page shows and what outlives a call. Its
// methods never wait.
type callerState struct {
	feed   handoff.Feed // what happens, in order; safe by itself
	counts *Counts      // Set once
	asked  time.Time    // Guarded by the router's mu: when the router was last asked for it

	opening sync.Mutex // held while a run is added, so that its key is looked for and taken in one; before mu

	mu        sync.Mutex
	records   []*recordState                   // Guarded by mu: oldest first
	questions map[handoff.QuestionID]*question // Guarded by mu
	stickies  map[stickyKey]handoff.Sticky     // Guarded by mu: valid if loaded
	chosen    map[stickyKey]time.Time          // Guarded by mu: when the caller asked for what is sticky, or for nothing
	loaded    bool                             // Guarded by mu
	recalled  bool                             // Guarded by mu: what is history from before is among the records
	unstored  map[stickyKey]stickyWrite        // Guarded by mu: what the store has still to learn of stickies
	storing   bool                             // Guarded by mu: a job writes them
	outbox    []string                         // Guarded by mu: record ids whose outcome nobody heard, oldest first
	byKey     map[string]string                // Guarded by mu: record ids, by the key of their ledger entry
	serial    int                              // Guarded by mu: questions asked so far
	attending []*attendance                    // Guarded by mu: who listens for the caller, oldest first
}

// A recordState is a record with what else is known of it. Guarded by the mu of its callerState.
type recordState struct {
	handoff.Record
	run     *run          // nil: it has ended
	offered bool          // whoever attends may hear of the run, or somebody does
	hears   *attendance   // who does; nil: nobody
	log     runLog        // what happened
	writer  *ledgerWriter // what the ledger is told; may be nil
	gone    handoff.IDSet // items that it let go of
	noticed bool          // its outcome was told outside of calls
	begun   string        // the id of what was begun instead of it; ""
	key     keyed         // of its request
	attempt int           // how often its start may have been sent
	waiting string        // the whole request while its words wait or are paused, see [waitingOf]; ""
}

// stickyKey says where a sticky thread counts.
type stickyKey struct{ server, project string }

// String returns "bigpc" or "bigpc/api".
func (k stickyKey) String() string {
	if k.project == "" {
		return k.server
	}
	return k.server + "/" + k.project
}

func keyOf(t handoff.Target) stickyKey { return stickyKey{t.Server, t.Project} }

func newCallerState(counts *Counts) *callerState {
	return &callerState{
		counts:    counts,
		questions: map[handoff.QuestionID]*question{},
		stickies:  map[stickyKey]handoff.Sticky{},
		chosen:    map[stickyKey]time.Time{},
		unstored:  map[stickyKey]stickyWrite{},
		byKey:     map[string]string{},
	}
}

// open adds a record.
func (c *callerState) open(rec handoff.Record, w *run) {
	c.mu.Lock()
	left := c.makeRoomLocked()
	added := &recordState{Record: rec, run: w}
	if w != nil {
		added.writer = w.writer
	}
	at := len(c.records) // by when it was asked for: after a restart what is taken up comes in any order
	for at > 0 && c.records[at-1].CreatedAt.After(rec.CreatedAt) {
		at--
	}
	c.records = slices.Insert(c.records, at, added)
	shown := rec.Clone()
	c.mu.Unlock()
	left.release()
	c.feed.Publish(handoff.PageEvent{Kind: handoff.EventHandoff, Handoff: rec.ID, Record: &shown})
}

// makeRoomLocked takes a record out where there are too many. Of one that is still to be told it returns the writer;
// of others the writer itself lets go once all is written.
func (c *callerState) makeRoomLocked() *ledgerWriter {
	if len(c.records) < maxRecords {
		return nil
	}
	i := slices.IndexFunc(c.records, func(r *recordState) bool { return r.State == handoff.StatusDelivered && !r.Paused })
	if i < 0 && len(c.records) >= maxUntold {
		i = slices.IndexFunc(c.records, func(r *recordState) bool { return r.Outcome != "" })
	}
	if i < 0 {
		return nil
	}
	var left *ledgerWriter
	if c.records[i].State != handoff.StatusDelivered || c.records[i].Paused {
		left = c.records[i].writer
	}
	c.removeLocked(i)
	return left
}

// removeLocked forgets a record and all that is known of it.
func (c *callerState) removeLocked(i int) {
	rec := c.records[i]
	if c.byKey[rec.key.key] == rec.ID { // else another was begun under it since
		delete(c.byKey, rec.key.key)
	}
	c.outbox = slices.DeleteFunc(c.outbox, func(other string) bool { return other == rec.ID })
	c.records = slices.Delete(c.records, i, i+1)
}

// forgetUnkept forgets a record that was heard and is not to be kept.
func (c *callerState) forgetUnkept(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.records, func(r *recordState) bool { return r.ID == id }); i >= 0 && c.records[i].Unkept {
		c.removeLocked(i)
	}
}

// change lets fn alter a record and shows it to the pages. It returns the record as it is then.
func (c *callerState) change(id string, fn func(*handoff.Record)) handoff.Record {
	c.mu.Lock()
	rec := c.findLocked(id)
	if rec == nil { // pushed out by newer ones
		c.mu.Unlock()
		return handoff.Record{ID: id}
	}
	was := rec.State
	fn(&rec.Record)
	rec.log.rec = nil
	c.counts.moved(was, &rec.Record)
	shown := rec.Clone()
	c.mu.Unlock()
	c.feed.Publish(handoff.PageEvent{Kind: handoff.EventHandoff, Handoff: id, Record: &shown})
	return shown
}

// item adds an item to a record, or replaces the one with its id.
func (c *callerState) item(id string, it handoff.RecordItem) {
	it.Text, it.Output = handoff.Tail(it.Text, maxOutput), handoff.Tail(it.Output, maxOutput)
	c.mu.Lock()
	if rec := c.findLocked(id); rec != nil {
		if i := indexItem(rec.Items, it.ID); i >= 0 {
			rec.Items[i] = it
		} else {
			rec.addItem(it)
		}
	}
	c.mu.Unlock()
	c.feed.Publish(handoff.PageEvent{Kind: handoff.EventItem, Handoff: id, Item: &it})
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
func (c *callerState) delta(id string, d handoff.Delta) {
	c.mu.Lock()
	rec := c.findLocked(id)
	if rec == nil || rec.gone.Known(d.ItemID) {
		c.mu.Unlock()
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
	c.mu.Unlock()
	c.feed.Publish(handoff.PageEvent{Kind: handoff.EventDelta, Handoff: id, ItemID: d.ItemID, Delta: d.Text})
}

// drop withdraws an item. What a command did until it was stopped has happened: it stays, as one that was cut off.
func (c *callerState) drop(id, itemID string) {
	c.mu.Lock()
	if rec := c.findLocked(id); rec != nil {
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
	c.mu.Unlock()
	c.feed.Publish(handoff.PageEvent{Kind: handoff.EventDropped, Handoff: id, ItemID: itemID})
}

// ended closes a record's run and its open questions.
func (c *callerState) ended(id string) {
	c.with(id, func(rec *recordState) { rec.run, rec.offered, rec.hears = nil, false, nil })
	for _, q := range c.questionsOf(id) {
		c.closeQuestion(q.shown.ID)
	}
}

// notice returns a record whose outcome is to be told outside of calls. Asked again it returns none.
func (c *callerState) notice(id string) (handoff.Record, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rec := c.findLocked(id)
	if rec == nil || rec.noticed {
		return handoff.Record{}, false
	}
	rec.noticed = true
	return rec.Clone(), true
}

// began notes what was begun instead of a record; "" is none.
func (c *callerState) began(id, instead string) {
	c.with(id, func(rec *recordState) { rec.begun = instead })
}

// delivered marks a record whose outcome was given. False means that it was marked before.
func (c *callerState) delivered(id string) bool {
	first := false
	c.change(id, func(r *handoff.Record) {
		if r.State == handoff.StatusCompleted {
			r.State, first = handoff.StatusDelivered, true
		}
	})
	return first
}

// sticky returns the sticky thread for a target, if the stickies were read.
func (c *callerState) sticky(k stickyKey) (handoff.Sticky, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.stickies[k]
	return s, ok
}

// setStickies takes what the store has. What was set meanwhile is newer and stays. A time that is still to
// come tells nothing: the clock was set back.
func (c *callerState) setStickies(list []handoff.Sticky) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loaded {
		return
	}
	for _, s := range list {
		k := keyOf(s.Target)
		if _, ok := c.stickies[k]; ok {
			continue
		}
		c.stickies[k] = s
		if s.Since.Before(now) {
			c.chosen[k] = s.Since
		}
	}
	c.loaded = true
}

func (c *callerState) isLoaded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loaded
}

// putSticky makes a thread sticky for a request of that time. False: the caller has chosen another one
// since, or none. Work that waited, or that was lost and found, comes late.
func (c *callerState) putSticky(s handoff.Sticky, asked time.Time) bool {
	k := keyOf(s.Target)
	c.mu.Lock()
	late := c.chosen[k].After(asked)
	if late && c.stickies[k].Target != s.Target {
		c.mu.Unlock()
		return false
	}
	c.stickies[k] = s
	if !late {
		c.chosen[k] = asked
	}
	c.mu.Unlock()
	c.feed.Publish(handoff.PageEvent{Kind: handoff.EventSticky})
	return true
}

// dropSticky is the caller's wish.
func (c *callerState) dropSticky(k stickyKey) {
	c.mu.Lock()
	delete(c.stickies, k)
	c.chosen[k] = time.Now()
	c.mu.Unlock()
	c.feed.Publish(handoff.PageEvent{Kind: handoff.EventSticky})
}

// dropGone forgets a sticky thread that is gone. False: another one is sticky by now, or none.
func (c *callerState) dropGone(t handoff.Target) bool {
	c.mu.Lock()
	if c.stickies[keyOf(t)].Target != t {
		c.mu.Unlock()
		return false
	}
	delete(c.stickies, keyOf(t))
	c.mu.Unlock()
	c.feed.Publish(handoff.PageEvent{Kind: handoff.EventSticky})
	return true
}

func (c *callerState) listStickies() []handoff.Sticky {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.stickies), func(x, y handoff.Sticky) int {
		return strings.Compare(keyOf(x.Target).String(), keyOf(y.Target).String())
	})
}

// list returns the records, newest first.
func (c *callerState) list() []handoff.Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]handoff.Record, 0, len(c.records))
	for _, rec := range slices.Backward(c.records) {
		out = append(out, rec.Clone())
	}
	return out
}

func (c *callerState) find(id string) (found handoff.Record, w *run) {
	c.with(id, func(rec *recordState) { found, w = rec.Clone(), rec.run })
	return found, w
}

func (c *callerState) findLocked(id string) *recordState {
	for _, rec := range slices.Backward(c.records) {
		if rec.ID == id {
			return rec
		}
	}
	return nil
}

// with lets do use what is known of a record, unless it was pushed out by newer ones.
func (c *callerState) with(id string, do func(*recordState)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if rec := c.findLocked(id); rec != nil {
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
	return &handoff.RecordError{Code: e.Code, Message: e.Spoken(), Next: e.Meaning().Next, Detail: e.Detail}
}
