package router

import (
	"context"
	"slices"
	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/phase"
	"switchboard/handoff/wording"
	"sync"
	"time"

	"go.uber.org/zap"
)

// ioTimeout bounds each step before the turn runs: resolving, attaching, starting.
const ioTimeout = 30 * time.Second

// seenWithin is how long an acknowledged turn may take to show itself: until then its id is a promise, and
// servers are known that forgot it.
const seenWithin = 10 * time.Second

// storeTimeout bounds a write to the store behind the caller's back.
const storeTimeout = 5 * time.Second

// A work is one handoff: the life of a codex request. Its goroutine is [work.run].
type work struct {
	r        *Router         // Set once
	book     *book           // Set once: the caller's
	caller   handoff.Caller  // Set once
	grant    handoff.Grant   // Set once; work of a former process has none, and looks for no names
	req      handoff.Request // Set once
	ID       string          // Set once: the record's id
	log      *zap.Logger     // Set once
	orders   *orders         // Set once; safe by itself: what it is told from outside
	prefetch *prefetch       // Set once: what was attached ahead; nil: nothing
	line     *line           // Set once: what the ledger is told; may be nil
	began    time.Time       // Set once
	asked    time.Time       // Set once: when the caller asked, in whichever life of the process

	state     phase.State      // Owned by run
	target    handoff.Target   // Owned by run
	sent      handoff.Target   // Owned by run: where the ledger was last told the words go
	attempt   int              // Owned by run: which attempt it was told then; never less after that
	attached  handoff.Attached // Owned by run: the newest attachment
	before    handoff.TurnID   // Owned by run: the newest turn of the thread before the start
	turn      handoff.TurnID   // Owned by run
	claims    []string         // Owned by run: lanes that this work holds
	awaited   string           // Owned by run: the lane that it waits for
	joined    laneView         // Owned by run: the running turn that takes its words
	waits     handoff.Wait     // Owned by run: what it has to wait for
	elsewhere bool             // Owned by run: another program has the thread
	unseen    timer            // Owned by run: runs until the acknowledged turn shows itself
	silent    timer            // Owned by run: runs while the turn reports nothing
	watch     watch            // Owned by run: the present following of the turn
	fault     *handoff.Error   // Owned by run: why it did not go well
	rec       handoff.Record   // Owned by run: as last shown
	written   receipt          // Owned by run: of the outcome in the ledger
	noting    bool             // Owned by run: a note is on its way into the ledger
	held      string           // Owned by run: the newest message, held back while it may be the final one
	reported  idSet            // Owned by run: items whose end was reported, to tell those that are repeated
	awaits    int              // Owned by run: how often a turn of somebody else was waited for
	rejoins   int              // Owned by run: tries to come back since the turn last reported something
	lost      time.Time        // Owned by run: when the agent was lost; zero while it is there

	facts        chan func()     // results of I/O, run by run; unbuffered, the sender waits or the work ends
	io           sync.WaitGroup  // goroutines doing I/O for run
	ioCtx        context.Context // Set once by run: ends with the work
	agentsMu     sync.Mutex
	agents       []handoff.Agent // Guarded by agentsMu: attached for this work and not closed, oldest first
	prefetchUsed bool            // Guarded by agentsMu: what was attached ahead is among them, or was
}

// A watch is one following of the turn. What comes from an earlier one is ignored.
type watch struct {
	number int
	stop   context.CancelFunc // nil: none
}

// newWork returns a work that does nothing before run.
func (r *Router) newWork(id string, c handoff.Caller, b *book) *work {
	return &work{
		r: r, book: b, caller: c, ID: id, log: r.log.With(zap.String("principal", c.Principal), zap.String("handoff", id)),
		orders: newOrders(), facts: make(chan func()), rec: handoff.Record{ID: id},
	}
}

// run is the owner of the handoff until its outcome is known and given, and the thread is detached.
func (w *work) run(ctx context.Context) {
	ioCtx, endIO := context.WithCancel(context.WithoutCancel(ctx))
	w.ioCtx = ioCtx
	due := newTimer()
	defer due.Stop()
	if w.req.Within > 0 {
		due.Reset(w.req.Within)
	}
	w.unseen, w.silent = newTimer(), newTimer()
	defer w.unseen.Stop()
	defer w.silent.Stop()
	w.open()
	closing := ctx.Done()
	for w.state.Phase != phase.Ended {
		select {
		case fn := <-w.facts:
			if w.hear(); w.state.Phase != phase.Ended {
				fn()
			}
		case <-w.orders.come:
			w.hear()
		case <-due.C:
			w.Step(phase.FactDue)
		case <-w.unseen.C:
			w.Step(phase.FactUnseen)
		case <-w.silent.C:
			w.fellSilent()
		case <-closing:
			closing = nil
			w.shutdown()
		}
	}
	endIO()
	w.io.Wait()
	w.r.lanes.leave(append(w.claims, w.awaited), w.ID) // again: what waited for its turn may have looked once more meanwhile
	w.dropPrefetch()
	w.detach(0)
	w.log.Info("handoff ended", zap.String("server", w.rec.Server), zap.String("thread", w.target.Thread),
		zap.String("turn", string(w.turn)), zap.String("outcome", string(w.state.Outcome)),
		zap.String("code", string(codeOf(w.fault))), zap.Duration("took", time.Since(w.began)))
}

// open does the first thing of the phase that the work begins in.
func (w *work) open() {
	w.rec, _ = w.book.find(w.ID)
	switch w.state.Phase {
	case phase.Settling:
		w.take(threadLane(w.target))
		w.do(phase.ActSettle)
	case phase.Rejoining:
		w.take(threadLane(w.target))
		w.lost = time.Now() // with its former life; nobody needs to be told
		w.do(phase.ActRejoin)
	case phase.Writing: // there is nothing to look for
		w.finish()
		w.do(phase.ActWriteOutcome)
	default:
		w.do(phase.ActResolve)
	}
}

// detach lets go of what was attached for this work but the newest keep.
func (w *work) detach(keep int) {
	w.agentsMu.Lock()
	n := max(len(w.agents)-keep, 0)
	old := slices.Clone(w.agents[:n])
	w.agents = w.agents[n:]
	w.agentsMu.Unlock()
	for _, agent := range old {
		if err := agent.Close(); err != nil {
			w.log.Debug("detach failed", zap.Error(err))
		}
	}
}

// hold keeps an agent until detach.
func (w *work) hold(a handoff.Agent) {
	w.agentsMu.Lock()
	defer w.agentsMu.Unlock()
	w.agents = append(w.agents, a)
}

// background runs I/O beside the owner loop; what it returns runs in the loop.
func (w *work) background(timeout time.Duration, do func(context.Context) func()) {
	w.io.Go(func() {
		ctx := w.ioCtx
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		if fn := do(ctx); fn != nil {
			select {
			case w.facts <- fn:
			case <-w.ioCtx.Done(): // the outcome is known without it
			}
		}
	})
}

// Step applies a fact and carries out what follows.
func (w *work) Step(f phase.Fact) {
	before := w.state
	next, acts := w.state.Step(f)
	w.state = next
	w.log.Debug("handoff step", zap.Stringer("fact", f), zap.Stringer("phase", next.Phase))
	if next.Outcome != "" && before.Outcome == "" {
		w.finish()
	}
	if next.Noted && !before.Noted {
		w.book.noted(w.ID)
	}
	for _, act := range acts {
		w.do(act)
	}
}

// shutdown ends the work with the process. An outcome that is known already stays.
func (w *work) shutdown() {
	if w.state.Outcome == "" {
		w.fault = handoff.Fault(handoff.CodeShutdown, "", "")
	}
	w.Step(phase.FactShutdown)
}

// fail applies a fact that has a reason. When it goes on another way the reason is none any more: whatever ends
// the work later has its own.
func (w *work) fail(f phase.Fact, err error) {
	w.fault = handoff.AsError(err)
	if w.Step(f); w.state.Outcome == "" {
		w.fault = nil
	}
}

// do carries out one action. What waits goes to the background.
func (w *work) do(a phase.Action) {
	switch a {
	case phase.ActResolve:
		w.background(ioTimeout, w.resolve)
	case phase.ActJoin:
		w.background(0, w.join())
	case phase.ActSteer:
		w.background(ioTimeout, w.steer())
	case phase.ActAttach:
		w.background(ioTimeout, w.attach)
	case phase.ActCreate:
		w.background(ioTimeout, w.create)
	case phase.ActOffer:
		w.offer()
	case phase.ActCopy:
		w.copying()
	case phase.ActAwait:
		w.background(0, w.await())
	case phase.ActStart:
		w.advance(handoff.StatusDispatching)
		w.background(ioTimeout, w.start())
	case phase.ActSettle:
		w.unfollow()
		w.background(0, w.settle())
	case phase.ActFollow:
		w.advance(handoff.StatusStarted)
		w.line.started(w.turn, w.rec.Why)
		w.follow()
	case phase.ActRejoin:
		w.unfollow()
		w.background(0, w.rejoin())
	case phase.ActRemember:
		w.remember()
	case phase.ActForget:
		w.forget()
	case phase.ActInterrupt:
		w.background(ioTimeout, w.interrupt())
	case phase.ActWriteOutcome:
		w.writeOutcome()
	default:
		w.publishes(a)
	}
}

// publish tells whoever hears of the work. False: nobody does.
func (w *work) publish(kind handoff.RunKind) bool { return w.book.publish(w.ID, kind) }

// publishes carries out an action that others hear of.
func (w *work) publishes(a phase.Action) {
	switch a {
	case phase.ActNote:
		w.note()
	case phase.ActPromise:
		w.showWaits()
		w.publish(handoff.RunPromised{Waits: w.waits})
		w.book.offer(w.ID)
	case phase.ActPublishWait:
		w.showWaits()
		w.publish(handoff.RunWaiting{Waits: w.waits})
	case phase.ActPublishJoined:
		w.publish(handoff.RunJoined{})
	case phase.ActPublishSilence:
		w.publish(handoff.RunSilent{})
	case phase.ActPublishOutcome:
		if w.publish(handoff.RunEnded{}) {
			break
		}
		if w.state.Noted || w.req.By != nil { // else it was never promised, and whoever asked is told
			w.r.keep(w.caller, w.book, w.ID)
		}
	case phase.ActYield:
		w.log.Warn("another life of the process has the work, and tells of it")
		w.publish(handoff.RunYielded{})
	}
	if w.state.Phase == phase.Ended {
		w.book.ended(w.ID)
	}
}

// prompt is what the agent is asked in words.
func (w *work) prompt() string { return handoff.InputText(w.req.Input) }

// showWaits lets the page tell what the work comes after.
func (w *work) showWaits() {
	if after := map[handoff.Wait]string{handoff.WaitsOurs: "ours", handoff.WaitsTheirs: "theirs"}[w.waits]; after != w.rec.Waits {
		w.rec = w.book.change(w.ID, func(r *handoff.Record) { r.Waits = after })
	}
}

// advance moves the record forward.
func (w *work) advance(s handoff.Status) {
	w.rec = w.book.change(w.ID, func(r *handoff.Record) {
		r.State = s
		if s != handoff.StatusDispatching {
			r.Waits = ""
		}
	})
}

// finish closes the record with its outcome. The thread is free from here on: the caller may answer the
// outcome before it is detached.
func (w *work) finish() {
	w.r.lanes.leave(append(w.claims, w.awaited), w.ID)
	if w.fault == nil && w.state.Outcome == handoff.OutcomeUnknown {
		w.fault = handoff.Fault(handoff.CodeAgentGone, w.rec.Server, "")
	}
	if w.state.Phase == phase.Writing && w.state.Outcome != handoff.OutcomeUnknown {
		for _, it := range w.rec.Items { // the turn has ended: what it did not finish saying never counts
			if it.State == itemRunning && it.Kind == handoff.ItemMessage {
				w.book.drop(w.ID, it.ID)
			}
		}
	}
	w.rec = w.book.change(w.ID, func(r *handoff.Record) {
		r.State, r.Outcome = handoff.StatusCompleted, w.state.Outcome
		r.Error, r.Fault = recordError(w.fault), w.fault
		r.EndedAt = new(time.Now())
		r.Spoken = wording.OutcomeSentence(*r)
		for i := range r.Items {
			if r.Items[i].State == itemRunning {
				r.Items[i].State = itemFailed
			}
		}
	})
	for _, q := range w.book.questionsOf(w.ID) {
		w.questionClosed(q.shown.ID)
	}
	if codeOf(w.fault) == handoff.CodeShutdown && w.state.Outcome == handoff.OutcomeUnknown {
		w.line.leave() // the next life of the process finds it and tells how it ended
		return
	}
	body := ledger.Body{Text: w.rec.Text}
	if !w.state.Inherited { // else the entry has only its first words
		body.Prompt = w.prompt()
	}
	w.line.words(body)
	w.written = w.line.completed(ledger.Facts{
		ClientID: w.ID, Target: w.target, Prompt: w.prompt(), Title: w.rec.Title, Why: w.rec.Why,
		Outcome: w.state.Outcome, Code: codeOf(w.fault), Spoken: w.rec.Spoken,
	})
}

// writeOutcome waits until the outcome is in the ledger, for a short time.
func (w *work) writeOutcome() {
	written := w.written
	if written == nil {
		w.Step(phase.FactWritten)
		return
	}
	w.background(0, func(ctx context.Context) func() {
		t := time.NewTimer(writtenWithin)
		defer t.Stop()
		select {
		case err := <-written:
			return func() { w.Step(writtenFact(err)) }
		case <-t.C:
			return func() {
				w.log.Warn("an outcome is told before it is written")
				w.Step(phase.FactUnwritten)
			}
		case <-ctx.Done():
			return nil
		}
	})
}

func writtenFact(err error) phase.Fact {
	switch {
	case err == nil:
		return phase.FactWritten
	case handoff.AsError(err).Code == handoff.CodeTakenOver:
		return phase.FactTakenOver
	}
	return phase.FactUnwritten
}

func codeOf(e *handoff.Error) handoff.Code {
	if e == nil {
		return ""
	}
	return e.Code
}
