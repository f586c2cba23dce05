package router

import (
	"context"

	"switchboard/handoff"
	"switchboard/handoff/phase"
	"switchboard/handoff/wording"
)

// Stop asks a run to stop: before its turn started it is cancelled, after that interrupted. It returns
// at once, or once it is known what the router's former life left; the outcome follows on the feed. What waits
// behind it does not begin: it is paused, and the caller is asked. Work that is paused already is dropped.
func (v Service) Stop(ctx context.Context, g handoff.Grant, id string) error {
	c := v.of(g.Caller)
	rec, w := c.registry.find(id)
	if rec.ID == "" && c.router.Recovered(ctx, storeTimeout) == nil {
		rec, w = c.registry.find(id)
	}
	switch {
	case rec.ID == "" || !rec.Shown(g):
		return c.router.notFound()
	case rec.Paused && c.dropPaused(ctx, id):
		c.feed.byHand(id, handoff.RunByHand{Deed: handoff.DeedDrop})
		return nil
	case w == nil, rec.Outcome != "":
		return handoff.Fault(handoff.CodeWorkEnded, "", "")
	case rec.Why == handoff.WhyMerged:
		return handoff.Fault(handoff.CodeJoined, rec.Server, "a turn of somebody else is not stopped")
	}
	c.feed.byHand(id, handoff.RunByHand{Deed: handoff.DeedStop})
	c.pause(c.router.cfg.Queues.behind(id))
	w.tell(phase.FactStop, nil)
	return nil
}

// pause pauses runs of the caller which wait to be joined or begun; those of others wait on.
func (c *caller) pause(waiting []string) {
	for _, id := range waiting {
		if rec, w := c.registry.find(id); w != nil {
			w.tell(phase.FactPaused, handoff.Fault(handoff.CodePaused, rec.Server, ""))
		}
	}
}

// dropPaused closes work that was paused: it is not begun. False: it was begun, or dropped, meanwhile. It waits a short
// time until the ledger has that: else a kill would bring the work back.
func (c *caller) dropPaused(ctx context.Context, id string) bool {
	c.registry.opening.Lock()
	rec, _ := c.registry.find(id)
	if rec.Paused {
		c.registry.closePaused(id, "")
	}
	c.registry.opening.Unlock()
	if !rec.Paused {
		return false
	}
	c.endPaused(id, wording.WasDropped).wait(ctx)
	return true
}

// endPaused marks as told what was paused and is not any more, with what became of it: after a restart nobody is asked
// about it again. The ack is nil where nothing is written.
func (c *caller) endPaused(id, what string) ack {
	c.registry.withdraw(id)
	c.registry.delivered(id)
	return c.registry.writer(id).delivered(what)
}

// closePaused notes which record was begun instead of a paused one; instead is "" for one that is dropped and never
// begun. The caller holds opening.
func (g *registry) closePaused(id, instead string) {
	if rec, _ := g.find(id); rec.NotBegun() {
		g.with(id, func(rec *recordState) { rec.begun, rec.waiting = instead, "" })
		g.change(id, func(rec *handoff.Record) {
			rec.Paused, rec.Spoken = false, wording.WasDropped
			if instead == "" {
				rec.Fault, rec.Error = nil, nil
				return
			}
			rec.Spoken, rec.WentOn = wording.WentOn, true
			rec.Error = &handoff.RecordError{Code: rec.Fault.Code, Message: wording.WentOn}
		})
	}
}
