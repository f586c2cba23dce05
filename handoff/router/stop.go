package router

import (
	"context"
	"slices"

	"switchboard/handoff"
	"switchboard/handoff/phase"
)

// Stop asks a run to stop: before its turn started it is cancelled, after that interrupted. It returns
// at once; the outcome follows on the feed. What waits behind it does not begin: it is paused, and the caller is asked.
// Work that is paused already is dropped.
func (r *Router) Stop(_ context.Context, g handoff.Grant, id string) error {
	b := r.caller(g.Caller)
	rec, w := b.find(id)
	switch {
	case rec.ID == "" || !rec.Shown(g):
		return r.notFound()
	case rec.Paused && r.drop(b, id):
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

// drop settles work that was paused: it is not begun. False: it was begun, or dropped, meanwhile.
func (r *Router) drop(b *callerState, id string) bool {
	b.opening.Lock()
	rec, _ := b.find(id)
	if rec.Paused {
		b.settle(id, "")
	}
	b.opening.Unlock()
	if rec.Paused {
		r.settled(b, id)
	}
	return rec.Paused
}

// settled marks as told what was paused and is not any more: after a restart nobody is asked about it again.
func (r *Router) settled(b *callerState, id string) {
	b.mu.Lock()
	b.outbox = slices.DeleteFunc(b.outbox, func(other string) bool { return other == id })
	b.mu.Unlock()
	if b.delivered(id) {
		r.writerOf(b, id).delivered()
	}
}

// settle notes what was begun instead of a record that was paused; "": nothing, and nothing will be. The caller holds
// opening.
func (c *callerState) settle(id, instead string) {
	if rec, _ := c.find(id); rec.NotBegun() {
		c.began(id, instead)
		c.change(id, func(rec *handoff.Record) {
			rec.Paused = false
			if instead == "" {
				rec.Fault, rec.Error = nil, nil
			}
		})
	}
}
