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

// How long a follower waits for what should come before it reads the thread.
const (
	restGrace      = time.Second      // the thread rests: the end of its turn comes within a millisecond, or not at all
	startGrace     = 10 * time.Second // a started turn shows itself
	catchUpTimeout = 2 * time.Second  // how long new events wait until the missed ones are read
)

// readings are the pauses after readings of a thread that decided nothing.
var readings = handoff.Backoff{First: time.Second, Longest: 30 * time.Second}

// searchTurns is how many of the newest turns of a thread are searched.
const searchTurns = 20

// maxUnread is how often the items of a turn that has ended are read before what was heard of it must do.
const maxUnread = 3

// maxMissing is how often a turn may be missing in its thread before it counts as lost.
const maxMissing = 3

var (
	errDetached = errors.New("detached")
	errBurst    = errors.New("updates came faster than they were read")
	errFollowed = errors.New("the turn is followed already")
)

// A follower reads one turn.
type follower struct {
	agent *agent // Set once
	turn  *turn  // Set once

	// Owned by the loop of Follow.
	pause   time.Duration // until the next reading of the thread; 0: by the state of the turn
	unclear int           // readings that decided nothing
	doubts  int           // readings that showed the turn interrupted without an end
	missing int           // readings that did not show the turn
	unread  int           // readings of its items that failed
}

// Follow yields the updates of exactly one turn. What was heard of it since the thread was attached is
// kept, also when Follow is called late; what it finished before is read first. A turn that ended before
// is read as a whole.
func (a *agent) Follow(ctx context.Context, id handoff.TurnID) iter.Seq2[handoff.Update, error] {
	return a.follow(ctx, id, true)
}

// Watch implements [handoff.Bystander].
func (a *agent) Watch(ctx context.Context, id handoff.TurnID) iter.Seq2[handoff.Update, error] {
	return a.follow(ctx, id, false)
}

// follow yields the updates of a turn. ours is whether what it asks is asked here.
func (a *agent) follow(ctx context.Context, id handoff.TurnID, ours bool) iter.Seq2[handoff.Update, error] {
	return func(yield func(handoff.Update, error) bool) {
		k, err := a.thread.follow(id, ours)
		if err != nil {
			yield(nil, a.name().fault(err, handoff.CodeInternal, handoff.CodeInternal))
			return
		}
		defer a.thread.leave(k)
		f := &follower{agent: a, turn: k}
		if err := f.catchUp(ctx); err != nil {
			yield(nil, err)
			return
		}
		for {
			for u := range a.thread.updates(f.turn) {
				if !yield(u, nil) {
					return
				}
				if _, ended := u.(handoff.TurnEnded); ended {
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

// catchUp reads what a turn finished before it was heard of here, and how it ended if it does not run.
func (f *follower) catchUp(ctx context.Context) error {
	c, t := f.agent.conn, f.agent.thread
	if !t.beganUnheard(f.turn) {
		return nil
	}
	readCtx, cancel := context.WithTimeoutCause(ctx, catchUpTimeout, errTimeout)
	defer cancel()
	items, err := c.client.itemsList(readCtx, t.id, string(f.turn.id))
	if err == nil { // without them, what is heard must do
		t.catchUp(f.turn, items)
	}
	if !t.rests(f.turn) {
		c.callSubagents(readCtx, t, f.turn.id, items)
		return nil
	}
	return f.readEnd(ctx)
}

// wait returns when there may be something to read, or with the error that ends following.
func (f *follower) wait(ctx context.Context) error {
	t, k, name := f.agent.thread, f.turn, f.agent.name()
	patience := t.patience(k)
	if patience > 0 && f.pause > 0 {
		patience = f.pause
	}
	var timeout <-chan time.Time
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		timeout = timer.C
	}
	var cause error
	select {
	case <-k.updates.Awake():
	case <-timeout:
		return f.readEnd(ctx)
	case <-ctx.Done():
		return handoff.AsError(context.Cause(ctx))
	case <-f.agent.closed:
		return name.fault(errDetached, handoff.CodeAgentGone, handoff.CodeAgentGone)
	case <-f.agent.conn.peer.Done():
		cause = f.agent.conn.peer.Lost()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case k.updates.Len() > 0: // what was heard before the loss is read first
		return nil
	case k.updates.Lost():
		cause = errBurst
	}
	if cause == nil {
		return nil
	}
	return name.fault(cause, handoff.CodeAgentGone, handoff.CodeAgentGone)
}

// readEnd reads what became of a turn whose end did not come. It returns an error when the turn is lost.
func (f *follower) readEnd(ctx context.Context) error {
	c, t := f.agent.conn, f.agent.thread
	if err := c.subscribe(ctx, t); err != nil && c.peer.Lost() == nil { // the server had unloaded it
		c.log.Debug("loading a followed thread again", zap.Error(err))
	}
	page, err := c.client.turnsList(ctx, t.id, nil, searchTurns, "notLoaded")
	if err != nil && !refusedAs(err, refusedNeverRan) {
		f.later()
		return nil // a lost connection shows by itself
	}
	i := slices.IndexFunc(page.Data, func(w wireTurn) bool { return w.ID == string(f.turn.id) })
	if i < 0 {
		f.later()
		if f.missing++; f.missing >= maxMissing {
			return f.agent.name().fill(handoff.Fault(handoff.CodeTurnGone, "", ""))
		}
		return nil
	}
	w := page.Data[i]
	switch {
	case w.Status == statusInProgress:
		f.later()
		t.mu.Lock()
		f.turn.report(f.turn.reducer.Begin())
		t.mu.Unlock()
		return nil
	case doubtful(w) && f.doubts < len(doubts):
		f.pause = doubts[f.doubts]
		f.doubts++
		return nil
	}
	items, err := f.items(ctx, w.Status, i+1)
	if err != nil {
		if f.unread++; f.unread < maxUnread {
			f.later()
			return nil
		}
	}
	end := w.end()
	if doubtful(w) { // still: whatever ran it was lost
		end.Code, end.Detail = handoff.CodeAgentEnded, "nobody stopped it"
		if died := c.cfg.died.Load(); died != nil {
			end.Detail = *died
		}
	}
	t.conclude(f.turn, end, items, err)
	c.dismiss(t, f.turn.id)
	return nil
}

// errNoItems tells that the items of a turn that completed are not there: at least what began it is one.
var errNoItems = errors.New("no items are listed")

// items reads what a turn finished, which is among so many newest turns of its thread: its items, else its last
// message.
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

// later reads again after a reading that decided nothing.
func (f *follower) later() {
	f.pause = readings.Step(f.unclear)
	f.unclear++
}

// follow begins to read a turn. Two readers would take each other's updates.
func (t *thread) follow(id handoff.TurnID, ours bool) (*turn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.turnLocked(id)
	if k.reading {
		return nil, errFollowed
	}
	if t.running != id && !k.reducer.Ended() { // its end will not be heard: it is read. Its usage may have been told since
		k.resting = true
	}
	if k.updates.Lost() { // it was given up: what it did is read, as if it was not heard
		k.updates.Clear()
		k.reducer, k.updates = turns.NewReducer(k.id), turns.NewBuffer(&t.tally.Tally)
		k.whole, k.read, k.resting = false, false, t.running != k.id
		t.questions.Retell(k.id)
	}
	k.reading = true
	if ours && !k.foreign {
		k.ours = true
		if t.announceLocked(k) {
			t.news()
		}
	}
	return k, nil
}

// beganUnheard reports, once, whether a turn may have finished items that were not heard here. A turn that
// the newest snapshot showed running has begun for its follower.
func (t *thread) beganUnheard(k *turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k.whole || k.read {
		return false
	}
	k.read = true
	if t.running == k.id {
		k.report(k.reducer.Begin())
	}
	return true
}

// catchUp reports items that a turn finished before it was heard of, before everything that was heard.
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

// rests reports whether a turn has not ended and its thread rests.
func (t *thread) rests(k *turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return k.resting && !k.reducer.Ended()
}

// leave ends reading a turn; somebody else may go on.
func (t *thread) leave(k *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k.reading = false
}

// updates yields what is kept of a turn, oldest first.
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

// patience returns how long to wait for a turn before reading its thread; 0: for ever.
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

// conclude ends a turn by what was read of it. unread says why its items could not be; nil: they were.
func (t *thread) conclude(k *turn, end handoff.TurnEnded, items []wireItem, unread error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running == k.id {
		t.running = ""
	}
	if unread != nil && end.Status == handoff.TurnCompleted && !k.reducer.Answered() {
		end.Code, end.Detail = handoff.CodeUnread, handoff.ClipRunes(unread.Error(), maxDetail)
	}
	t.endLocked(k, end, items)
}

// forget drops a turn that was read to its end.
func (t *thread) forget(k *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k.updates.Clear()
	t.turns = slices.DeleteFunc(t.turns, func(o *turn) bool { return o == k })
}

// runs returns the newest turn, and whether one runs or is about to.
func (t *thread) runs() (newest handoff.TurnID, busy bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.newest, t.active || t.running != ""
}

// mayDo returns what the turns of the thread may do.
func (t *thread) mayDo() policy {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.policy
}

// knowOwner waits for the message that began a turn of ours, unless that cannot be told.
func (a *agent) knowOwner(ctx context.Context, id handoff.TurnID) {
	a.thread.mu.Lock()
	k := a.thread.findLocked(id)
	wait := k != nil && k.whole && !k.foreign && k.mine != ""
	a.thread.mu.Unlock()
	if wait {
		_, _ = a.await(ctx, k.known, joinGrace) // else nobody can tell
	}
}
