package codex

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/turns"
)

// maxTurns is how many turns of a thread are kept for a follower. When there are more, one is forgotten:
// a turn is followed soon after it starts or not at all.
const maxTurns = 8

// A thread is one subscription, shared by all who attached it. The reader writes it, followers read it.
type thread struct {
	id   string        // Set once
	gate chan struct{} // Set once, holds one: whoever resumes, starts, steers, interrupts or unsubscribes

	tally *tally // Set once: of the connection
	news  func() // Set once: what others are asked here is not as it was; never waits

	mu         sync.Mutex
	refs       int                           // Guarded by the mu of Conn: attachments
	title      string                        // Guarded by mu
	cwd        string                        // Guarded by mu
	ephemeral  bool                          // Guarded by mu: it cannot be read or resumed
	policy     policy                        // Guarded by mu: what its turns may do
	subscribed bool                          // Guarded by mu
	active     bool                          // Guarded by mu: heard that it works; its turn may not be named yet
	running    handoff.TurnID                // Guarded by mu: the turn that runs now, as far as was heard
	newest     handoff.TurnID                // Guarded by mu
	heard      int                           // Guarded by mu: begins and ends of turns heard
	turns      []*turn                       // Guarded by mu; at most maxTurns, oldest first
	questions  turns.Questions[wireQuestion] // Guarded by mu
}

// A turn is what is kept of one turn.
type turn struct {
	id      handoff.TurnID // Set once
	reducer turns.Reducer  // Guarded by the thread's mu
	updates turns.Buffer   // Guarded by the thread's mu
	tokens  wireTokens     // Guarded by the thread's mu: of the thread, when its usage was told last
	ours    bool           // Guarded by the thread's mu: we started it, or somebody here follows it
	foreign bool           // Guarded by the thread's mu: somebody else's that took our words in; never ours
	whole   bool           // Guarded by the thread's mu: heard from its beginning
	read    bool           // Guarded by the thread's mu: what it did before it was heard was read
	mine    string         // Guarded by the thread's mu: the client id of our start, or ""
	first   *string        // Guarded by the thread's mu: the client id of the message that began it
	known   chan struct{}  // Set once, closed when first is known
	shown   chan struct{}  // Guarded by the thread's mu: closed and let go when it was heard to run, or to have ended
	resting bool           // Guarded by the thread's mu: the thread rests although the turn has not ended
	reading bool           // Guarded by the thread's mu: somebody follows it
}

// snapshot takes over what a response tells of the thread. The reader calls it, so that everything heard
// later is newer.
func (t *thread) snapshot(r *threadResult) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subscribed, t.active = true, false
	t.title, t.cwd, t.ephemeral = title(&r.Thread), cmp.Or(r.Cwd, r.Thread.Cwd), r.Thread.Ephemeral
	t.policy = policyOf(r.ApprovalPolicy, r.Sandbox)
	t.running, t.newest = "", ""
	if r.InitialTurnsPage != nil {
		t.adoptLocked(r.InitialTurnsPage.Data)
	}
}

// keepsNothing reports whether the thread can neither be read nor resumed.
func (t *thread) keepsNothing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ephemeral
}

// adoptLocked takes over the newest turns of a snapshot.
func (t *thread) adoptLocked(turns []wireTurn) {
	if len(turns) == 0 {
		return
	}
	t.newest, t.running = handoff.TurnID(turns[0].ID), ""
	if turns[0].Status == statusInProgress {
		t.running = t.newest
	}
}

// findLocked returns what is kept of a turn, or nil.
func (t *thread) findLocked(id handoff.TurnID) *turn {
	if i := slices.IndexFunc(t.turns, func(k *turn) bool { return k.id == id }); i >= 0 {
		return t.turns[i]
	}
	return nil
}

// turnLocked returns what is kept of a turn, and begins to keep it.
func (t *thread) turnLocked(id handoff.TurnID) *turn {
	if k := t.findLocked(id); k != nil {
		return k
	}
	if len(t.turns) >= maxTurns {
		t.forgetOneLocked()
	}
	k := &turn{id: id, known: make(chan struct{}), shown: make(chan struct{}),
		reducer: turns.NewReducer(id), updates: turns.NewBuffer(&t.tally.Tally)}
	t.turns = append(t.turns, k)
	return k
}

// forgetOneLocked makes room. Others' turns go first, the ended ones among them foremost; then ours.
func (t *thread) forgetOneLocked() {
	i := -1
	for _, may := range []func(*turn) bool{
		func(k *turn) bool { return !k.reading && !k.ours && k.reducer.Ended() },
		func(k *turn) bool { return !k.reading && !k.ours },
		func(k *turn) bool { return !k.reading },
	} {
		if i = slices.IndexFunc(t.turns, may); i >= 0 {
			break
		}
	}
	i = max(i, 0)
	t.tally.forgotten.Add(1)
	t.turns[i].updates.Drop()
	t.turns = slices.Delete(t.turns, i, i+1)
}

// hear takes a notification of this thread.
func (t *thread) hear(method string, n *note) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch method {
	case noteThreadStatus: // rest comes just before the end of a turn, or instead of it
		switch {
		case n.Status == nil:
		case n.Status.Type != "active":
			t.restLocked()
		default:
			t.active = true
			for _, k := range t.turns {
				k.resting = k.resting && k.reducer.Ended()
			}
		}
	case noteThreadName:
		if n.ThreadName != nil {
			t.title = title(&wireThread{Name: n.ThreadName})
		}
	case noteThreadSettings:
		if n.Settings != nil {
			t.policy = policyOf(n.Settings.ApprovalPolicy, n.Settings.Sandbox)
			t.cwd = cmp.Or(n.Settings.Cwd, t.cwd)
		}
	case noteThreadClosed, noteThreadArchived, noteThreadDeleted:
		t.subscribed = false
		t.restLocked()
	case noteRequestResolved:
		t.closeLocked(func(q *openQuestion) bool { return string(q.Wire.id) == string(n.RequestID) })
	case noteTurnStarted, noteTurnCompleted:
		if n.Turn != nil && n.Turn.ID != "" {
			t.turnNoteLocked(method, n.Turn)
		}
	case noteItemStarted, noteItemCompleted, noteMessageDelta, noteOutputDelta, noteError, noteUsage, noteReviewed:
		if n.TurnID != "" {
			t.itemNoteLocked(method, n)
		}
	}
}

// mistrust has every turn that has not ended be read: something about one of them may have been left out.
func (t *thread) mistrust() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.doubtLocked()
}

func (t *thread) doubtLocked() {
	for _, k := range t.turns {
		if !k.reducer.Ended() && !k.resting {
			k.resting = true
			k.updates.Wake()
		}
	}
}

// drop lets go of everything that nobody will read.
func (t *thread) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.turns {
		k.updates.Drop()
	}
	t.turns = nil
	if len(t.questions.Untold()) > 0 {
		t.news()
	}
}

func (t *thread) restLocked() {
	t.running, t.active = "", false
	t.doubtLocked()
}

// turnNoteLocked takes turn/started and turn/completed.
func (t *thread) turnNoteLocked(method string, w *wireTurn) {
	id := handoff.TurnID(w.ID)
	k := t.turnLocked(id)
	t.heard++
	if method == noteTurnStarted {
		t.running, t.newest = id, id
		k.resting = false
		k.whole = k.whole || !k.reducer.Begun()
		k.report(k.reducer.Begin())
		return
	}
	if t.running == id {
		t.running = ""
	}
	t.endLocked(k, w.end(), w.Items)
}

// endLocked ends a turn and what it asked.
func (t *thread) endLocked(k *turn, end handoff.TurnEnded, items []wireItem) {
	t.closeLocked(func(q *openQuestion) bool { return q.Turn == k.id })
	k.report(k.reducer.End(end, reported(items)))
}

// deltaKinds says what each method streams. Set once.
var deltaKinds = map[string]handoff.DeltaKind{noteMessageDelta: handoff.DeltaMessage,
	noteOutputDelta: handoff.DeltaOutput}

// itemNoteLocked takes item/*, deltas, usage and error.
func (t *thread) itemNoteLocked(method string, n *note) {
	k := t.turnLocked(handoff.TurnID(n.TurnID))
	if n.Item != nil && n.Item.Type == typeUserMessage && k.whole && k.first == nil {
		first := n.Item.client() // the first message tells whose turn it is
		k.first = &first
		close(k.known)
		if k.mine != "" && first != k.mine {
			k.ours, k.foreign = false, true
		}
	}
	switch method {
	case noteMessageDelta, noteOutputDelta:
		k.report(k.reducer.Delta(n.ItemID, n.Delta, deltaKinds[method]))
	case noteUsage:
		if n.Usage != nil && n.Usage.Total != k.tokens { // the same may be told twice
			k.tokens = n.Usage.Total
			k.report(k.reducer.Used(handoff.Usage(n.Usage.Last)))
		}
	case noteError:
		if n.WillRetry {
			k.report(k.reducer.Retrying())
		}
	case noteItemStarted:
		k.item(n.Item, k.reducer.ItemStarted)
	case noteItemCompleted:
		k.item(n.Item, k.reducer.ItemDone)
	case noteReviewed:
		if it, ok := reviewed(n); ok {
			k.report(k.reducer.ItemDone(it))
		}
	}
}

// item reports an item. What the agent was told shows only that the turn runs.
func (k *turn) item(w *wireItem, take func(turns.Item) []handoff.Update) {
	switch {
	case w == nil:
	case w.fromUser():
		k.report(k.reducer.Begin())
	default:
		k.report(take(w.item()))
	}
}

// claim takes the response to a start of ours. before is the newest turn when the start was sent: if that
// came back, the server put our words into somebody else's turn, whose questions are not ours; the same
// when another message was heard to begin the turn, or is heard to.
func (t *thread) claim(id, before handoff.TurnID, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	unheard := t.findLocked(id) == nil
	k := t.turnLocked(id)
	k.mine = message
	if id == before || k.first != nil && message != "" && *k.first != message {
		k.foreign = true
		return
	}
	k.ours = true
	if unheard { // all of it is still to come
		k.whole = true
	}
	if !k.reducer.Ended() {
		t.running, t.newest = id, id
	}
	if t.announceLocked(k) {
		t.news()
	}
}

// report keeps updates for the follower.
func (k *turn) report(updates []handoff.Update) {
	if len(updates) > 0 {
		k.updates.Put(updates...)
	}
	if k.shown != nil && k.reducer.Begun() {
		close(k.shown)
		k.shown = nil
	}
}

// shows returns what closes when a turn that was acknowledged here shows itself; nil: it has, or is none.
func (t *thread) shows(id handoff.TurnID) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.findLocked(id)
	if k == nil || k.mine == "" {
		return nil
	}
	return k.shown
}

// lock takes the thread's gate: one of resume, start, steer, interrupt and unsubscribe at a time.
func (t *thread) lock(ctx context.Context) error {
	select {
	case t.gate <- struct{}{}:
		return nil
	case <-ctx.Done():
		return &servers.NotSentError{Cause: context.Cause(ctx)}
	}
}

func (t *thread) unlock() { <-t.gate }

func (t *thread) isSubscribed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.subscribed
}

// setUnsubscribed reports whether the thread was subscribed.
func (t *thread) setUnsubscribed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.subscribed
	t.subscribed = false
	return was
}
