package codex

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/turns"
)

// maxTurns is how many turns of a thread are kept for followers. One more drops another: a turn is followed soon after
// its start or never.
const maxTurns = 8

// A thread is one subscription, shared by its attachments. The reader writes it, followers read it.
type thread struct {
	id   string        // Set once
	gate chan struct{} // Set once: a semaphore of 1 for resuming, starting, steering, interrupting, unsubscribing

	tally   *tally // Set once: of the connection
	changed func() // Set once: to be called when the questions of others have changed; never waits

	mu         sync.Mutex
	refs       int                           // Guarded by connection.mu: attachments
	title      string                        // Guarded by mu
	cwd        string                        // Guarded by mu
	ephemeral  bool                          // Guarded by mu: it cannot be read or resumed
	policy     policy                        // Guarded by mu: what its turns may do
	subscribed bool                          // Guarded by mu
	active     bool                          // Guarded by mu: a turn runs; its id may not be known yet
	running    handoff.TurnID                // Guarded by mu: the running turn; "": none, or not known
	newest     handoff.TurnID                // Guarded by mu
	turnEvents int                           // Guarded by mu: begins and ends of turns so far
	turns      []*turn                       // Guarded by mu; at most maxTurns, oldest first
	questions  turns.Questions[wireQuestion] // Guarded by mu

	goal    wireGoal                          // Guarded by mu, like all that follows; see goals.go
	goes    map[handoff.TurnID]handoff.TurnID // the turn that goes on with the goal of one that was started
	between bool                              // a turn has completed, and the next one for its goal has not begun
	halted  handoff.TurnID                    // the goal was paused here, to stop the work that this turn began
	moved   chan struct{}                     // closed, and made anew, when there may be a next turn or no goal any more
}

// A turn is one turn. All its fields are guarded by the thread's mu, unless they are set once.
type turn struct {
	id         handoff.TurnID // Set once
	reducer    turns.Reducer
	updates    turns.Buffer
	tokens     wireTokens    // the thread's newest usage
	ours       bool          // we started it, or it is followed here
	joined     bool          // it is somebody else's, and our input was put into it; never ours
	complete   bool          // its messages have come from its beginning
	caughtUp   bool          // items from before its first message were read
	startID    string        // the client id of our start; "": we did not start it
	firstID    *string       // the client id of the message that began it; nil: not known
	firstKnown chan struct{} // Set once, closed when firstID is known
	shown      chan struct{} // closed and set to nil at its first message
	resting    bool          // it has not ended, but the thread is idle or messages are missing: it has to be read
	followed   bool          // a follower reads it
	opened     bool          // its first item has come
	byUser     bool          // and was a message of a user
	pursues    bool          // it has worked for the goal of its thread
	stopped    bool          // it has ended, and did not complete

	first handoff.TurnID     // the turn of which it goes on with the goal; "": it goes on with none
	held  *handoff.TurnEnded // how it ended, while subagents of it still work; nil: it has not, or none does
}

// snapshot applies the thread in a response. The reader calls it, so that all later messages are newer.
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

// keepsNothing reports whether the thread is ephemeral: it can neither be read nor resumed.
func (t *thread) keepsNothing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ephemeral
}

// adoptLocked applies the newest turns of a snapshot.
func (t *thread) adoptLocked(turns []wireTurn) {
	if len(turns) == 0 {
		return
	}
	t.newest, t.running = handoff.TurnID(turns[0].ID), ""
	if turns[0].Status == statusInProgress {
		t.running = t.newest
	}
}

// findLocked returns a turn, or nil.
func (t *thread) findLocked(id handoff.TurnID) *turn {
	if i := slices.IndexFunc(t.turns, func(k *turn) bool { return k.id == id }); i >= 0 {
		return t.turns[i]
	}
	return nil
}

// turnLocked returns a turn, and adds it if it is not known.
func (t *thread) turnLocked(id handoff.TurnID) *turn {
	if k := t.findLocked(id); k != nil {
		return k
	}
	if len(t.turns) >= maxTurns {
		t.forgetOneLocked()
	}
	k := &turn{id: id, firstKnown: make(chan struct{}), shown: make(chan struct{}),
		reducer: turns.NewReducer(id), updates: turns.NewBuffer(&t.tally.Tally)}
	t.turns = append(t.turns, k)
	return k
}

// forgetOneLocked drops a turn: one of others that has ended, or else another one of others, or else one of ours.
func (t *thread) forgetOneLocked() {
	i := -1
	for _, may := range []func(*turn) bool{
		func(k *turn) bool { return !k.followed && !k.ours && k.reducer.Ended() },
		func(k *turn) bool { return !k.followed && !k.ours },
		func(k *turn) bool { return !k.followed },
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

// handle handles a notification of this thread.
func (t *thread) handle(method string, n *note) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch method {
	case noteThreadStatus: // "idle" comes just before the end of a turn, or instead of it
		switch {
		case n.Status == nil:
		case n.Status.Type != "active":
			t.restLocked()
		default:
			t.active = true
			for _, k := range t.turns {
				k.resting = k.resting && (k.reducer.Ended() || k.held != nil)
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
	case noteGoal, noteGoalCleared:
		t.goalLocked(n.Goal, handoff.TurnID(n.TurnID))
	case noteTurnStarted, noteTurnCompleted:
		if n.Turn != nil && n.Turn.ID != "" {
			t.turnNoteLocked(method, n)
		}
	case noteItemStarted, noteItemCompleted, noteMessageDelta, noteOutputDelta, noteError, noteUsage, noteReviewed:
		if n.TurnID != "" {
			t.itemNoteLocked(method, n)
		}
	}
}

// doubtRunning has the followers of all turns that have not ended read them: a message of one may be missing.
func (t *thread) doubtRunning() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.restTurnsLocked()
}

func (t *thread) restTurnsLocked() {
	for _, k := range t.turns {
		if !k.reducer.Ended() && !k.resting {
			k.resting = true
			k.updates.Wake()
		}
	}
}

// drop drops all turns and their updates.
func (t *thread) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.turns {
		k.updates.Drop()
	}
	t.turns = nil
	if len(t.questions.Untold()) > 0 {
		t.changed()
	}
}

func (t *thread) restLocked() {
	t.running, t.active = "", false
	t.restTurnsLocked()
}

// turnNoteLocked handles turn/started and turn/completed.
func (t *thread) turnNoteLocked(method string, n *note) {
	w, id := n.Turn, handoff.TurnID(n.Turn.ID)
	k := t.turnLocked(id)
	t.turnEvents++
	if method == noteTurnStarted {
		t.running, t.newest = id, id
		k.resting = false
		k.complete = k.complete || !k.reducer.Begun()
		k.report(k.reducer.Begin())
		t.moveLocked()
		return
	}
	if t.running == id {
		t.running = ""
	}
	k.pursues = k.pursues || t.goal.Status == goalActive
	if n.works && k.ours && t.goal.Status != goalActive {
		t.holdLocked(k, w.end(), w.Items)
	} else {
		t.endLocked(k, w.end(), w.Items)
	}
	t.moveLocked()
}

// endLocked ends a turn and closes its questions. Those that nobody waits for are told with its outcome.
func (t *thread) endLocked(k *turn, end handoff.TurnEnded, items []wireItem) {
	t.closeLocked(func(q *openQuestion) bool {
		async := q.Wire.method == askAsync
		goesOn := q.Wire.params.ThreadID != t.id || async // a subagent's, or nobody waits for it
		if q.Turn != k.id || goesOn && t.goal.Status == goalActive {
			return false
		}
		if async && !q.Taken && end.Status == handoff.TurnCompleted && len(q.Asks) > 0 &&
			!strings.Contains(k.reducer.Answer(), q.Asks[0].Text) { // else the question itself was the last message
			k.reducer.Ask(q.Text)
		}
		return true
	})
	k.held, k.stopped = nil, end.Status != handoff.TurnCompleted
	k.report(k.reducer.End(end, reported(items)))
}

// deltaKinds are the kinds of deltas by method. Set once.
var deltaKinds = map[string]handoff.DeltaKind{noteMessageDelta: handoff.DeltaMessage,
	noteOutputDelta: handoff.DeltaOutput}

// itemNoteLocked handles item/*, deltas, usage and error.
func (t *thread) itemNoteLocked(method string, n *note) {
	k := t.turnLocked(handoff.TurnID(n.TurnID))
	t.openedLocked(k, n.Item)
	if n.Item != nil && n.Item.Type == typeUserMessage && k.complete && k.firstID == nil {
		first := n.Item.client() // of the first message, which says whose turn it is
		k.firstID = &first
		close(k.firstKnown)
		if k.startID != "" && first != k.startID {
			k.ours, k.joined = false, true
		}
	}
	switch method {
	case noteMessageDelta, noteOutputDelta:
		k.report(k.reducer.Delta(n.ItemID, n.Delta, deltaKinds[method]))
	case noteUsage:
		if n.Usage != nil && n.Usage.Total != k.tokens { // the same usage may come twice
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
		take := k.reducer.ItemDone
		if k.held != nil { // only subagents still work: their words add to those of their parent
			take = k.reducer.Add
		}
		k.item(n.Item, take)
	case noteReviewed:
		if it, ok := reviewed(n); ok {
			k.report(k.reducer.ItemDone(it))
		}
	}
}

// item reports an item. The agent's input only shows that the turn runs.
func (k *turn) item(w *wireItem, take func(turns.Item) []handoff.Update) {
	switch {
	case w == nil:
	case w.fromUser():
		k.report(k.reducer.Begin())
	default:
		k.report(take(w.item()))
	}
}

// claim applies the response to a start of ours: the turn id. before was the newest turn when the start was sent. If
// the response names that turn, or if another message began the turn, the server has put our input into somebody else's
// turn, whose questions are not ours.
func (t *thread) claim(id, before handoff.TurnID, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	unheard := t.findLocked(id) == nil
	k := t.turnLocked(id)
	k.startID = message
	if id == before || k.firstID != nil && message != "" && *k.firstID != message {
		k.joined = true
		return
	}
	k.ours = true
	if unheard { // all its messages are still to come
		k.complete = true
	}
	if !k.reducer.Ended() {
		t.running, t.newest = id, id
	}
	if t.announceLocked(k) {
		t.changed()
	}
}

// report puts updates into the buffer of the follower.
func (k *turn) report(updates []handoff.Update) {
	if len(updates) > 0 {
		k.updates.Put(updates...)
	}
	if k.shown != nil && k.reducer.Begun() {
		close(k.shown)
		k.shown = nil
	}
}

// shows returns a channel that is closed at the first message of a turn that we started. nil: that has come, or the
// turn is none of ours.
func (t *thread) shows(id handoff.TurnID) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.findLocked(id)
	if k == nil || k.startID == "" {
		return nil
	}
	return k.shown
}

// lock acquires the thread's gate.
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

// setUnsubscribed notes that the thread is not subscribed, and reports whether it was.
func (t *thread) setUnsubscribed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.subscribed
	t.subscribed = false
	return was
}
