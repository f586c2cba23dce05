package handoff

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
)

// AnswerWithin is how long the voice model waits for a result as the answer; then it is told that the
// work goes on, and the result comes later.
const AnswerWithin = 1500 * time.Millisecond

// ioTimeout bounds each step before the turn runs: resolving, attaching, starting.
const ioTimeout = 30 * time.Second

// storeTimeout bounds a write to the store behind the caller's back.
const storeTimeout = 5 * time.Second

// commandQueue bounds what a work is told from outside (stop, call ended). Both are told at most a few
// times; when it is full, a repeated stop is dropped, which changes nothing.
const commandQueue = 8

// A work is one handoff: the life of a codex request. Its goroutine is [work.run].
type work struct {
	r      *Router        // Set once
	book   *book          // Set once: the caller's
	caller Caller         // Set once
	call   *call          // Set once: the call that asked
	req    Request        // Set once
	args   codexArguments // Set once
	words  []string       // Set once: the caller's last words
	id     string         // Set once: the record's id
	log    *zap.Logger    // Set once
	orders chan Fact      // FactStop and FactCallEnded, from any goroutine; bounded by commandQueue
	began  time.Time      // Set once

	state    State           // Owned by run
	target   Target          // Owned by run
	attached Attached        // Owned by run
	turn     TurnID          // Owned by run
	claims   []string        // Owned by run: what this work holds alone
	fault    *Error          // Owned by run: why it did not go well
	rec      Record          // Owned by run: as last shown
	held     string          // Owned by run: the newest message, held back while it may be the final one
	notes    int             // Owned by run: notes given
	facts    chan func()     // results of I/O, run by run; unbuffered, the sender waits or the work ends
	agents   chan Agent      // what I/O attached, for close to detach; attach and create succeed once each
	io       sync.WaitGroup  // goroutines doing I/O for run
	ioCtx    context.Context // Set once by run: ends with the work
}

// tell hands a fact to the work without waiting.
func (w *work) tell(f Fact) {
	select {
	case w.orders <- f:
	default:
		w.r.droppedOrders.Add(1)
	}
}

// run is the owner of the handoff until its outcome is known and given, and the thread is detached.
func (w *work) run(ctx context.Context) {
	ioCtx, endIO := context.WithCancel(context.WithoutCancel(ctx))
	w.ioCtx = ioCtx
	due := time.NewTimer(AnswerWithin)
	defer due.Stop()
	w.background(ioTimeout, w.resolve)
	for w.state.Phase != PhaseEnded {
		select {
		case fn := <-w.facts:
			fn()
		case f := <-w.orders:
			w.step(f)
		case <-due.C:
			w.step(FactAnswerDue)
		case <-ctx.Done():
			w.fail(FactShutdown, Fault(CodeShutdown, "", ""))
		}
	}
	endIO()
	w.io.Wait()
	w.detach()
	w.log.Info("handoff ended", zap.String("server", w.rec.Server), zap.String("thread", w.target.Thread),
		zap.String("turn", string(w.turn)), zap.String("outcome", string(w.state.Outcome)),
		zap.String("code", string(codeOf(w.fault))), zap.Duration("took", time.Since(w.began)))
}

// detach lets go of every thread that was attached for this work.
func (w *work) detach() {
	close(w.agents)
	for agent := range w.agents {
		if err := agent.Close(); err != nil {
			w.log.Debug("detach failed", zap.Error(err))
		}
	}
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

// store writes behind: it is not cut short when the work ends.
func (w *work) store(what string, write func(context.Context) error) {
	w.io.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ioCtx), storeTimeout)
		defer cancel()
		if err := write(ctx); err != nil {
			w.log.Warn("sticky session not stored", zap.String("what", what), zap.Error(err))
		}
	})
}

// step applies a fact and carries out what follows.
func (w *work) step(f Fact) {
	before := w.state.Phase
	next, acts := w.state.Step(f)
	w.state = next
	w.log.Debug("handoff step", zap.Stringer("fact", f), zap.Stringer("phase", next.Phase))
	if next.Phase == PhaseEnded && before != PhaseEnded {
		w.finish()
	}
	for _, act := range acts {
		w.do(act)
	}
}

func (w *work) fail(f Fact, err error) {
	w.fault = AsError(err)
	w.step(f)
}

// do carries out one action. What waits goes to the background.
func (w *work) do(a Action) {
	switch a {
	case ActAttach:
		w.background(ioTimeout, w.attach)
	case ActCreate:
		w.background(ioTimeout, w.create)
	case ActStart:
		w.advance(StatusDispatching)
		w.background(ioTimeout, w.start)
	case ActFollow:
		w.advance(StatusStarted)
		w.background(0, w.follow)
	case ActRemember:
		w.remember()
	case ActForget:
		w.forget()
	case ActInterrupt:
		w.background(ioTimeout, w.interrupt)
	case ActAnswerEarly:
		w.call.say(Utterance{ID: w.id + "-a", CallID: w.req.CallID, Text: earlyAnswer(w.rec), Floor: FloorUnlessSpoke}, "")
	case ActAnswerOutcome:
		w.give(Utterance{ID: w.id + "-a", CallID: w.req.CallID, Text: outcomeAnswer(w.rec, w.fault), Floor: FloorAsk})
	case ActTellOutcome:
		w.give(Utterance{ID: w.id + "-m", Text: outcomeMessage(w.rec, w.fault), Floor: FloorAsk})
	case ActKeepOutcome:
		w.book.keep(w.id)
	}
}

// give says the outcome; when the call has just ended it is kept for the next one.
func (w *work) give(u Utterance) {
	if !w.call.say(u, w.id) {
		w.book.keep(w.id)
	}
}

// advance moves the record forward. The ledger's writes belong here.
func (w *work) advance(s Status) {
	w.rec = w.book.change(w.id, func(r *Record) { r.State = s })
}

// finish closes the record with its outcome. The thread is free from here on: the caller may answer the
// outcome before it is detached.
func (w *work) finish() {
	w.r.release(w.claims)
	if w.fault == nil && w.state.Outcome == OutcomeUnknown {
		w.fault = Fault(CodeAgentGone, w.rec.Server, "")
	}
	w.rec = w.book.change(w.id, func(r *Record) {
		r.State, r.Outcome = StatusCompleted, w.state.Outcome
		r.Error = recordError(w.fault)
		r.EndedAt = new(time.Now())
		r.Spoken = outcomeSentence(*r, w.fault)
		for i := range r.Items {
			if r.Items[i].State == itemRunning {
				r.Items[i].State = itemFailed
			}
		}
	})
	w.book.ended(w.id)
}

func codeOf(e *Error) Code {
	if e == nil {
		return ""
	}
	return e.Code
}
