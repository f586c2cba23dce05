package codex

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// reconcileFor is the pause between two looks at a thread. If both show the same, the start did not run. A start that
// was written just before its connection was lost had begun by the first look, or never began, in 80 of 80 tries.
const reconcileFor = 2 * time.Second

// searchPages bounds the pages of a thread's items that are read.
const searchPages = 6

// Reconcile returns the turn of a start with our id whose acknowledgement was lost; "": the start did not run. It looks
// at the thread until a turn carries our id, or two looks that are Config.Reconcile apart show the same. While somebody
// else's turn that is newer than the watermark after runs, our input may still wait in it: then Reconcile goes on, and
// if ctx ends, the error is [handoff.CodeUnknownStart]. An ephemeral thread cannot be looked at: the error is
// [handoff.CodeUnsupported].
func (a *agent) Reconcile(ctx context.Context, after handoff.TurnID, id string) (handoff.TurnID, error) {
	if a.thread.keepsNothing() {
		return "", handoff.Fault(handoff.CodeUnsupported, a.conn.cfg.Name, "nothing is kept of the session")
	}
	var before []wireTurn
	for look := 0; ; look++ {
		turns, err := a.look(ctx)
		if err != nil {
			return "", a.name().fault(err, handoff.CodeAgentGone, handoff.CodeAgentGone)
		}
		fresh := newer(turns, after)
		entries, all, err := a.userItems(ctx, func(e itemEntry) bool { // up to an item that is not of a fresh turn
			return !slices.ContainsFunc(fresh, func(w wireTurn) bool { return w.ID == e.TurnID })
		})
		if err != nil {
			return "", a.name().fault(err, handoff.CodeAgentGone, handoff.CodeAgentGone)
		}
		v := findStart(turns, entries, after, id, false)
		if other := findStart(turns, entries, after, id, true); v != other {
			has, err := a.hasGoal(ctx)
			if err != nil {
				return "", a.name().fault(err, handoff.CodeAgentGone, handoff.CodeAgentGone)
			}
			if has {
				v = other
			}
		}
		v.undecided = v.undecided || !all
		if v.duplicate {
			a.conn.log.Error("two turns carry one id of ours", zap.String("thread", a.thread.id))
		}
		switch {
		case v.joined:
			return v.turn, handoff.Fault(handoff.CodeJoined, a.conn.cfg.Name, "turn "+string(v.turn)+" took it in")
		case v.certain, look > 0 && !v.undecided && sameTurns(before, turns):
			return v.turn, nil
		}
		before = turns
		if _, err := a.await(ctx, nil, a.conn.cfg.Reconcile); err != nil {
			if ctx.Err() != nil && v.undecided {
				return "", a.name().fault(err, handoff.CodeUnknownStart, handoff.CodeUnknownStart)
			}
			return "", a.name().fault(err, handoff.CodeAgentGone, handoff.CodeAgentGone)
		}
	}
}

// look resumes the thread and returns its newest turns, newest first. Resuming shows also turns that a crash of the
// server has cut.
func (a *agent) look(ctx context.Context) ([]wireTurn, error) {
	if err := a.enter(ctx); err != nil {
		return nil, err
	}
	defer a.thread.unlock()
	page, err := a.conn.resumed(ctx, a.thread, searchTurns)
	switch {
	case err != nil && handoff.AsError(err).Code == handoff.CodeSessionGone:
		return nil, nil // it never ran
	case err != nil:
		return nil, err
	case page != nil:
		return page.Data, nil
	}
	turns, err := a.conn.client.turnsList(ctx, a.thread.id, nil, searchTurns, "notLoaded")
	if refusedAs(err, refusedNeverRan) {
		return nil, nil
	}
	return turns.Data, err
}

// newer returns the turns that are newer than the watermark.
func newer(turns []wireTurn, after handoff.TurnID) []wireTurn {
	i := slices.IndexFunc(turns, func(w wireTurn) bool { return w.ID == string(after) })
	if i < 0 {
		return turns
	}
	return turns[:i]
}

// userItems reads the users' messages in the thread, newest first, up to the page with an item that is enough. all
// reports whether it came to that page, or to the beginning of the thread. If not, it adds the first messages of the
// newest turns, since a turn may have more items than are read here.
func (a *agent) userItems(ctx context.Context, enough func(itemEntry) bool) (found []itemEntry, all bool, err error) {
	params := itemsListParams{ThreadID: a.thread.id}
	for range searchPages {
		page, err := a.conn.client.itemsBefore(ctx, params)
		if refusedAs(err, refusedNeverRan) {
			return nil, true, nil
		}
		if err != nil {
			return nil, false, err
		}
		for _, e := range page.Data {
			if e.Item.fromUser() {
				found = append(found, e)
			}
		}
		params.Cursor = page.NextCursor
		if params.Cursor == nil || slices.ContainsFunc(page.Data, enough) {
			return found, true, nil
		}
	}
	return append(found, a.firstItems(ctx)...), false, nil
}

// firstItems reads the messages that began the newest turns, newest first; nil: they cannot be read.
func (a *agent) firstItems(ctx context.Context) (found []itemEntry) {
	page, err := a.conn.client.turnsList(ctx, a.thread.id, nil, searchTurns, "summary")
	if err != nil {
		a.conn.log.Debug("summaries of turns not read", zap.String("thread", a.thread.id), zap.Error(err))
	}
	for _, w := range page.Data {
		for _, item := range w.Items {
			if item.fromUser() {
				found = append(found, itemEntry{w.ID, item})
			}
		}
	}
	return found
}

// A finding is the result of one look at the thread for a start.
type finding struct {
	turn      handoff.TurnID // the likeliest turn of the start; "": none
	certain   bool           // turn carries our id
	joined    bool           // turn is somebody else's, and our input was put into it
	undecided bool           // our input may still wait in somebody else's running turn
	duplicate bool           // more than one turn carries our id
}

// findStart finds the turn of a start with our id. It is pure. turns and entries come newest first. A turn newer than
// the watermark after without any user's message counts as ours: it may have ended, also by a crash of the server,
// before its message was recorded. If it has ended by itself in a thread with a goal, it was the goal's.
func findStart(turns []wireTurn, entries []itemEntry, after handoff.TurnID, id string, goal bool) finding {
	var v finding
	fresh := newer(turns, after)
	for _, w := range fresh {
		first, any := beginning(entries, w.ID)
		switch {
		case any && first.Item.client() == id && id != "":
			v.duplicate = v.duplicate || v.certain
			v.turn, v.certain = handoff.TurnID(w.ID), true
		case v.certain:
		case !any && (!goal || doubtful(w) || w.Status == statusInProgress):
			v.turn = handoff.TurnID(w.ID) // the oldest such turn is the likeliest
		case w.Status == statusInProgress:
			v.undecided = true
		}
	}
	if v.certain || id == "" {
		v.undecided = false
		return v
	}
	for _, e := range entries {
		if e.Item.client() == id {
			return finding{turn: handoff.TurnID(e.TurnID), joined: true}
		}
	}
	if len(fresh) < len(turns) && turns[len(fresh)].Status == statusInProgress {
		v.undecided = true // the watermark itself runs, so the start went into it or was refused
	}
	return v
}

// beginning returns the oldest user's message in a turn.
func beginning(entries []itemEntry, turn string) (itemEntry, bool) {
	for _, e := range slices.Backward(entries) {
		if e.TurnID == turn {
			return e, true
		}
	}
	return itemEntry{}, false
}

// sameTurns reports whether two looks show the same.
func sameTurns(a, b []wireTurn) bool {
	return slices.EqualFunc(a, b, func(x, y wireTurn) bool { return x.ID == y.ID && x.Status == y.Status })
}
