package router

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/phase"
	"switchboard/handoff/wording"
)

// ioTimeout bounds each request to an agent: resolving, attaching, starting, interrupting, looking for a lost start.
const ioTimeout = 30 * time.Second

// storeTimeout bounds one request to the store.
const storeTimeout = 5 * time.Second

// A run is the life of one request. Its goroutine is [run.loop].
type run struct {
	router  *Router         // Set once
	caller  *caller         // Set once
	grant   handoff.Grant   // Set once; zero for a run of an earlier life, which resolves no names
	req     handoff.Request // Set once
	ID      string          // Set once: the record's id
	asking  bool            // Set once: see [recordState]
	log     *zap.Logger     // Set once
	writer  *ledgerWriter   // Set once: may be nil
	askedAt time.Time       // Set once: when the caller asked, also if that was in an earlier life of the process
	span    handoff.Span    // Set once: of the whole run

	// The loop does slow actions without the lock, while facts from outside change the state. Whoever takes the lock
	// again checks first, by the context of the action, that the action is still the current one.
	mu     sync.Mutex
	state  phase.State        // Guarded by mu
	next   phase.Action       // Guarded by mu: the slow action that the loop begins next, or [phase.ActNothing]
	ctx    context.Context    // Guarded by mu: of the current slow action; ends when another replaces it
	cancel context.CancelFunc // Guarded by mu: ends ctx
	woken  chan struct{}      // holds a token when next was set

	target     handoff.Target   // Guarded by mu
	attached   handoff.Attached // Guarded by mu: the newest attachment
	turn       handoff.TurnID   // Guarded by mu
	rec        handoff.Record   // Guarded by mu: as last shown
	outcomeAck ack              // Guarded by mu: of the outcome in the ledger

	extra   []handoff.Context // Guarded by mu: context about the session that the caller goes on with, for the agent
	claim   claim             // Guarded by mu: its queues, until its outcome is known
	gate    gate              // Guarded by mu: of its thread
	wait    wait              // Guarded by mu: what it waits for before its words are sent
	attempt attempt           // Guarded by mu: the newest try to send its words
	watcher turnWatcher       // Guarded by mu: of its turn

	agents agents             // safe by itself: its attachments
	io     sync.WaitGroup     // goroutines beside the loop
	ioCtx  context.Context    // Set once: ends with the run
	endIO  context.CancelFunc // Set once: ends ioCtx
}

// A wait is what a run waits for, from when its thread is known until its words are sent.
type wait struct {
	reason    handoff.Wait
	elsewhere bool      // another program has the thread
	program   string    // that program; "": not known
	holder    queueView // the running turn into which the words go
	turns     int       // how many turns of somebody else were waited for
	noting    bool      // a ledger step is on its way that notes the words
	lostAt    time.Time // when the machine was lost; zero while it is there
}

// An attempt is one try to give the words to a turn. It begins with the ledger step before the start.
type attempt struct {
	target handoff.Target // of that step
	number int            // of that step; it never decreases
	before handoff.TurnID // the newest turn of the thread before the start
}

// newRun returns a run that does nothing before loop. It becomes known to others by [run.open]: from then on facts
// come from outside, also before the loop has begun.
func (c *caller) newRun(id string) *run {
	r := c.router
	w := &run{
		router: r, caller: c, ID: id, rec: handoff.Record{ID: id}, woken: make(chan struct{}, 1),
		span:  handoff.SpanOf(context.Background()),
		log:   r.cfg.Log.WithLazy(zap.String("principal", c.who.Principal), zap.String("handoff", id)),
		claim: claim{queues: r.cfg.Queues, id: id, caller: c.who},
		gate:  gate{gates: r.cfg.Gates, holder: id},
	}
	w.agents.fleet, w.watcher.run = r.cfg.Fleet, w
	w.ioCtx, w.endIO = context.WithCancel(context.Background()) // the end of the process is a fact, and cancels nothing
	return w
}

// loop performs the slow actions that the state names, one after the other, and applies the fact of each, until the
// outcome is known and published. Then it detaches from the thread.
func (r *run) loop(ctx context.Context) {
	if r.req.Within > 0 {
		defer time.AfterFunc(r.req.Within, func() { r.apply(phase.FactDue, nil) }).Stop()
	}
	defer context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.endsWith(ctx)
	})()
	r.work(ctx)
	runtime.Gosched() // let the listeners of the outcome go first
	r.endIO()
	r.io.Wait()
	r.agents.end(r.log)
	r.span.End(codeOf(r.rec.Fault), "outcome", string(r.state.Outcome), "server", r.router.cfg.Counts.label(r.rec.Server),
		"why", string(r.rec.Why))
	r.log.Info("handoff ended", zap.String("server", r.rec.Server), zap.String("thread", r.target.Thread),
		zap.String("turn", string(r.turn)), zap.String("outcome", string(r.state.Outcome)),
		zap.String("code", string(codeOf(r.rec.Fault))), zap.Duration("took", time.Since(r.rec.CreatedAt)))
}

// open makes the run known by calling known, unless that refuses, and enters the phase in which the run begins. Both
// happen under the lock, so nobody finds a run that has not entered it. If that phase is the end, fault is its reason.
func (r *run) open(fault *handoff.Error, known func() bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !known() {
		return false
	}
	r.rec, _ = r.caller.registry.find(r.ID)
	switch r.state.Phase {
	case phase.Reconciling:
		r.claim.take(threadKey(r.target))
	case phase.Reconnecting:
		r.claim.take(threadKey(r.target))
		r.watcher.lostAt = time.Now() // set, so that reconnect publishes no loss
	case phase.Writing:
		r.finish(fault)
	}
	r.setAction(r.state.First())
	return true
}

// endsWith applies the fact that the router's context has ended. An outcome that is known already stays.
func (r *run) endsWith(ctx context.Context) {
	fact := phase.FactShutdown
	if errors.Is(context.Cause(ctx), ErrMoved) {
		fact = phase.FactMoved
	}
	r.step(fact, handoff.Fault(handoff.CodeShutdown, "", ""))
}

// work performs the slow actions that the state names. Once the router's context has ended, none begins, even if the
// run learns first that its thread is free: another run, which ended for the same reason, may have freed it.
func (r *run) work(routerCtx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for stopped := false; r.state.Phase != phase.Ended; {
		if !stopped && routerCtx.Err() != nil {
			stopped = true
			r.endsWith(routerCtx)
			continue
		}
		act, ctx := r.next, r.ctx
		r.next = phase.ActNothing
		if act == phase.ActNothing {
			r.mu.Unlock()
			<-r.woken
			r.mu.Lock()
			continue
		}
		if fact, fault := r.perform(ctx, act); ctx.Err() == nil {
			r.step(fact, fault)
		}
	}
}

// setAction cancels the current slow action, and wakes the loop for another one.
func (r *run) setAction(a phase.Action) {
	if r.cancel != nil {
		r.cancel()
	}
	r.ctx, r.cancel = context.WithCancel(r.ioCtx)
	r.next = a
	select {
	case r.woken <- struct{}{}:
	default: // it is awake already
	}
}

// unlocked calls do without the lock, since do may wait. It reports whether the action is still the current one; if
// not, the result of do is void.
func (r *run) unlocked(ctx context.Context, do func()) bool {
	r.mu.Unlock()
	do()
	r.mu.Lock()
	return ctx.Err() == nil
}

// limited is unlocked, for a bounded time.
func (r *run) limited(ctx context.Context, do func(context.Context)) bool {
	limited, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	return r.unlocked(ctx, func() { do(limited) })
}

// apply is step for facts from outside: it takes the lock.
func (r *run) apply(f phase.Fact, fault *handoff.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.step(f, fault)
}

// step applies a fact and carries out the actions that follow; slow ones are left to the loop. The fault is the reason
// of a fact that is a failure: it counts if the fact ends the run.
func (r *run) step(f phase.Fact, fault *handoff.Error) {
	before := r.state
	if before.Phase == phase.Ended {
		return
	}
	next, acts := before.Step(f)
	r.state = next
	r.log.Debug("handoff step", zap.Stringer("fact", f), zap.Stringer("phase", next.Phase))
	if next.Outcome != "" && before.Outcome == "" {
		r.finish(fault)
	}
	if next.Noted && !before.Noted {
		r.caller.feed.noted(r.ID)
	}
	if inLedger := next.Noted && !before.Noted || f == phase.FactWritten; inLedger && r.req.Instead != "" {
		r.caller.endPaused(string(r.req.Instead), wording.WentOn) // this run has its words
	}
	if ends := f == phase.FactShutdown || f == phase.FactMoved; ends && before.Phase >= phase.Starting {
		r.gate.lease = lease{} // the next life of the run frees the gate, or its lease expires
	} else if !next.Gated() {
		r.openGate()
	}
	for _, act := range acts {
		if act.TakesTime() {
			r.setAction(act)
		} else {
			r.do(act)
		}
	}
	if next.Phase == phase.Ended {
		r.caller.ended(r.ID)
		r.setAction(phase.ActNothing)
	}
}

// perform does a slow action, in a span, and returns its fact.
func (r *run) perform(ctx context.Context, a phase.Action) (fact phase.Fact, fault *handoff.Error) {
	ctx, span := handoff.BeginSpan(ctx, a.String())
	defer func() { span.End(codeOf(fault), "fact", fact.String()) }()
	switch a {
	case phase.ActResolve:
		return r.resolve(ctx)
	case phase.ActJoin:
		return r.join(ctx)
	case phase.ActSteer:
		return r.steer(ctx)
	case phase.ActAttach:
		return r.attach(ctx)
	case phase.ActCreate:
		return r.create(ctx)
	case phase.ActOffer:
		return r.offer(ctx)
	case phase.ActCopy:
		return r.copyThread(ctx)
	case phase.ActAwait:
		return r.await(ctx)
	case phase.ActStart:
		return r.start(ctx)
	case phase.ActReconcile:
		return r.reconcile(ctx)
	case phase.ActFollow:
		return r.watcher.follow(ctx)
	case phase.ActReconnect:
		return r.watcher.reconnect(ctx)
	case phase.ActWriteOutcome:
		done := r.outcomeAck
		r.unlocked(ctx, func() { fact = done.outcome(ctx, r.log) })
		return fact, nil
	}
	return phase.FactNothing, nil
}

// do carries out a fast action; what it has to wait for is done beside the loop.
func (r *run) do(a phase.Action) {
	switch a {
	case phase.ActRemember:
		r.remember()
	case phase.ActForget:
		r.forget()
	case phase.ActInterrupt:
		r.interrupt()
	case phase.ActNote:
		r.note()
	case phase.ActPromise:
		r.showWaits()
		r.publish(handoff.RunPromised{Waits: r.wait.reason})
		r.caller.feed.offer(r.ID)
	case phase.ActPublishWait:
		if r.showWaits() { // once, also if the action comes again
			r.publish(handoff.RunWaiting{Waits: r.wait.reason})
		}
	case phase.ActPublishJoined:
		r.publish(handoff.RunJoined{})
	case phase.ActPublishSilence:
		r.publish(handoff.RunSilent{})
	case phase.ActPublishOutcome:
		// An outcome that nobody heard is kept, unless the work was never promised: then [Router.promised] returns it.
		if !r.publish(handoff.RunEnded{}) && (r.state.Noted || r.req.By != nil) {
			r.caller.keep(r.ID)
		}
	case phase.ActYield:
		if r.state.Outcome == "" { // the run moves; else the ledger refused its outcome
			r.router.cfg.Queues.leave(append(r.claim.held, r.claim.awaited), r.ID)
			r.writer.close()
		}
		r.log.Info("another home of the caller has the run and publishes its outcome")
		r.publish(handoff.RunYielded{})
	}
}

// publish publishes an event of the run, and reports whether a listener heard it.
func (r *run) publish(kind handoff.RunKind) bool { return r.caller.feed.publish(r.ID, kind) }

// show lets fn alter the record.
func (r *run) show(fn func(rec *handoff.Record)) { r.rec = r.caller.registry.change(r.ID, fn) }

// showWaits shows on the record what the run waits for, and reports whether that is a change.
func (r *run) showWaits() bool {
	after := map[handoff.Wait]string{handoff.WaitsOurs: "ours", handoff.WaitsTheirs: "theirs"}[r.wait.reason]
	if after == r.rec.Waits {
		return false
	}
	r.show(func(rec *handoff.Record) { rec.Waits, rec.Place = after, 0 })
	return true
}

// advance sets the status and the turn of the record.
func (r *run) advance(s handoff.Status) {
	r.show(func(rec *handoff.Record) {
		rec.State, rec.TurnID = s, r.turn
		if s != handoff.StatusDispatching {
			rec.Waits, rec.Place = "", 0
		}
	})
}

// facts returns what the ledger is to know of the run now, with t as its target.
func (r *run) facts(t handoff.Target) ledger.Facts {
	return ledger.Facts{
		ClientID: r.ID, Target: t, Prompt: handoff.InputText(r.req.Input),
		Title: r.rec.Title, Why: r.rec.Why, Giver: r.rec.Key, Asker: r.rec.Client, Parent: r.rec.Parent, Unkept: r.req.Unkept,
	}
}
