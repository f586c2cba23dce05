package router

import (
	"context"
	"slices"
	"sync"

	"switchboard/handoff"
	"switchboard/handoff/phase"
	"switchboard/handoff/wording"
)

// The outbox of a caller is their records whose outcome nobody heard: those that are unheard.

// keep puts an outcome into the outbox, unless it was heard.
func (g *registry) keep(id string) {
	// A follower of the run may have called [Service.Heard] meanwhile.
	g.with(id, func(rec *recordState) { rec.unheard = rec.State != handoff.StatusDelivered })
}

// withdraw takes an outcome that the caller has heard out of the outbox, and back from the listener that was given it.
func (g *registry) withdraw(id string) {
	g.with(id, func(rec *recordState) {
		if rec.givenTo != nil { // also if this listener itself reports that the outcome was heard
			rec.givenTo.listener.Hear(rec.event(handoff.RunHeard{}))
		}
		rec.unheard, rec.givenTo = false, nil
	})
}

// endedLocked returns the records that have an outcome and that include accepts, in the order in which they ended.
func (g *registry) endedLocked(include func(*recordState) bool) []*recordState {
	ended := slices.DeleteFunc(slices.Clone(g.records), func(r *recordState) bool {
		return r.Outcome == "" || !include(r)
	})
	slices.SortStableFunc(ended, func(x, y *recordState) int { return x.EndedAt.Compare(*y.EndedAt) })
	return ended
}

// tellUnheard gives each outcome in the outbox to the newest listener that may hear of it.
func (c *caller) tellUnheard() {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	for _, a := range slices.Backward(c.feed.attending) {
		unheard := c.registry.endedLocked(func(r *recordState) bool { return r.unheard && a.may(&r.Record) })
		ended := make([]handoff.Record, len(unheard))
		for i, rec := range unheard {
			ended[i] = rec.Clone()
		}
		if len(ended) == 0 || !a.listener.Outbox(ended) {
			continue
		}
		for _, rec := range unheard {
			rec.unheard, rec.givenTo = false, a
		}
	}
}

// Attend lets l hear of runs of the grant's caller: of those that it starts, of those whose listener has left, and of
// those that ended while nobody attended. leave ends that. Outcomes that l was given and nobody heard go to the next
// listener.
func (v Service) Attend(g handoff.Grant, l handoff.Listener) (leave func()) {
	c := v.home(g.Caller)
	a := &attendance{grant: g, listener: l}
	c.feed.enter(a)
	c.router.jobs.start(c.readStickies)
	if c.router.cfg.Ledger == nil || !c.router.jobs.start(func(ctx context.Context) { c.catchUp(ctx, a) }) {
		c.tellUnheard()
	}
	return sync.OnceFunc(func() { c.leave(a) })
}

// catchUp takes up the open entries of the ledger that are not known here: another life of the router may have had them
// meanwhile. Then the listener is given the outbox. While the ledger is away, it is given the outbox after the first
// try, and catchUp tries again as long as the listener attends.
func (c *caller) catchUp(ctx context.Context, a *attendance) {
	for try := 0; ; try++ {
		limited, cancel := context.WithTimeout(ctx, storeTimeout)
		entries, err := c.router.cfg.Ledger.Open(limited, c.who)
		cancel()
		if err == nil {
			c.adopt(ctx, entries)
		}
		c.tellUnheard()
		if err == nil || !c.feed.attends(a) || !c.router.cfg.Pause(ctx, try) {
			return
		}
	}
}

// leave ends an attendance. Outcomes that the listener did not tell go back into the outbox, and its runs to another
// listener of the caller, if there is one. Nobody waits there any more for a quick result, so runs that are not
// promised yet are promised now.
func (c *caller) leave(a *attendance) {
	runs, unheard := c.feed.exit(a)
	unheard = slices.DeleteFunc(unheard, c.settleAdded)
	for _, id := range unheard {
		c.registry.keep(id)
		c.registry.writer(id).keep()
	}
	c.tellUnheard()
	for _, id := range unheard {
		c.notifyOutcome(id)
	}
	for _, w := range runs {
		w.apply(phase.FactDue, nil)
	}
	c.feed.handOver()
	for _, w := range runs {
		if c.feed.attended(w.ID) {
			continue
		}
		for _, q := range c.questions.of(w.ID) {
			c.notifyQuestion(q.Shown.ID)
		}
	}
}

// settleAdded reports whether a record is of words that were added to other work. It marks such a record as heard: the
// caller is told the outcome of the other work alone.
func (c *caller) settleAdded(id string) bool {
	if rec, _ := c.registry.find(id); !rec.Added() {
		return false
	}
	_, _ = c.heard(id) // the record exists
	return true
}

// keep puts an outcome that nobody heard into the outbox, and gives the outbox to a listener if one attends.
func (c *caller) keep(id string) {
	if c.settleAdded(id) {
		return
	}
	c.registry.keep(id)
	c.registry.writer(id).keep()
	c.tellUnheard()
	c.notifyOutcome(id)
}

// notifyOutcome sends a notice outside of calls, once, of an outcome that nobody heard. It sends none of work that goes
// on without this process: the next life of the process does.
func (c *caller) notifyOutcome(id string) {
	if c.router.cfg.Notifier == nil {
		return
	}
	rec, first := c.registry.notify(id)
	if !first || rec.Outcome == handoff.OutcomeUnknown && rec.Error != nil && rec.Error.Code == handoff.CodeShutdown {
		return
	}
	c.router.cfg.Notifier.Notify(handoff.Notice{
		Caller: c.who, Kind: handoff.NoticeOutcome, Handoff: id, Server: rec.Server, Title: rec.Title, Text: rec.Spoken,
	})
}

// notifyQuestion sends a notice outside of calls, once, that an agent asks a question.
func (c *caller) notifyQuestion(id handoff.QuestionID) {
	if c.router.cfg.Notifier == nil {
		return
	}
	if q, first := c.questions.notify(id); first {
		c.router.cfg.Notifier.Notify(handoff.Notice{
			Caller: c.who, Kind: handoff.NoticeQuestion, Handoff: q.Shown.Handoff, Question: id, Server: q.Shown.Server,
			Title: q.Shown.Title, Text: wording.QuestionNotice(q.Shown),
		})
	}
}

// Heard implements [handoff.Runs].
func (v Service) Heard(_ context.Context, g handoff.Grant, id handoff.RunID) error {
	_, err := v.of(g.Caller).heardBy(g, string(id))
	return err
}

// HeardForGood is Heard, and waits for the ledger, for [ackWithin] at most. It is for fronts that answer a client: if
// the process were killed before that, the outcome would be told again.
func (v Service) HeardForGood(ctx context.Context, g handoff.Grant, id handoff.RunID) error {
	noted, err := v.of(g.Caller).heardBy(g, string(id))
	noted.wait(ctx)
	return err
}

// heardBy is heard, if a grant may take the outcome.
func (c *caller) heardBy(g handoff.Grant, id string) (ack, error) {
	switch rec, _ := c.registry.find(id); {
	case rec.ID == "" || !rec.Shown(g):
		return nil, c.router.notFound()
	case !rec.Told(g):
		return nil, g.May(handoff.ActPersonal)
	}
	return c.heard(id)
}

// heard notes that the caller was told an outcome. The ack is nil if nothing is written.
func (c *caller) heard(id string) (ack, error) {
	if rec, _ := c.registry.find(id); rec.ID == "" {
		return nil, c.router.notFound()
	}
	c.registry.delivered(id)
	c.registry.withdraw(id)
	rec, _ := c.registry.find(id)
	if rec.State != handoff.StatusDelivered {
		return nil, nil // it has no outcome yet
	}
	var noted ack
	if !rec.NotBegun() { // else the caller is still to be asked, also in the next life
		noted = c.registry.writer(id).delivered("")
	}
	c.registry.forgetUnkept(id)
	return noted, nil
}
