package work

import (
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/phase"
)

// Bounds of a caller's handoffs. When there are too many, the oldest whose outcome was heard is removed. Those whose
// outcome was not heard, or whose asker has no answer, have a bound of their own; beyond it the oldest is removed, and
// becomes history unheard.
const (
	maxKept    = 100
	maxUnheard = 1000
	maxWhole   = 10 // that ended last, and have all that was printed
	maxItems   = 200
	maxOutput  = 64 << 10 // bytes of one item's text or output that are shown; the end is kept
)

// A Handoff is the life of one request.
type Handoff struct {
	handoff.Record // as it is shown

	open  bool // its outcome is not published, and nobody else has it
	state phase.State
	run   Run
	kind  Kind // of the newest job
	job   int  // number of that job; it changes also when the job is halted
	span  handoff.Span

	wait    wait
	awaited string // the queue that it waits in, or ""
	attempt attempt
	watch   watch

	key     string // of its document
	args    string // the hash of what was asked
	print   string // of its request; "": none
	asking  bool   // who asked still waits for an answer, so that an equal request is another one
	begunAs string // the handoff that was begun in its place; "": none
	request string // the whole request while it waits or is paused; ""
	doc     document

	until time.Time // who asked has the answer, and until then it may be lost; zero: they have none

	offered  bool        // it may be given to a listener
	listener *Attendance // gets its events; nil: none
	unheard  bool        // its outcome is in the outbox, for the next listener
	givenTo  *Attendance // was given the outcome, until the caller has heard it; nil: none
	notified bool        // a notice of its outcome was sent outside of calls
	log      log
	dropped  handoff.IDSet // items that were removed
}

// A wait is what a handoff waits for, from when its thread is known until its words are sent.
type wait struct {
	reason    handoff.Wait
	elsewhere bool           // another program has the thread
	program   string         // that program; "": not known
	refused   handoff.TurnID // the turn that did not take the words
	queued    bool           // it was published that the words wait for work of ours
	within    time.Time      // when the caller needs a promise; zero: at once, or they have it
	store     pending        // what waits for the store
}

// An attempt is one try to give the words to a turn.
type attempt struct {
	target handoff.Target
	number int // it never decreases
}

// watch is what is known of the turn that is followed.
type watch struct {
	unseen      time.Time     // when the turn counts as lost unless something comes; zero: never
	silent      time.Time     // when it counts as silent
	lastMessage string        // the newest message, not published while it may be the final one
	reported    handoff.IDSet // finished items, to recognise those that are reported again
	piece       piece         // what was left of the last delta
	goesOn      bool          // it was told that the agent goes on with its goal
}

// A piece is what a delta ended in the middle of.
type piece struct {
	item string
	text handoff.Plainer
}

func (s *State) find(id string) *Handoff {
	for _, h := range slices.Backward(s.all) {
		if h.ID == id {
			return h
		}
	}
	return nil
}

// add adds a handoff, in the order of their CreatedAt. If there are too many, one is removed: one whose outcome was
// heard, or else the oldest that has an outcome.
func (s *State) add(h *Handoff) {
	if len(s.all) >= maxKept {
		i := slices.IndexFunc(s.all, func(o *Handoff) bool { return o.heard() && !s.repeatable(o, true) && o.doc.clean() })
		if i < 0 && len(s.all) >= maxUnheard {
			i = slices.IndexFunc(s.all, func(o *Handoff) bool { return o.Outcome != "" && !o.open })
		}
		if i >= 0 {
			if o := s.all[i]; o.doc.waits() {
				o.doc.passed = true
				s.mark(o)
			}
			s.remove(i)
		}
	}
	at := len(s.all)
	for at > 0 && s.all[at-1].CreatedAt.After(h.CreatedAt) {
		at--
	}
	s.all = slices.Insert(s.all, at, h)
	shown := h.Clone()
	s.cfg.Pages.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: h.ID, Record: &shown})
}

func (s *State) remove(i int) {
	h := s.all[i]
	if s.byKey[h.key] == h.ID { // else another has the key by now
		delete(s.byKey, h.key)
	}
	s.all = slices.Delete(s.all, i, i+1)
}

// forget removes a handoff, which was heard, if it is not to be kept. Of one that may be repeated, it leaves what a
// repetition needs, without words.
func (s *State) forget(h *Handoff) {
	i := slices.Index(s.all, h)
	switch {
	case i < 0 || !h.Unkept || !h.doc.clean():
	case s.repeatable(h, true):
		rec := handoff.Record{
			ID: h.ID, Server: h.Server, ThreadID: h.ThreadID, TurnID: h.TurnID, Why: h.Why, State: h.State, Outcome: h.Outcome,
			Error: h.Error, Unkept: true, CreatedAt: h.CreatedAt, EndedAt: h.EndedAt, Key: h.Key, Client: h.Client,
		}
		s.all[i] = &Handoff{
			Record: rec, span: h.span, key: h.key, args: h.args, attempt: h.attempt, print: h.print, until: h.until,
		}
	default:
		s.remove(i)
	}
}

// heard reports whether the caller was told the outcome, and is not to be asked about it.
func (h *Handoff) heard() bool { return h.State == handoff.StatusDelivered && !h.Paused }

// show lets fn alter the record, and shows the pages the new one.
func (s *State) show(h *Handoff, fn func()) {
	was := h.State
	fn()
	h.log.rec = nil
	if was != h.State {
		s.cfg.Counter.Moved(was, &h.Record, h.span, s.now)
	}
	shown := h.Clone()
	s.cfg.Pages.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: h.ID, Record: &shown})
}

// advance sets the status and the turn of the record.
func (s *State) advance(h *Handoff, to handoff.Status) {
	s.show(h, func() {
		h.State, h.TurnID = to, h.run.Turn
		if to != handoff.StatusDispatching {
			h.Waits, h.Place = "", 0
		}
		if to == handoff.StatusStarted && h.StartedAt == nil && !h.state.Inherited {
			h.StartedAt = new(s.now)
		}
	})
}

// begin begins a job, which replaces the one before.
func (s *State) begin(h *Handoff, k Kind) {
	h.job++
	h.kind = k
	run := h.run
	s.do(Begin{Job{ID: h.ID, N: h.job, Kind: k, Run: run, Span: h.span, Phase: h.state.Phase}})
}

// halt ends the job of a handoff: what comes of it is void.
func (s *State) halt(h *Handoff) {
	h.job++
	h.kind = ""
	s.do(Halt{h.ID})
}

// take takes a queue if it is free, and reports whether the handoff has it now.
func (s *State) take(h *Handoff, key string) bool { return s.cfg.Threads.Take(key, h.ID, s.cfg.Caller) }

// leave leaves all queues but one ("": all of them): others that wait in a queue must not join this handoff, whose
// words do not go to that thread.
func (s *State) leave(h *Handoff, but string) { s.cfg.Threads.Leave(h.ID, but) }

// ThreadKey names the queue of a thread.
func ThreadKey(t handoff.Target) string { return "thread " + t.Server + " " + t.Thread }

// newKey names the queue of a caller's next new thread on a server or project.
func newKey(c handoff.Caller, t handoff.Target) string {
	return "new " + c.String() + " " + PlaceOf(t).String()
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

// item adds an item to a record, or replaces the one with its id.
func (s *State) item(h *Handoff, it handoff.RecordItem) {
	it.Cut = it.Cut || max(len(it.Text), len(it.Output)) > maxOutput
	it.Text, it.Output = handoff.Tail(it.Text, maxOutput), handoff.Tail(it.Output, maxOutput)
	if i := indexItem(h.Items, it.ID); i >= 0 {
		h.Items[i] = it
	} else {
		h.addItem(it)
	}
	s.cfg.Pages.Publish(handoff.PageEvent{Kind: handoff.PageItem, Handoff: h.ID, Item: &it})
}

// addItem adds an item; a full record drops its oldest.
func (h *Handoff) addItem(it handoff.RecordItem) {
	if len(h.Items) >= maxItems {
		h.dropItem(0)
		h.LeftOut++
	}
	h.Items = append(h.Items, it)
}

// dropItem removes an item from a record for good.
func (h *Handoff) dropItem(i int) {
	h.dropped.Add(h.Items[i].ID)
	h.Items = slices.Delete(h.Items, i, i+1)
}

// delta appends to an item: to the output of a command, or else to the text. A delta of a dropped item is ignored.
func (s *State) delta(h *Handoff, d handoff.Delta) {
	if h.dropped.Known(d.ItemID) {
		return
	}
	at, i := 0, indexItem(h.Items, d.ItemID)
	if i < 0 { // its beginning was missed: the thread was resumed in the middle
		h.addItem(handoff.RecordItem{ID: d.ItemID, Kind: handoff.ItemMessage, State: itemRunning})
		at, i = -1, len(h.Items)-1
	}
	it := &h.Items[i]
	text := &it.Text
	if it.Kind == handoff.ItemCommand {
		text = &it.Output
	}
	if at == 0 {
		at = len(*text)
	}
	if at+len(d.Text) > maxOutput {
		at, it.Cut = -1, true
	}
	*text = handoff.Tail(*text+d.Text, maxOutput)
	h.logDelta(handoff.EventDelta{ItemID: d.ItemID, Kind: d.Kind, At: at, Text: d.Text})
	s.cfg.Pages.Publish(handoff.PageEvent{Kind: handoff.PageDelta, Handoff: h.ID, ItemID: d.ItemID, Delta: d.Text})
}

// drop removes an item that the agent withdrew. A command stays, as failed: it may have had effects.
func (s *State) drop(h *Handoff, itemID string) {
	i := indexItem(h.Items, itemID)
	switch {
	case i < 0:
	case h.Items[i].Kind == handoff.ItemCommand:
		if h.Items[i].State == itemRunning {
			h.Items[i].State = itemFailed
		}
	default:
		h.dropItem(i)
	}
	s.cfg.Pages.Publish(handoff.PageEvent{Kind: handoff.PageDropped, Handoff: h.ID, ItemID: itemID})
}

// maxChain bounds work that agents ask for: an agent's work may ask for work, and that for work once more. Without a
// bound two agents could give work to each other for ever.
const maxChain = 2

// parentOf returns the handoff whose agent asks for more work, or "" if no agent of ours does. A chain of more than
// [maxChain] such requests is refused. So is a chain whose beginning was removed, since it may be a loop.
func (s *State) parentOf(o handoff.Origin) (handoff.ID, *handoff.Error) {
	i := slices.IndexFunc(s.all, func(h *Handoff) bool {
		return o.Thread != "" && h.ThreadID == o.Thread && h.Outcome == ""
	})
	if i < 0 {
		return "", nil
	}
	depth := 1
	for at := s.all[i]; at.Parent != ""; depth++ {
		if at = s.find(string(at.Parent)); at == nil || depth == maxChain {
			return "", handoff.Fault(handoff.CodeTooDeep, "", "")
		}
	}
	return handoff.ID(s.all[i].ID), nil
}

// free reports whether a new handoff may have the key of this one; see [ledger.Entry.Free].
func (h *Handoff) free() bool {
	if h.begunAs != "" { // the handoff that was begun instead has the words
		return false
	}
	e := ledger.Entry{Status: h.State, Attempt: h.attempt.number, Facts: ledger.Facts{Turn: h.TurnID, Outcome: h.Outcome}}
	if h.Error != nil {
		e.Code = h.Error.Code
	}
	if h.Paused { // the caller has not decided yet, even if the outcome was heard
		e.Status = handoff.StatusCompleted
	}
	return e.Free()
}
