package router

import (
	"context"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/phase"
)

// TakeUp takes up what a former life left, which is all of it: what ran or may run is looked for and watched, outcomes
// that nobody heard are told. Nothing is ever started by it. It returns when that is done or ctx ends; a store that is
// away is waited for. What was taken up before is left as it is.
func (r *Router) TakeUp(ctx context.Context, left []ledger.Entry) {
	if len(left) > 0 {
		r.mine.adopt(ctx, left)
	}
	r.takenUp.Do(func() { close(r.recovered) })
}

// adopt takes entries of the caller over that nobody here has in hand. What ended is told in one message.
func (c *caller) adopt(ctx context.Context, entries []ledger.Entry) {
	for _, e := range entries {
		if c.claims.takeLeft(e.Key) {
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
		cancel()
		switch {
		case err == nil && adopted.Status == handoff.StatusDelivered: // told since the entries were read
			l.release()
			return
		case err == nil && adopted.Unkept:
			c.bury(ctx, adopted, l)
			return
		case err == nil && c.heardAlready(adopted, l):
			return
		case err == nil:
			if adopted.Status != handoff.StatusCompleted {
				c.readStickies(ctx)
			}
			c.restore(adopted, c.body(ctx, adopted), l)
			return
		case !retried(err):
			c.router.cfg.Log.Info("an entry of the ledger is not ours", zap.String("handoff", e.ClientID), zap.Error(err))
			l.release()
			return
		case !c.router.pause(ctx, try):
			l.release()
			return
		}
	}
}

// heardAlready reports whether the outcome of an entry was heard here: then the store came back as it was a
// while ago, and is told once more.
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

// bury ends an entry of which no words are kept: nobody looks for what ran, and nobody is told. What was never sent
// may be asked for again under its key.
func (c *caller) bury(ctx context.Context, e ledger.Entry, l *ledgerWriter) {
	switch {
	case e.Status == handoff.StatusCompleted:
	case e.Status == handoff.StatusAccepted:
		l.completed(ledger.Facts{Outcome: handoff.OutcomeFailed, Code: handoff.CodeShutdown})
	default:
		l.completed(ledger.Facts{Outcome: handoff.OutcomeUnknown, Code: handoff.CodeAgentGone})
	}
	l.delivered("").wait(ctx)
}

// body reads the whole words of an entry that was not begun, with which it can be begun, or that has ended, and what
// was done. When they cannot be read there are none.
func (c *caller) body(ctx context.Context, e ledger.Entry) ledger.Body {
	if c.router.past == nil || e.Status != handoff.StatusAccepted && e.Status != handoff.StatusCompleted {
		return ledger.Body{}
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	body, _, err := c.router.past.Body(ctx, e.Caller, e.Key)
	if err != nil {
		c.router.cfg.Log.Warn("whole words not read", zap.String("handoff", e.ClientID), zap.Error(err))
	}
	return body
}

// restore makes an entry known to its caller, and takes up a run that is not over.
func (c *caller) restore(e ledger.Entry, body ledger.Body, l *ledgerWriter) {
	if ledger.Made(e.Why) {
		c.router.cfg.Owners.made(e.Caller, e.Target)
	}
	id := e.ClientID
	if id == "" { // it never came to a start
		id = c.router.cfg.IDs.Next()
	}
	rec := c.recordOf(e, id)
	remember(&rec, body)
	defer c.registry.restored(id, e)
	if e.Status == handoff.StatusCompleted {
		rec.Paused = rec.NotBegun()
		c.open(rec, nil)
		c.registry.with(id, func(rec *recordState) { rec.waiting, rec.writer = body.Request, l })
		if c.added(id) {
			return
		}
		c.registry.keep(id)
		c.registry.notice(id) // its former life did, unless it was killed: the next call tells in any case
		return
	}
	w := c.newRun(id)
	w.target, w.attempt.before, w.turn, w.writer = e.Target, e.Watermark, e.Turn, l
	if e.Accepted.Before(time.Now()) { // else the clock was set back: it tells nothing
		w.asked = e.Accepted
	}
	w.req = handoff.Request{Target: e.Target}
	restoreWords(&w.req, body.Request, rec.Prompt)
	if e.Why == handoff.WhyAside {
		w.req.Mode = handoff.ModeAside
	}
	w.state = phase.State{
		Phase: phase.Reconciling, Noted: true, Due: true, Inherited: true, Merged: e.Why == handoff.WhyMerged,
	}
	var fault *handoff.Error
	switch {
	// It certainly never began: that is written before a start. The caller is asked, as nothing begins unasked.
	case e.Status == handoff.StatusAccepted:
		w.state.Phase, w.state.Outcome = phase.Writing, handoff.OutcomeCancelled
		fault = handoff.Fault(handoff.CodeNotBegun, e.Target.Server, "a former life of this process had accepted it")
	case e.Turn != "":
		w.state.Phase, w.state.Seen = phase.Reconnecting, true
	}
	w.gate.pass.thread = e.Target // whose start gate its former life may have left to it
	w.open(fault, func() bool {
		c.open(rec, w)
		c.registry.with(id, func(rec *recordState) { rec.waiting = body.Request })
		return true
	})
	if e.Status == handoff.StatusAccepted { // its end is told with a question, in the summary
		c.router.jobs.start(w.loop)
		return
	}
	c.feed.noted(id)
	c.feed.offer(id)
	c.router.jobs.start(w.loop)
}
