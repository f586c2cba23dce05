package router

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/work"
)

// beatEvery is how long open work may be missing from a store that came back empty.
const beatEvery = 30 * time.Second

// lastWrite bounds the last try to write to the store when the process ends.
const lastWrite = time.Second

// A letter is something for the loop to do; it closes done then.
type letter struct {
	do   func()
	done chan struct{}
}

// ask has the loop take an event, waits for that, and returns the event with its results.
func ask[E work.Event](r *Router, e E) E {
	r.call(func() { r.step(e) })
	return e
}

// call has the loop do something, and waits for it. While no loop runs, it is done at once.
func (r *Router) call(do func()) {
	r.mu.Lock()
	if !r.running {
		defer r.mu.Unlock()
		do()
		return
	}
	r.mu.Unlock()
	l := letter{do, make(chan struct{})}
	select {
	case r.mail <- l:
		<-l.done
	case <-r.ended:
		r.mu.Lock()
		defer r.mu.Unlock()
		do()
	}
}

// step has the state take an event, and does what follows.
func (r *Router) step(e work.Event) {
	for _, effect := range r.state.Step(time.Now(), e) {
		r.perform(effect)
	}
	r.idle.Store(r.state.Idle())
}

// start begins a job, which ends soon after its context. It returns false if it will never run, because the process
// ends.
func (r *Router) start(job func(ctx context.Context)) (started bool) {
	r.call(func() {
		if started = !r.over && (r.ctx == nil || r.ctx.Err() == nil); started {
			r.beside(func() { job(r.ctx) })
		}
	})
	return started
}

// begin runs something beside the loop, which waits for it in the end, and does then what it returns, if anything.
// Before the loop runs, it waits for that.
func (r *Router) begin(do func() (then func())) {
	switch {
	case r.ctx == nil && (r.over || len(r.early) >= maxEarly):
		return
	case r.ctx == nil:
		r.early = append(r.early, do)
		return
	case r.over:
		go func() {
			if then := do(); then != nil {
				r.call(then)
			}
		}()
		return
	}
	r.jobs++
	go func() { r.finished <- do() }()
}

// beside is begin for what has nothing to say in the end.
func (r *Router) beside(do func()) {
	r.begin(func() func() {
		do()
		return nil
	})
}

// maxEarly bounds what waits for [Router.Run] to begin.
const maxEarly = 1000

// Refuse makes a router that will never run refuse all work, as one that has ended does.
func (r *Router) Refuse() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	r.step(&work.Ends{})
	r.cfg.Counts.remove(r)
}

// Run runs the loop: it owns the state of the caller, and everything that outlives a call is done beside it. It is
// called once. When ctx ends, all open work gets an outcome, except when the cause is [ErrMoved]. Run returns after the
// last work has ended and was written.
func (r *Router) Run(ctx context.Context) error {
	r.mu.Lock()
	r.ctx = ctx
	r.running = true
	early := r.early
	r.early = nil
	r.mu.Unlock()
	for _, do := range early {
		r.begin(do)
	}
	beat := time.NewTicker(beatEvery) // while anything may wait in the store
	defer beat.Stop()
	beats := true
	due := time.NewTimer(0)
	defer due.Stop()
	set := time.Time{} // for which due is set
	for ends := ctx.Done(); ; {
		if next := r.state.Next(); !next.Equal(set) {
			if set = next; next.IsZero() {
				due.Stop()
			} else {
				due.Reset(time.Until(next))
			}
		}
		if busy := !r.idle.Load(); busy != beats {
			if beats = busy; busy {
				beat.Reset(beatEvery)
			} else {
				beat.Stop()
			}
		}
		select {
		case l := <-r.mail:
			l.do()
			close(l.done)
		case <-due.C:
			set = time.Time{}
			r.step(&work.Due{})
		case <-beat.C:
			r.step(&work.Beat{})
		case then := <-r.finished:
			if r.jobs--; then != nil {
				then()
			}
		case <-ends:
			ends = nil
			r.step(&work.Ends{Moved: errors.Is(context.Cause(ctx), ErrMoved)})
		}
		if ends == nil && r.jobs == 0 && !r.unstored() {
			break
		}
	}
	if errors.Is(context.Cause(ctx), ErrMoved) {
		r.step(&work.Gave{})
	}
	r.mu.Lock()
	r.running, r.over = false, true
	r.mu.Unlock()
	close(r.ended)
	r.cfg.Counts.remove(r)
	return nil
}

// unstored reports whether something is still to be written, and tries that at once.
func (r *Router) unstored() bool {
	left := &work.Unstored{Now: true}
	r.step(left)
	return left.Left
}

// perform does what a step asks for.
func (r *Router) perform(e work.Effect) {
	switch e := e.(type) {
	case work.Begin:
		l := r.lifeOf(e.Job)
		ctx := l.next()
		r.begin(func() func() { return r.do(ctx, l, e.Job) })
	case work.Halt:
		if l := r.lives[e.ID]; l != nil {
			l.cancel()
		}
	case work.Interrupt:
		if l := r.lives[e.ID]; l != nil {
			l.stop()
			ctx, cancel := context.WithCancel(l.ctx)
			l.stop = cancel
			r.beside(func() { r.interrupt(ctx, e) })
		}
	case work.Newest:
		if l := r.lives[e.ID]; l != nil {
			if old := l.agents.former(); len(old) > 0 {
				r.beside(func() { closeAgents(r.cfg.Log, old) })
			}
		}
	case work.Free:
		r.beside(func() { r.free(e) })
	case work.Ended:
		r.endLife(e.Last)
	case work.Load:
		r.beside(func() {
			if r.load(r.ctx) != nil && r.ctx.Err() != nil {
				ask(r, &work.GiveUp{})
			}
		})
	case work.Commit:
		r.commit(e)
	case work.Notice:
		if r.cfg.Notifier != nil {
			r.cfg.Notifier.Notify(e.Notice)
		}
	case work.Decline:
		r.beside(func() { r.decline(r.ctx, e.Question) })
	}
}

// A life is what an open handoff uses beside the state. Owned by the loop; agents is safe by itself.
type life struct {
	agents agents
	ctx    context.Context    // ends with the handoff: the end of the process is an event, and cancels nothing
	end    context.CancelFunc // ends ctx
	cancel context.CancelFunc // ends the newest job
	stop   context.CancelFunc // ends the newest interrupt
}

// lifeOf returns the life of a job's handoff.
func (r *Router) lifeOf(j work.Job) *life {
	l := r.lives[j.ID]
	if l == nil {
		l = &life{}
		l.ctx, l.end = context.WithCancel(handoff.WithSpan(context.Background(), j.Span))
		l.cancel, l.stop = func() {}, func() {}
		l.agents.fleet, l.agents.ahead = r.cfg.Fleet, r.prefetches.take(j.Request.Key, j.Request.Target)
		r.lives[j.ID] = l
	}
	return l
}

// next ends the newest job, and returns the context of the next.
func (l *life) next() context.Context {
	l.cancel()
	ctx, cancel := context.WithCancel(l.ctx)
	l.cancel = cancel
	return ctx
}

// endLife closes what a handoff has used.
func (r *Router) endLife(last work.Ending) {
	rec := last.Record
	last.Span.End(last.Code, "outcome", string(rec.Outcome), "server", r.cfg.Counts.label(rec.Server),
		"why", string(rec.Why))
	log := r.cfg.Log.With(zap.String("principal", r.cfg.Caller.Principal), zap.String("handoff", rec.ID))
	if parent := last.Span.Parent(); parent != "" {
		log = log.With(zap.String("traceparent", parent))
	}
	if last.Yielded {
		log.Info("another home of the caller has the work and publishes its outcome")
	}
	log.Info("handoff ended", zap.String("server", rec.Server), zap.String("thread", rec.ThreadID),
		zap.String("turn", string(last.Turn)), zap.String("outcome", string(rec.Outcome)),
		zap.String("code", string(last.Code)), zap.Duration("took", time.Since(rec.CreatedAt)))
	l := r.lives[rec.ID]
	if l == nil {
		return
	}
	delete(r.lives, rec.ID)
	l.cancel()
	l.end()
	r.beside(func() { l.agents.end(log) })
}

// commit writes a batch beside the loop. After the loop it makes one short try at once.
func (r *Router) commit(e work.Commit) {
	if r.over && r.cfg.Store != nil {
		r.committed(r.write(e, lastWrite), true)
		return
	}
	r.begin(func() func() {
		limit, last := work.StoreTakes, r.ctx.Err() != nil
		if last {
			limit = lastWrite
		}
		c := r.write(e, limit)
		return func() { r.committed(c, last) }
	})
}

// committed takes what became of a batch. If that was the last try, what the store does not have is left as it is.
func (r *Router) committed(c *work.Committed, last bool) {
	r.step(c)
	if c.Err != nil && last {
		r.cfg.Log.Warn("the store was not written to the end", zap.Error(c.Err))
		r.step(&work.GiveUp{})
	}
}

// write writes a batch.
func (r *Router) write(e work.Commit, limit time.Duration) *work.Committed {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c := &work.Committed{}
	c.Result, c.Err = r.cfg.Store.Commit(ctx, r.cfg.Caller, e.Batch)
	if c.Err == nil && c.Result != ledger.Written {
		c.State, c.Err = r.cfg.Store.State(ctx, r.cfg.Caller)
	}
	return c
}
