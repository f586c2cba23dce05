package router

import (
	"context"
	"slices"
	"sync"

	"switchboard/handoff"
	"switchboard/handoff/phase"
	"switchboard/handoff/wording"
)

// The outbox is what nobody heard of a caller's outcomes: the records that are unheard.

// keep puts an outcome into the outbox, unless it was heard.
func (g *registry) keep(id string) {
	// Whoever followed the run may have said meanwhile that it was heard.
	g.with(id, func(rec *recordState) { rec.unheard = rec.State != handoff.StatusDelivered })
}

// withdraw takes an outcome that the caller was told out of the outbox, and back from who has it to tell.
func (g *registry) withdraw(id string) {
	g.with(id, func(rec *recordState) {
		if rec.told != nil { // perhaps who says that it was heard, for whom it is no news
			rec.told.listener.Hear(rec.event(handoff.RunHeard{}))
		}
		rec.unheard, rec.told = false, nil
	})
}

// endedLocked returns those of the records with an outcome that are meant, in the order in which they ended.
func (g *registry) endedLocked(meant func(*recordState) bool) []*recordState {
	ended := slices.DeleteFunc(slices.Clone(g.records), func(r *recordState) bool { return r.Outcome == "" || !meant(r) })
	slices.SortStableFunc(ended, func(x, y *recordState) int { return x.EndedAt.Compare(*y.EndedAt) })
	return ended
}

// tellUnheard gives what is in the outbox to the newest listener that may hear of it.
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
			rec.unheard, rec.told = false, a
		}
	}
}

// Attend lets l hear of the runs of the grant's caller: of those that it asks for, of those whose listener has left,
// and of those that ended while nobody attended. leave ends that. Outcomes that l was given and nobody heard go to the
// next listener.
func (v Service) Attend(g handoff.Grant, l handoff.Listener) (leave func()) {
	c := v.of(g.Caller)
	a := &attendance{grant: g, listener: l}
	c.feed.enter(a)
	c.router.jobs.start(c.readStickies)
	if c.router.cfg.Ledger == nil || !c.router.jobs.start(func(ctx context.Context) { c.catchUp(ctx, a) }) {
		c.tellUnheard()
	}
	return sync.OnceFunc(func() { c.leave(a) })
}

// catchUp takes up what is open in the ledger for a caller and not known here: another life of the router may
// have had it meanwhile. Then the caller is told what ended while nobody listened; a ledger that is away delays
// that by one try.
func (c *caller) catchUp(ctx context.Context, a *attendance) {
	for try := 0; ; try++ {
		limited, cancel := context.WithTimeout(ctx, storeTimeout)
		entries, err := c.router.cfg.Ledger.Open(limited, c.who)
		cancel()
		if err == nil {
			c.adopt(ctx, entries)
		}
		c.tellUnheard()
		if err == nil || !c.feed.attends(a) || !c.router.pause(ctx, try) {
			return
		}
	}
}

// leave keeps what the listener did not tell, and leaves its runs to another of the same caller, if there is one.
// Whoever waited there waits no longer: what is not promised is promised now, to whoever comes next.
func (c *caller) leave(a *attendance) {
	runs, told := c.feed.exit(a)
	told = slices.DeleteFunc(told, c.added)
	for _, id := range told {
		c.registry.keep(id)
		c.registry.writer(id).keep()
	}
	c.tellUnheard()
	for _, id := range told {
		c.notifyOutcome(id)
	}
	for _, w := range runs {
		w.tell(phase.FactDue, nil)
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

// added settles words that went into other work, and reports whether this is what a record is: nobody is told of them,
// since the work that took them has an outcome of its own.
func (c *caller) added(id string) bool {
	if rec, _ := c.registry.find(id); !rec.Added() {
		return false
	}
	_, _ = c.heard(id) // it is known
	return true
}

// keep holds an outcome that nobody heard for whoever attends next; if somebody does, that is now.
func (c *caller) keep(id string) {
	if c.added(id) {
		return
	}
	c.registry.keep(id)
	c.registry.writer(id).keep()
	c.tellUnheard()
	c.notifyOutcome(id)
}

// notifyOutcome tells outside of calls, once, that work has ended and nobody heard how. What goes on without us has not
// ended: the next life of the process tells of it.
func (c *caller) notifyOutcome(id string) {
	if c.router.cfg.Notifier == nil {
		return
	}
	rec, first := c.registry.notice(id)
	if !first || rec.Outcome == handoff.OutcomeUnknown && rec.Error != nil && rec.Error.Code == handoff.CodeShutdown {
		return
	}
	c.router.cfg.Notifier.Notify(handoff.Notice{
		Caller: c.who, Kind: handoff.NoticeOutcome, Handoff: id, Server: rec.Server, Title: rec.Title, Text: rec.Spoken,
	})
}

// notifyQuestion tells outside of calls, once, that an agent waits.
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
func (v Service) Heard(_ context.Context, c handoff.Caller, id handoff.RunID) error {
	_, err := v.of(c).heard(string(id))
	return err
}

// HeardForGood is Heard for whoever answers somebody outside: it waits a short time until the ledger has it, since
// after a kill the outcome would be told again.
func (v Service) HeardForGood(ctx context.Context, c handoff.Caller, id handoff.RunID) error {
	noted, err := v.of(c).heard(string(id))
	noted.wait(ctx)
	return err
}

// heard notes that the caller was told an outcome. The ack is nil where nothing is written.
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
	if !rec.NotBegun() { // else the caller is asked, in the next life too
		noted = c.registry.writer(id).delivered("")
	}
	c.registry.forgetUnkept(id)
	return noted, nil
}
