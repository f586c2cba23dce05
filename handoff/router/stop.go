package router

import (
	"context"

	"switchboard/handoff"
	"switchboard/handoff/phase"
	"switchboard/handoff/wording"
)

// Stop stops a run: one whose turn has not started is cancelled, others are interrupted. The outcome follows on the
// feed. Work that waits for the run is paused, and the caller is asked about it. Work that is paused already is
// dropped. Stop waits only for [Router.Recovered], and for the ledger when it drops work, each for a short time.
func (v Service) Stop(ctx context.Context, g handoff.Grant, id string) error {
	if err := g.May(handoff.ActStop); err != nil {
		return err
	}
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
	c.pause(c.router.cfg.Queues.waitingFor(id))
	w.apply(phase.FactStop, nil)
	return nil
}

// pause pauses those of the waiting runs that are the caller's.
func (c *caller) pause(waiting []string) {
	for _, id := range waiting {
		if rec, w := c.registry.find(id); w != nil {
			w.apply(phase.FactPaused, handoff.Fault(handoff.CodePaused, rec.Server, ""))
		}
	}
}

// dropPaused drops paused work. It returns false if the work was begun or dropped meanwhile. It waits for the ledger,
// for [ackWithin] at most, since a kill before that would bring the work back.
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

// endPaused marks work that is no longer paused as heard, so that nobody is asked about it after a restart. spoken says
// what became of it. The ack is nil if nothing is written.
func (c *caller) endPaused(id, spoken string) ack {
	c.registry.withdraw(id)
	c.registry.delivered(id)
	return c.registry.writer(id).delivered(spoken)
}

// closePaused ends the pause of a record. instead is the id of the run that was begun in its place; "": it was dropped.
// The caller holds opening.
func (g *registry) closePaused(id, instead string) {
	if rec, _ := g.find(id); rec.NotBegun() {
		g.with(id, func(rec *recordState) { rec.begunAs, rec.request = instead, "" })
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
