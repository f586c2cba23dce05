package router

import (
	"context"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/phase"
)

// TakeUp takes up the work that an earlier life left; left has all of it. Turns that run, or may run, are looked for
// and followed; outcomes that nobody heard go into the outbox. TakeUp starts no turn. It returns when that is done or
// ctx ends, and waits for a store that is away. Entries that were taken up before are skipped.
func (r *Router) TakeUp(ctx context.Context, left []ledger.Entry) {
	if len(left) > 0 {
		r.mine.adopt(ctx, left)
	}
	r.takenUp.Do(func() { close(r.recovered) })
}

// adopt takes over those entries that nobody here owns. Outcomes among them are given to a listener together.
func (c *caller) adopt(ctx context.Context, entries []ledger.Entry) {
	for _, e := range entries {
		if c.claims.takeFormer(e.Key) {
			c.adoptOne(ctx, e)
		}
	}
	c.tellUnheard()
}

func (c *caller) adoptOne(ctx context.Context, e ledger.Entry) {
	l := c.newLedgerWriter(e.Key, c.router.cfg.IDs.Next(), e.Args, false)
	for try := 0; ; try++ {
		limited, cancel := context.WithTimeout(ctx, storeTimeout)
		adopted, err := l.adopt(limited)
		var body ledger.Body
		if err == nil {
			body, err = c.body(limited, adopted)
		}
		cancel()
		switch {
		case err == nil && adopted.Status == handoff.StatusDelivered: // heard since the entries were read
			l.release()
			return
		case err == nil && adopted.Unkept:
			c.closeUnkept(ctx, adopted, l)
			return
		case err == nil && c.heardAlready(adopted, l):
			return
		case err == nil:
			if adopted.Status != handoff.StatusCompleted {
				c.readStickies(ctx)
			}
			c.restore(adopted, body, l)
			return
		case !retryable(err):
			c.router.cfg.Log.Info("an entry of the ledger is not ours", zap.String("handoff", e.ClientID), zap.Error(err))
			l.release()
			return
		case !c.router.cfg.Pause(ctx, try):
			l.release()
			return
		}
	}
}

// heardAlready reports whether the outcome of an entry was heard here. Then the store has lost its newest steps, and
// heardAlready writes them again.
func (c *caller) heardAlready(e ledger.Entry, l *ledgerWriter) bool {
	rec, _ := c.registry.find(e.ClientID)
	if rec.State != handoff.StatusDelivered {
		return false
	}
	if e.Status != handoff.StatusCompleted {
		facts := ledger.Facts{Outcome: rec.Outcome, Tests: rec.Tests(), Spoken: rec.Spoken}
		if rec.Error != nil {
			facts.Code = rec.Error.Code
		}
		l.completed(facts)
	}
	l.delivered("")
	return true
}

// closeUnkept ends an entry of which no words are kept. Its turn is not looked for, and no outcome is told. If the
// words were never sent, a new run may have the key.
func (c *caller) closeUnkept(ctx context.Context, e ledger.Entry, l *ledgerWriter) {
	switch {
	case e.Status == handoff.StatusCompleted:
	case e.Status == handoff.StatusAccepted:
		l.completed(ledger.Facts{Outcome: handoff.OutcomeFailed, Code: handoff.CodeShutdown})
	default:
		l.completed(ledger.Facts{Outcome: handoff.OutcomeUnknown, Code: handoff.CodeAgentGone})
	}
	l.delivered("").wait(ctx)
}

// body reads the whole words of an entry. An error means that they were not read, and is to be tried again: what goes
// on without them would be written over them.
func (c *caller) body(ctx context.Context, e ledger.Entry) (ledger.Body, error) {
	if c.router.past == nil || e.Status == handoff.StatusDelivered || e.Unkept {
		return ledger.Body{}, nil
	}
	body, _, err := c.router.past.Body(ctx, e.Caller, e.Key)
	if err != nil {
		c.router.cfg.Log.Warn("whole words not read", zap.String("handoff", e.ClientID), zap.Error(err))
		err = handoff.Because(handoff.CodeUnreachable, "the store", err)
	}
	return body, err
}

// restore makes a record of an entry, and a run if it is not over.
func (c *caller) restore(e ledger.Entry, body ledger.Body, l *ledgerWriter) {
	if ledger.Made(e.Why) {
		c.router.cfg.Owners.add(e.Caller, e.Target)
	}
	id := e.ClientID
	if id == "" { // its start was never written
		id = c.router.cfg.IDs.Next()
	}
	rec := c.recordOf(e, id)
	restoreDetails(&rec, body)
	defer c.registry.restored(id, e)
	if e.Status == handoff.StatusCompleted {
		rec.Paused = rec.NotBegun()
		c.open(rec, nil)
		c.registry.with(id, func(rec *recordState) { rec.request, rec.writer = body.Request, l })
		if c.settleAdded(id) {
			return
		}
		c.registry.keep(id)
		c.registry.notify(id) // no notice: the earlier life sent it, unless it was killed, and the next call tells anyway
		return
	}
	w := c.newRun(id)
	w.target, w.attempt.before, w.turn, w.writer = e.Target, e.Watermark, e.Turn, l
	if e.Accepted.Before(time.Now()) { // else the clock was set back, and the time is useless
		w.askedAt = e.Accepted
	}
	w.req = handoff.Request{Target: e.Target}
	restoreRequest(&w.req, body.Request, rec.Prompt)
	if e.Why == handoff.WhyAside {
		w.req.Mode = handoff.ModeAside
	}
	w.state = phase.State{
		Phase: phase.Reconciling, Noted: true, Due: true, Inherited: true, Merged: e.Why == handoff.WhyMerged,
	}
	var fault *handoff.Error
	switch {
	// It certainly never began: a start is written before it is sent. The caller is asked whether to begin it.
	case e.Status == handoff.StatusAccepted:
		w.state.Phase, w.state.Outcome = phase.Writing, handoff.OutcomeCancelled
		fault = handoff.Fault(handoff.CodeNotBegun, e.Target.Server, "a former life of this process had accepted it")
	case e.Turn != "":
		w.state.Phase, w.state.Seen = phase.Reconnecting, true
	}
	w.gate.lease.thread = e.Target // so that the run frees the gate, which the earlier life may hold
	w.open(fault, func() bool {
		c.open(rec, w)
		c.registry.with(id, func(rec *recordState) { rec.request = body.Request })
		return true
	})
	if e.Status == handoff.StatusAccepted { // the summary of the outbox asks about it
		c.router.jobs.start(w.loop)
		return
	}
	c.feed.noted(id)
	c.feed.offer(id)
	c.router.jobs.start(w.loop)
}
