package router

import (
	"context"
	"slices"
	"sync"

	"switchboard/handoff"
	"switchboard/handoff/phase"
	"switchboard/handoff/wording"
)

// An outbox holds the outcomes of a caller's work that nobody heard.
type outbox struct {
	registry *registry // Set once
	feed     *feed     // Set once
	ids      []string  // Guarded by the mu of registry: of their records, oldest first
}

// keep holds an outcome for whoever attends next, unless it was heard.
func (o *outbox) keep(id string) {
	o.registry.mu.Lock()
	defer o.registry.mu.Unlock()
	rec := o.registry.findLocked(id)
	heard := rec == nil || rec.State == handoff.StatusDelivered // whoever followed it said so meanwhile
	if !heard && !slices.Contains(o.ids, id) {
		o.ids = append(o.ids, id)
	}
}

// forget takes an outcome out.
func (o *outbox) forget(id string) {
	o.registry.mu.Lock()
	defer o.registry.mu.Unlock()
	o.ids = slices.DeleteFunc(o.ids, func(other string) bool { return other == id })
}

// has reports whether an outcome waits to be heard.
func (o *outbox) has(id string) bool {
	o.registry.mu.Lock()
	defer o.registry.mu.Unlock()
	return slices.Contains(o.ids, id)
}

// tell gives the outcomes to the newest listener that may hear of them.
func (o *outbox) tell() {
	o.registry.mu.Lock()
	defer o.registry.mu.Unlock()
	for _, a := range slices.Backward(o.feed.attending) {
		var ended []handoff.Record
		for _, id := range o.ids {
			if rec := o.registry.findLocked(id); rec != nil && a.may(&rec.Record) {
				ended = append(ended, rec.Clone())
			}
		}
		if len(ended) == 0 || !a.listener.Outbox(ended) {
			continue
		}
		for _, rec := range ended {
			a.told = append(a.told, rec.ID)
			o.ids = slices.DeleteFunc(o.ids, func(id string) bool { return id == rec.ID })
		}
	}
}

// withdraw keeps an outcome that the caller was told from being told again by who has it to tell.
func (o *outbox) withdraw(id string) {
	o.registry.mu.Lock()
	defer o.registry.mu.Unlock()
	same := func(other string) bool { return other == id }
	o.ids = slices.DeleteFunc(o.ids, same)
	rec := o.registry.findLocked(id)
	for _, a := range o.feed.attending {
		if rec != nil && slices.Contains(a.told, id) { // also to who says that it was heard, for whom it is no news
			a.listener.Hear(rec.event(handoff.RunHeard{}))
		}
		a.told = slices.DeleteFunc(a.told, same)
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
		c.outbox.tell()
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
		c.outbox.tell()
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
		c.outbox.keep(id)
		c.registry.writer(id).keep()
	}
	c.outbox.tell()
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
	c.outbox.keep(id)
	c.registry.writer(id).keep()
	c.outbox.tell()
	c.notifyOutcome(id)
}

// notifyOutcome tells outside of calls, once, that work has ended and nobody heard how. What goes on without us has not
// ended: the next life of the process tells of it.
func (c *caller) notifyOutcome(id string) {
	if c.router.cfg.Notifier == nil || !c.outbox.has(id) {
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
	c.outbox.withdraw(id)
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
