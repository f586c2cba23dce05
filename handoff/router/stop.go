package router

import (
	"context"
	"slices"

	"switchboard/handoff"
	"switchboard/handoff/phase"
	"switchboard/handoff/wording"
)

// Stop asks a run to stop: before its turn started it is cancelled, after that interrupted. It returns
// at once; the outcome follows on the feed. What waits behind it does not begin: it is paused, and the caller is asked.
// Work that is paused already is dropped.
func (r *Router) Stop(ctx context.Context, g handoff.Grant, id string) error {
	b := r.caller(g.Caller)
	rec, w := b.find(id)
	switch {
	case rec.ID == "" || !rec.Shown(g):
		return r.notFound()
	case rec.Paused && r.drop(ctx, b, id):
		return nil
	case w == nil, rec.Outcome != "":
		return handoff.Fault(handoff.CodeWorkEnded, "", "")
	case rec.Why == handoff.WhyMerged:
		return handoff.Fault(handoff.CodeJoined, rec.Server, "a turn of somebody else is not stopped")
	}
	b.pause(r.queues.behind(id))
	w.tell(phase.FactStop)
	return nil
}

// giveStop gives a decision that ends the turn. What waits behind it is paused, unless the agent certainly did not take
// the decision: then the turn goes on, and so does the wait.
func (r *Router) giveStop(ctx context.Context, b *callerState, q *question, d decided) error {
	return r.queues.stop(q.shown.Handoff, func() error { return q.give(ctx, d) }, func(err error, waiting []string) {
		if err == nil || !certainlyNot(handoff.AsError(err).Code) {
			b.pause(waiting)
		}
	})
}

// pause pauses runs of the caller which wait; those of others wait on.
func (c *callerState) pause(waiting []string) {
	for _, id := range waiting {
		if _, w := c.find(id); w != nil {
			w.pause()
		}
	}
}

// pause ends what waits to be joined or begun.
func (r *run) pause() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.step(phase.FactPaused, handoff.Fault(handoff.CodePaused, r.rec.Server, ""))
}

// drop closes work that was paused: it is not begun. False: it was begun, or dropped, meanwhile. It waits a short time
// until the ledger has that: else a kill would bring the work back.
func (r *Router) drop(ctx context.Context, b *callerState, id string) bool {
	b.opening.Lock()
	rec, _ := b.find(id)
	if rec.Paused {
		b.closePaused(id, "")
	}
	b.opening.Unlock()
	if !rec.Paused {
		return false
	}
	r.settled(b, id, wording.WasDropped).wait(ctx)
	return true
}

// settled marks as told what was paused and is not any more, with what became of it: after a restart nobody is asked
// about it again. The receipt is nil where nothing is written.
func (r *Router) settled(b *callerState, id, what string) receipt {
	b.mu.Lock()
	b.outbox = slices.DeleteFunc(b.outbox, func(other string) bool { return other == id })
	b.mu.Unlock()
	b.delivered(id)
	return r.writerOf(b, id).delivered(what)
}

// closePaused notes which record was begun instead of a paused one; instead is "" for one that is dropped and never
// begun. The caller holds opening.
func (c *callerState) closePaused(id, instead string) {
	if rec, _ := c.find(id); rec.NotBegun() {
		c.began(id, instead)
		_ = c.wait(id, "") // there is always room for nothing
		c.change(id, func(rec *handoff.Record) {
			rec.Paused, rec.Spoken = false, wording.WasDropped
			if instead == "" {
				rec.Fault, rec.Error = nil, nil
				return
			}
			rec.Spoken = wording.WentOn
			rec.Error = &handoff.RecordError{Code: rec.Fault.Code, Message: wording.WentOn}
		})
	}
}
