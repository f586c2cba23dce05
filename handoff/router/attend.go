package router

import (
	"context"
	"slices"
	"sync"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/phase"
)

// An attendance is one listener of a caller's, from [Router.Attend] until it leaves.
type attendance struct {
	grant    handoff.Grant    // Set once
	listener handoff.Listener // Set once

	told []string // Guarded by the mu of callerState: outcomes that it was given and nobody heard so far, in order
}

// may reports whether the listener may hear of a run.
func (a *attendance) may(rec *handoff.Record) bool { return rec.Shown(a.grant) }

// Attend lets l hear of the runs of the grant's caller: of those that it asks for, of those whose listener has left,
// and of those that ended while nobody attended. leave ends that. Outcomes that l was given and nobody heard go to the
// next listener.
func (r *Router) Attend(g handoff.Grant, l handoff.Listener) (leave func()) {
	b := r.caller(g.Caller)
	a := &attendance{grant: g, listener: l}
	b.enter(a)
	r.start(func(ctx context.Context) { r.readStickies(ctx, g.Caller) })
	if r.ledger == nil || !r.start(func(ctx context.Context) { r.catchUp(ctx, g.Caller, b, a) }) {
		b.tellOutbox()
	}
	return sync.OnceFunc(func() { r.leave(g.Caller, b, a) })
}

// catchUp takes up what is open in the ledger for a caller and not known here: another life of the router may
// have had it meanwhile. Then the caller is told what ended while nobody listened; a ledger that is away delays
// that by one try.
func (r *Router) catchUp(ctx context.Context, c handoff.Caller, b *callerState, a *attendance) {
	for try := 0; ; try++ {
		entries, err := r.openEntries(ctx, c)
		if err == nil {
			r.adopt(ctx, entries)
		}
		b.tellOutbox()
		if err == nil || !b.attends(a) || !r.pause(ctx, try) {
			return
		}
	}
}

func (r *Router) openEntries(ctx context.Context, c handoff.Caller) ([]ledger.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return r.ledger.Open(ctx, c)
}

// readStickies reads them before they are needed.
func (r *Router) readStickies(ctx context.Context, c handoff.Caller) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := r.loadStickies(ctx, c, r.caller(c)); err != nil {
		r.log.Warn("sticky sessions not read", zap.String("principal", c.Principal), zap.Error(err))
	}
}

// leave keeps what the listener did not tell, and leaves its runs to another of the same caller, if there is one.
// Whoever waited there waits no longer: what is not promised is promised now, to whoever comes next.
func (r *Router) leave(c handoff.Caller, b *callerState, a *attendance) {
	runs, untold := b.exit(a)
	for _, id := range untold {
		r.writerOf(b, id).keep()
	}
	b.tellOutbox()
	for _, id := range untold {
		if b.waitsToBeHeard(id) {
			r.notifyOutcome(c, b, id)
		}
	}
	for _, w := range runs {
		w.tell(phase.FactDue)
	}
	b.handOver()
	for _, w := range runs {
		if b.attended(w.ID) {
			continue
		}
		for _, q := range b.questionsOf(w.ID) {
			r.notifyQuestion(c, b, q.shown.ID)
		}
	}
}

// enter adds a listener and gives it the runs that nobody hears of.
func (c *callerState) enter(a *attendance) {
	c.mu.Lock()
	c.attending = append(c.attending, a)
	c.mu.Unlock()
	c.handOver()
}

// exit takes a listener away. It returns the runs that it attended to, oldest first, and the outcomes that are
// to be told once more; they are in the outbox.
func (c *callerState) exit(a *attendance) (runs []*run, untold []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attending = slices.DeleteFunc(c.attending, func(o *attendance) bool { return o == a })
	for _, rec := range c.records {
		if rec.hears == a && rec.run != nil {
			rec.hears = nil
			runs = append(runs, rec.run)
		}
	}
	for _, id := range a.told {
		if rec := c.findLocked(id); rec != nil && rec.State == handoff.StatusCompleted {
			c.keepLocked(id)
			untold = append(untold, id)
		}
	}
	return runs, untold
}

// attends reports whether a listener is still there.
func (c *callerState) attends(a *attendance) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.attending, a)
}

// attended reports whether somebody hears of a run.
func (c *callerState) attended(id string) (attended bool) {
	c.with(id, func(rec *recordState) { attended = rec.hears != nil })
	return attended
}

// by returns the attendance of a listener, or nil.
func (c *callerState) by(l handoff.Listener) *attendance {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.attending {
		if l != nil && a.listener == l {
			return a
		}
	}
	return nil
}

// offer leaves a run to whoever attends for its caller, now or later.
func (c *callerState) offer(id string) {
	c.with(id, func(rec *recordState) { rec.offered = rec.offered || rec.run != nil })
	c.handOver()
}

// handOver gives the runs that nobody hears of to the newest listener that may hear of them, oldest first.
func (c *callerState) handOver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rec := range c.records {
		if !rec.offered || rec.hears != nil || rec.run == nil || rec.log.over {
			continue
		}
		for _, a := range slices.Backward(c.attending) {
			if !a.may(&rec.Record) {
				continue
			}
			var open []handoff.OpenQuestion
			for _, q := range c.questionsOfLocked(rec.ID) {
				open = append(open, q.open())
			}
			if a.listener.Hear(rec.event(handoff.RunTaken{Questions: open})) {
				rec.hears = a
				break
			}
		}
	}
}

// tellOutbox gives what nobody heard to the newest listener that may hear of it.
func (c *callerState) tellOutbox() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range slices.Backward(c.attending) {
		var ended []handoff.Record
		for _, id := range c.outbox {
			if rec := c.findLocked(id); rec != nil && a.may(&rec.Record) {
				ended = append(ended, rec.Clone())
			}
		}
		if len(ended) == 0 || !a.listener.Outbox(ended) {
			continue
		}
		for _, rec := range ended {
			a.told = append(a.told, rec.ID)
			c.outbox = slices.DeleteFunc(c.outbox, func(id string) bool { return id == rec.ID })
		}
	}
}

// keep holds an outcome that nobody heard for whoever attends next; if somebody does, that is now.
func (r *Router) keep(c handoff.Caller, b *callerState, id string) {
	b.mu.Lock()
	b.keepLocked(id)
	b.mu.Unlock()
	r.writerOf(b, id).keep()
	b.tellOutbox()
	if b.waitsToBeHeard(id) {
		r.notifyOutcome(c, b, id)
	}
}

func (c *callerState) keepLocked(id string) {
	if rec := c.findLocked(id); rec != nil && rec.State == handoff.StatusDelivered {
		return // whoever followed it said so meanwhile
	}
	if !slices.Contains(c.outbox, id) {
		c.outbox = append(c.outbox, id)
	}
}

// waitsToBeHeard reports whether an outcome is in the outbox.
func (c *callerState) waitsToBeHeard(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.outbox, id)
}

// Heard implements [handoff.Runs].
func (r *Router) Heard(_ context.Context, c handoff.Caller, id handoff.RunID) error {
	_, err := r.heard(c, id)
	return err
}

// HeardForGood is Heard for whoever answers somebody outside: it waits a short time until the ledger has it, since
// after a kill the outcome would be told again.
func (r *Router) HeardForGood(ctx context.Context, c handoff.Caller, id handoff.RunID) error {
	noted, err := r.heard(c, id)
	noted.wait(ctx)
	return err
}

// heard notes that the caller was told an outcome. The receipt is nil where nothing is written.
func (r *Router) heard(c handoff.Caller, id handoff.RunID) (receipt, error) {
	b := r.caller(c)
	if rec, _ := b.find(string(id)); rec.ID == "" {
		return nil, r.notFound()
	}
	b.delivered(string(id))
	b.withdraw(string(id))
	rec, _ := b.find(string(id))
	if rec.State != handoff.StatusDelivered {
		return nil, nil // it has no outcome yet
	}
	var noted receipt
	if !rec.NotBegun() { // else the caller is asked, in the next life too
		noted = r.writerOf(b, string(id)).delivered("")
	}
	b.forgetUnkept(string(id))
	return noted, nil
}

// withdraw keeps an outcome that the caller was told from being told again by who has it to tell.
func (c *callerState) withdraw(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	same := func(other string) bool { return other == id }
	c.outbox = slices.DeleteFunc(c.outbox, same)
	rec := c.findLocked(id)
	for _, a := range c.attending {
		if rec != nil && slices.Contains(a.told, id) { // also to who says that it was heard, for whom it is no news
			a.listener.Hear(rec.event(handoff.RunHeard{}))
		}
		a.told = slices.DeleteFunc(a.told, same)
	}
}

func (r *Router) writerOf(b *callerState, id string) (l *ledgerWriter) {
	b.with(id, func(rec *recordState) { l = rec.writer })
	return l
}
