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

// storeTimeout bounds a write to the store behind the caller's back.
const storeTimeout = 5 * time.Second

// A run is the life of one request. Its goroutine is [run.loop].
type run struct {
	router *Router         // Set once
	caller *caller         // Set once
	grant  handoff.Grant   // Set once; a run of a former process has none, and looks for no names
	req    handoff.Request // Set once
	ID     string          // Set once: the record's id
	log    *zap.Logger     // Set once
	writer *ledgerWriter   // Set once: what the ledger is told; may be nil
	asked  time.Time       // Set once: when the caller asked, in whichever life of the process
	span   handoff.Span    // Set once: of its life

	// What takes time is done by the loop without the lock; facts from outside change the state meanwhile. Whoever
	// comes back with the lock looks first whether the action is still the same: its context says so.
	mu      sync.Mutex
	state   phase.State        // Guarded by mu
	act     phase.Action       // Guarded by mu: what the loop does next; nothing: it has begun, or there is nothing to do
	ctx     context.Context    // Guarded by mu: of the action that takes time; ends when another takes its place
	cancel  context.CancelFunc // Guarded by mu: ends ctx
	changed chan struct{}      // holds a token when there is another action

	target     handoff.Target   // Guarded by mu
	attached   handoff.Attached // Guarded by mu: the newest attachment
	turn       handoff.TurnID   // Guarded by mu
	rec        handoff.Record   // Guarded by mu: as last shown
	outcomeAck ack              // Guarded by mu: of the outcome in the ledger

	beside  []handoff.Context // Guarded by mu: what its agent is told of the session with which it goes on
	claim   claim             // Guarded by mu: what it has of the queues, until its outcome is known
	gate    gate              // Guarded by mu: of its thread
	wait    wait              // Guarded by mu: what it waits for before its words are sent
	attempt attempt           // Guarded by mu: the newest try to send them
	watcher turnWatcher       // Guarded by mu: of its turn

	agents agents             // safe by itself: what was attached for it
	io     sync.WaitGroup     // goroutines beside the loop
	ioCtx  context.Context    // Set once: ends with the run
	endIO  context.CancelFunc // Set once: ends ioCtx
}

// A wait is what a run waits for, from when its thread is known until its words are sent.
type wait struct {
	reason    handoff.Wait
	elsewhere bool      // another program has the thread
	program   string    // which one; "": not known
	joined    queueView // the running turn that takes the words
	turns     int       // how often a turn of somebody else was waited for
	noting    bool      // a note of it is on its way into the ledger
	lost      time.Time // when the machine was lost; zero while it is there
}

// An attempt is one try to give the words to a turn, from the step of the ledger before it on.
type attempt struct {
	target handoff.Target // where the ledger was told the words go
	number int            // as the ledger was told; never less in a later try
	before handoff.TurnID // the newest turn of the thread then
}

// newRun returns a run that does nothing before loop. Whoever makes it known opens it first: from then on facts come
// from outside, also before the loop has begun.
func (c *caller) newRun(id string) *run {
	r := c.router
	w := &run{
		router: r, caller: c, ID: id, rec: handoff.Record{ID: id}, changed: make(chan struct{}, 1),
		span:  handoff.SpanOf(context.Background()),
		log:   r.cfg.Log.WithLazy(zap.String("principal", c.who.Principal), zap.String("handoff", id)),
		claim: claim{queues: r.cfg.Queues, id: id, caller: c.who},
		gate:  gate{gates: r.cfg.Gates, holder: id},
	}
	w.agents.fleet, w.watcher.run = r.cfg.Fleet, w
	w.ioCtx, w.endIO = context.WithCancel(context.Background()) // not of the process, whose end is a fact like others
	return w
}

// loop does what the state names, one thing after the other, and hands back its fact, until the outcome is known and
// given. Then it lets go of the thread.
func (r *run) loop(ctx context.Context) {
	if r.req.Within > 0 {
		defer time.AfterFunc(r.req.Within, func() { r.tell(phase.FactDue, nil) }).Stop()
	}
	defer context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.endsWith(ctx)
	})()
	r.work(ctx)
	runtime.Gosched() // first whoever hears of the outcome
	r.endIO()
	r.io.Wait()
	r.agents.end(r.log)
	r.span.End(codeOf(r.rec.Fault), "outcome", string(r.state.Outcome), "server", r.router.cfg.Counts.label(r.rec.Server),
		"why", string(r.rec.Why))
	r.log.Info("handoff ended", zap.String("server", r.rec.Server), zap.String("thread", r.target.Thread),
		zap.String("turn", string(r.turn)), zap.String("outcome", string(r.state.Outcome)),
		zap.String("code", string(codeOf(r.rec.Fault))), zap.Duration("took", time.Since(r.rec.CreatedAt)))
}

// open makes the run known, unless that is refused, and does the first thing of the phase that it begins in. Nobody
// who finds it sees less. The fault is why it ends, if it begins with its end.
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
		r.watcher.lost = time.Now() // with its former life; nobody needs to be told
	case phase.Writing:
		r.finish(fault)
	}
	r.turnTo(r.state.First())
	return true
}

// endsWith tells the run that the context of its router has ended. An outcome that is known already stays.
func (r *run) endsWith(over context.Context) {
	fact := phase.FactShutdown
	if errors.Is(context.Cause(over), ErrMoved) {
		fact = phase.FactMoved
	}
	r.step(fact, handoff.Fault(handoff.CodeShutdown, "", ""))
}

// work does what the state names. Once over has ended nothing begins, also where the run learns first that the thread
// is free: another run that ended with it may have let go of that.
func (r *run) work(over context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for told := false; r.state.Phase != phase.Ended; {
		if !told && over.Err() != nil {
			told = true
			r.endsWith(over)
			continue
		}
		act, ctx := r.act, r.ctx
		r.act = phase.ActNothing
		if act == phase.ActNothing {
			r.mu.Unlock()
			<-r.changed
			r.mu.Lock()
			continue
		}
		if fact, fault := r.perform(ctx, act); ctx.Err() == nil {
			r.step(fact, fault)
		}
	}
}

// turnTo puts an action in the place of the one before.
func (r *run) turnTo(a phase.Action) {
	if r.cancel != nil {
		r.cancel()
	}
	r.ctx, r.cancel = context.WithCancel(r.ioCtx)
	r.act = a
	select {
	case r.changed <- struct{}{}:
	default: // it is awake already
	}
}

// unlocked runs do without the lock, since do may wait. It reports whether the action is still the current one; if not,
// the result of do is void.
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

// tell takes a fact from outside, at once. The fault is as in step.
func (r *run) tell(f phase.Fact, fault *handoff.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.step(f, fault)
}

// step applies a fact and carries out what follows; what takes time is left to the loop. The fault says why things
// did not go well: it counts if the fact ends the run.
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
		r.caller.endPaused(string(r.req.Instead), wording.WentOn) // its words are here now
	}
	if ends := f == phase.FactShutdown || f == phase.FactMoved; ends && before.Phase >= phase.Starting {
		r.gate.pass = pass{} // whoever takes the run up opens it, or its time does
	} else if !next.Gated() {
		r.openGate()
	}
	for _, act := range acts {
		if act.TakesTime() {
			r.turnTo(act)
		} else {
			r.do(act)
		}
	}
	if next.Phase == phase.Ended {
		r.caller.ended(r.ID)
		r.turnTo(phase.ActNothing)
	}
}

// perform does what takes time, in a span, and returns what came of it.
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

// do carries out what takes no time, or begins what is done beside the loop.
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
		if r.showWaits() { // once, however often it is tried again
			r.publish(handoff.RunWaiting{Waits: r.wait.reason})
		}
	case phase.ActPublishJoined:
		r.publish(handoff.RunJoined{})
	case phase.ActPublishSilence:
		r.publish(handoff.RunSilent{})
	case phase.ActPublishOutcome:
		// Else it was never promised, and whoever asked is told.
		if !r.publish(handoff.RunEnded{}) && (r.state.Noted || r.req.By != nil) {
			r.caller.keep(r.ID)
		}
	case phase.ActYield:
		if r.state.Outcome == "" { // it moves; else its outcome was refused
			r.router.cfg.Queues.leave(append(r.claim.held, r.claim.awaited), r.ID)
			r.writer.leave()
		}
		r.log.Info("another life of the router has the run, and tells of it")
		r.publish(handoff.RunYielded{})
	}
}

// publish tells whoever hears of the run. False: nobody does.
func (r *run) publish(kind handoff.RunKind) bool { return r.caller.feed.publish(r.ID, kind) }

// show lets fn alter the record.
func (r *run) show(fn func(rec *handoff.Record)) { r.rec = r.caller.registry.change(r.ID, fn) }

// showWaits lets the page tell what the run comes after. False: it does already.
func (r *run) showWaits() bool {
	after := map[handoff.Wait]string{handoff.WaitsOurs: "ours", handoff.WaitsTheirs: "theirs"}[r.wait.reason]
	if after == r.rec.Waits {
		return false
	}
	r.show(func(rec *handoff.Record) { rec.Waits, rec.Place = after, 0 })
	return true
}

// advance moves the record forward.
func (r *run) advance(s handoff.Status) {
	r.show(func(rec *handoff.Record) {
		rec.State, rec.TurnID = s, r.turn
		if s != handoff.StatusDispatching {
			rec.Waits, rec.Place = "", 0
		}
	})
}

// facts is what the ledger is told of the run now.
func (r *run) facts(t handoff.Target) ledger.Facts {
	return ledger.Facts{
		CallID: ledger.Hash(r.req.Key), ClientID: r.ID, Target: t, Prompt: handoff.InputText(r.req.Input),
		Title: r.rec.Title, Why: r.rec.Why, Asker: r.rec.Client, Parent: r.rec.Parent, Unkept: r.req.Unkept,
	}
}
