package codex

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers/turns"
)

// How long a follower waits for a message before it reads the thread.
const (
	restGrace      = time.Second      // for the end of a turn whose thread is idle: it comes within 1 ms or never
	startGrace     = 10 * time.Second // for the first message of a turn
	catchUpTimeout = 2 * time.Second  // for reading earlier items; new updates wait meanwhile
)

// readings are the pauses after readings of a thread that did not show the end of the turn.
var readings = handoff.Backoff{First: time.Second, Longest: 30 * time.Second}

// searchTurns is how many of the newest turns of a thread are searched.
const searchTurns = 20

// maxUnread is how often reading the items of an ended turn may fail, before the turn ends without them.
const maxUnread = 3

// maxMissing is how often a turn may be missing in its thread, before it counts as gone.
const maxMissing = 3

var (
	errDetached = errors.New("detached")
	errBurst    = errors.New("updates came faster than they were read")
	errFollowed = errors.New("the turn is followed already")
)

// A follower reads one turn.
type follower struct {
	agent *agent         // Set once
	first handoff.TurnID // Set once: the turn that was started

	turn *turn // Owned by the loop of Follow, as what follows: first, or the one that goes on with its goal

	// Owned by the loop of Follow.
	after   handoff.TurnID // the turn after turn, if that ended unheard; "": none, or not known
	pause   time.Duration  // until the next reading of the thread; 0: see [thread.patience]
	unclear int            // readings that did not show the end
	doubts  int            // readings that showed a doubtful end
	missing int            // readings without the turn
	unread  int            // readings of its items that failed
}

// Follow yields the updates of exactly one turn. Its updates since the thread was attached are kept, also if Follow is
// called late; items that it finished before are read first. A turn that has ended before is read as a whole.
func (a *agent) Follow(ctx context.Context, id handoff.TurnID) iter.Seq2[handoff.Update, error] {
	return a.follow(ctx, id, true)
}

// Watch implements [handoff.Bystander].
func (a *agent) Watch(ctx context.Context, id handoff.TurnID) iter.Seq2[handoff.Update, error] {
	return a.follow(ctx, id, false)
}

// follow yields the updates of a turn. ours: the turn's questions are reported here.
func (a *agent) follow(ctx context.Context, id handoff.TurnID, ours bool) iter.Seq2[handoff.Update, error] {
	return func(yield func(handoff.Update, error) bool) {
		k, err := a.thread.follow(id, ours)
		if err != nil {
			yield(nil, a.name().fault(err, handoff.CodeInternal, handoff.CodeInternal))
			return
		}
		f := &follower{agent: a, turn: k, first: id}
		defer func() { a.thread.leave(f.turn) }()
		if err := f.catchUp(ctx); err != nil {
			yield(nil, err)
			return
		}
	follow:
		for {
			for u := range a.thread.updates(f.turn) {
				end, ended := u.(handoff.TurnEnded)
				if ended && ours && end.Status == handoff.TurnCompleted {
					last := f.turn
					on, err := f.goOn(ctx)
					if err != nil {
						yield(nil, err)
						return
					}
					if on {
						a.thread.forget(last)
						if err := f.catchUp(ctx); err != nil {
							yield(nil, err)
							return
						}
						if !yield(handoff.GoesOn{}, nil) {
							return
						}
						continue follow
					}
					end = a.thread.halt(f.first, f.turn, end)
					u = end
				}
				if !yield(u, nil) {
					return
				}
				if ended {
					a.thread.forget(f.turn)
					return
				}
			}
			if err := f.wait(ctx); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// catchUp reads the items that a turn finished before its first message here, and its end if it does not run.
func (f *follower) catchUp(ctx context.Context) error {
	c, t := f.agent.conn, f.agent.thread
	if !t.beganUnheard(f.turn) {
		return nil
	}
	readCtx, cancel := context.WithTimeoutCause(ctx, catchUpTimeout, errTimeout)
	defer cancel()
	items, err := c.client.itemsList(readCtx, t.id, string(f.turn.id))
	if err == nil { // without them, the messages have to do
		t.catchUp(f.turn, items)
		c.readAsync(t, f.turn.id, items)
	}
	c.callSubagents(readCtx, t, f.turn.id, items)
	if !t.rests(f.turn) {
		return nil
	}
	return f.readEnd(ctx)
}

// wait returns when there may be updates, or with the error that ends following.
func (f *follower) wait(ctx context.Context) error {
	t, k := f.agent.thread, f.turn
	patience := t.patience(k)
	if patience > 0 && f.pause > 0 {
		patience = f.pause
	}
	heard, err := f.agent.await(ctx, k.updates.Awake(), patience)
	if err == nil && !heard {
		return f.readEnd(ctx)
	}
	t.mu.Lock()
	waits, lost := k.updates.Len() > 0, k.updates.Lost()
	t.mu.Unlock()
	switch {
	case waits: // updates from before the loss come first
		return nil
	case lost:
		err = errBurst
	case err == nil:
		return nil
	}
	return f.ends(ctx, err)
}

// ends returns the error that ends following, for the end of ctx, of the attachment or of the connection.
func (f *follower) ends(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return handoff.AsError(context.Cause(ctx))
	}
	return f.agent.name().fault(err, handoff.CodeAgentGone, handoff.CodeAgentGone)
}

// readEnd reads the end of a turn from the thread. It returns an error if the turn is gone.
func (f *follower) readEnd(ctx context.Context) error {
	c, t := f.agent.conn, f.agent.thread
	if t.holds(f.turn.id) {
		c.callSubagents(ctx, t, f.turn.id, nil)
		c.letEnd(t, f.turn.id)
		f.backOff()
		return nil
	}
	if err := c.subscribe(ctx, t); err != nil && c.peer.Lost() == nil { // the server may have unloaded it
		c.log.Debug("loading a followed thread again", zap.Error(err))
	}
	turns, i, err := f.find(ctx)
	if err != nil && !refusedAs(err, refusedNeverRan) {
		f.backOff()
		return nil // a lost connection shows by itself
	}
	if i < 0 {
		f.backOff()
		if f.missing++; f.missing >= maxMissing {
			return f.agent.name().fill(handoff.Fault(handoff.CodeTurnGone, "", ""))
		}
		return nil
	}
	w := turns[i]
	switch {
	case w.Status == statusInProgress:
		f.backOff()
		t.mu.Lock()
		f.turn.report(f.turn.reducer.Begin())
		t.mu.Unlock()
		return nil
	case doubtful(w) && f.doubts < len(rereadDelays):
		f.pause = rereadDelays[f.doubts]
		f.doubts++
		return nil
	}
	items, err := f.items(ctx, w.Status, i+1)
	if err != nil {
		if f.unread++; f.unread < maxUnread {
			f.backOff()
			return nil
		}
	}
	end := w.end()
	if doubtful(w) { // it stays so: the server crashed
		end.Code, end.Detail = handoff.CodeAgentEnded, "nobody stopped it"
		if died := c.cfg.died.Load(); died != nil {
			end.Detail = *died
		}
	}
	if i > 0 {
		f.after = handoff.TurnID(turns[i-1].ID)
	}
	ours := t.isOurs(f.turn.id)
	t.conclude(f.turn, end, items, err, len(c.running(t, f.turn.id)) > 0)
	c.dismiss(t, f.turn.id, ours)
	return nil
}

// find reads turns of the thread, newest first, up to the page with the follower's, and returns its index; -1: it is
// not among them.
func (f *follower) find(ctx context.Context) (all []wireTurn, at int, err error) {
	limit, after := searchTurns, (*string)(nil)
	for range searchPages {
		page, err := f.agent.conn.client.turnsList(ctx, f.agent.thread.id, after, limit, "notLoaded")
		if err != nil {
			return nil, -1, err
		}
		all = append(all, page.Data...)
		at = slices.IndexFunc(all, func(w wireTurn) bool { return w.ID == string(f.turn.id) })
		if after = page.NextCursor; at >= 0 || after == nil {
			return all, at, nil
		}
		limit = maxPage
	}
	return all, -1, nil
}

// errNoItems says that a completed turn is listed without items: it has at least the message that began it.
var errNoItems = errors.New("no items are listed")

// items reads the items of a turn, or else its last message. The turn is among that many newest turns of its thread.
func (f *follower) items(ctx context.Context, status string, among int) ([]wireItem, error) {
	ask, thread, id := f.agent.conn.client, f.agent.thread.id, string(f.turn.id)
	items, err := ask.itemsList(ctx, thread, id)
	if err == nil && len(items) == 0 && status == statusCompleted {
		err = errNoItems
	}
	if err == nil {
		return items, nil
	}
	page, unread := ask.turnsList(ctx, thread, nil, among, "summary")
	i := slices.IndexFunc(page.Data, func(w wireTurn) bool { return w.ID == id && len(w.Items) > 0 })
	if unread == nil && i >= 0 {
		return page.Data[i].Items, nil
	}
	return nil, err
}

// backOff sets a longer pause, after a reading that did not show the end.
func (f *follower) backOff() {
	f.pause = readings.Step(f.unclear)
	f.unclear++
}

// follow returns a turn for its follower, of whom there may be one at a time: two would take each other's updates.
func (t *thread) follow(id handoff.TurnID, ours bool) (*turn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.turnLocked(id)
	if k.followed {
		return nil, errFollowed
	}
	if t.running != id && !k.reducer.Ended() { // its end was not heard: read it
		k.resting = true
	}
	if k.updates.Lost() { // updates were dropped: read all of it
		k.updates.Clear()
		k.reducer, k.updates = turns.NewReducer(k.id), turns.NewBuffer(&t.tally.Tally)
		k.complete, k.caughtUp, k.resting, k.held = false, false, t.running != k.id, nil
		t.questions.Retell(k.id)
	}
	k.followed = true
	if ours && !k.joined {
		k.ours = true
		if t.announceLocked(k) {
			t.changed()
		}
	}
	return k, nil
}

// beganUnheard reports, only the first time, whether a turn may have finished items whose messages did not come here.
// It also reports the begin of a turn that runs according to the newest snapshot.
func (t *thread) beganUnheard(k *turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k.complete || k.caughtUp {
		return false
	}
	k.caughtUp = true
	if t.running == k.id {
		k.report(k.reducer.Begin())
	}
	return true
}

// catchUp reports items that a turn finished before its first message here. They come before all other updates.
func (t *thread) catchUp(k *turn, items []wireItem) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if updates := k.reducer.CatchUp(reported(items)); len(updates) > 0 {
		k.updates.PutFirst(updates...)
	}
	if k.reducer.Ended() {
		k.updates.Reword(k.reducer.Answer())
	}
}

// rests reports whether a turn has not ended, though its thread may be idle.
func (t *thread) rests(k *turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return k.resting && !k.reducer.Ended()
}

// leave ends following a turn. It may be followed again.
func (t *thread) leave(k *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k.followed = false
}

// updates takes the buffered updates of a turn, oldest first.
func (t *thread) updates(k *turn) iter.Seq[handoff.Update] {
	return func(yield func(handoff.Update) bool) {
		for {
			t.mu.Lock()
			u, ok := k.updates.Take()
			t.mu.Unlock()
			if !ok || !yield(u) {
				return
			}
		}
	}
}

// patience returns how long to wait for an update of a turn before reading its thread; 0: for ever.
func (t *thread) patience(k *turn) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case k.resting:
		return restGrace
	case !k.reducer.Begun():
		return startGrace
	}
	return 0
}

// conclude ends a turn with its end and items, which were read. unread is the error of reading the items, or nil. works
// says that subagents of it still work.
func (t *thread) conclude(k *turn, end handoff.TurnEnded, items []wireItem, unread error, works bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running == k.id {
		t.running = ""
	}
	if unread != nil && end.Status == handoff.TurnCompleted && !k.reducer.Answered() {
		end.Code, end.Detail = handoff.CodeUnread, handoff.ClipRunes(unread.Error(), maxDetail)
	}
	if works && k.ours && t.goal.Status != goalActive {
		t.holdLocked(k, end, items)
	} else {
		t.endLocked(k, end, items)
	}
}

// forget drops a turn that was followed to its end.
func (t *thread) forget(k *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k.updates.Clear()
	t.turns = slices.DeleteFunc(t.turns, func(o *turn) bool { return o == k })
}

// runs returns the newest turn, and whether a turn runs or is about to.
func (t *thread) runs() (newest handoff.TurnID, busy bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.newest, t.active || t.running != ""
}

// mayDo returns the policy of the thread's turns.
func (t *thread) mayDo() policy {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.policy
}

// awaitOwner waits at most joinGrace for the message that began a turn of ours, if that will come here.
func (a *agent) awaitOwner(ctx context.Context, id handoff.TurnID) {
	a.thread.mu.Lock()
	k := a.thread.findLocked(id)
	wait := k != nil && k.complete && !k.joined && k.startID != ""
	a.thread.mu.Unlock()
	if wait {
		_, _ = a.await(ctx, k.firstKnown, joinGrace) // without the message the turn counts as ours
	}
}
