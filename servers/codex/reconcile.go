package codex

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// reconcileFor is the wait between two looks; if they are equal, the start did not run. One that was written just
// before its connection was lost had begun by the first look in 80 of 80 tries, or never began.
const reconcileFor = 2 * time.Second

// searchPages bounds the reading of a thread's items, newest first.
const searchPages = 6

// Reconcile tells what became of a start with our id whose acknowledgement was lost. It looks at the thread
// until two looks that are Config.Reconcile apart are equal; a turn that carries our id ends it at once. While
// somebody else's turn that is newer than the watermark runs, our words may still wait in it: then it goes
// on, and when ctx ends that is [handoff.CodeUnknownStart]. A thread of which nothing is kept cannot be looked at:
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
		entries, all, err := a.said(ctx, func(e itemEntry) bool { // older than the watermark is enough
			return !slices.ContainsFunc(fresh, func(w wireTurn) bool { return w.ID == e.TurnID })
		})
		if err != nil {
			return "", a.name().fault(err, handoff.CodeAgentGone, handoff.CodeAgentGone)
		}
		v := findStart(turns, entries, after, id)
		v.open = v.open || !all
		if v.twice {
			a.conn.log.Error("two turns carry one id of ours", zap.String("thread", a.thread.id))
		}
		switch {
		case v.joined:
			return v.turn, handoff.Fault(handoff.CodeJoined, a.conn.cfg.Name, "turn "+string(v.turn)+" took it in")
		case v.certain, look > 0 && !v.open && sameTurns(before, turns):
			return v.turn, nil
		}
		before = turns
		if _, err := a.await(ctx, nil, a.conn.cfg.Reconcile); err != nil {
			if ctx.Err() != nil && v.open {
				return "", a.name().fault(err, handoff.CodeUnknownStart, handoff.CodeUnknownStart)
			}
			return "", a.name().fault(err, handoff.CodeAgentGone, handoff.CodeAgentGone)
		}
	}
}

// look resumes the thread, which shows also what a crash of the server left, and returns its newest turns,
// newest first.
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

// said reads what users said in the thread, newest first, up to the page in which an item is enough; all
// reports whether it came so far, or to the beginning. When it did not, what began the newest turns is added: a
// turn may have done more since than is read here.
func (a *agent) said(ctx context.Context, enough func(itemEntry) bool) (found []itemEntry, all bool, err error) {
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
	return append(found, a.began(ctx)...), false, nil
}

// began reads the messages that began the newest turns, newest first, as far as they can be read.
func (a *agent) began(ctx context.Context) (found []itemEntry) {
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

// A finding is what one look at the thread says of a start.
type finding struct {
	turn    handoff.TurnID // that it became, as far as can be told
	certain bool           // it carries our id
	joined  bool           // turn is somebody else's that took our words in
	open    bool           // our words may still wait in somebody else's running turn
	twice   bool           // more than one turn carries our id
}

// findStart is pure. turns and entries come newest first. A turn newer than the watermark in which nobody said
// anything is ours for all that can be told: a crash of the server right after the acknowledgement leaves
// a turn without its message.
func findStart(turns []wireTurn, entries []itemEntry, after handoff.TurnID, id string) finding {
	var v finding
	fresh := newer(turns, after)
	for _, w := range fresh {
		first, any := beginning(entries, w.ID)
		switch {
		case any && first.Item.client() == id && id != "":
			v.twice = v.twice || v.certain
			v.turn, v.certain = handoff.TurnID(w.ID), true
		case v.certain:
		case !any:
			v.turn = handoff.TurnID(w.ID) // the oldest of them is the likeliest
		case w.Status == statusInProgress:
			v.open = true
		}
	}
	if v.certain || id == "" {
		v.open = false
		return v
	}
	for _, e := range entries {
		if e.Item.client() == id {
			return finding{turn: handoff.TurnID(e.TurnID), joined: true}
		}
	}
	if len(fresh) < len(turns) && turns[len(fresh)].Status == statusInProgress {
		v.open = true // the watermark itself runs, so the start went into it or was refused
	}
	return v
}

// beginning returns the oldest thing said in a turn.
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
