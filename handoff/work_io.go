package handoff

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
)

// spokenContext tells the agent how its answer will be used.
const spokenContext = "This request was spoken on a call and may have been misheard. The answer is read to the caller: " +
	"end it with one short sentence that can be said aloud."

// copyOf in front of a thread's name asks for a copy of it. The caller is asked before it is made.
const copyOf = "copy of "

// resolve finds the target: the names, then the thread (named, sticky or new), then the right to use it.
func (w *work) resolve(ctx context.Context) func() {
	name, isCopy := cutPrefixFold(w.args.Thread, copyOf)
	t, err := w.names(ctx, name)
	if err != nil {
		return func() { w.fail(FactUnresolved, err) }
	}
	fact, why := FactResolvedThread, WhyNamed
	var title string
	switch {
	case isCopy && t.Thread != "" && t.Thread != NewThread:
		if w.book.offers(t) {
			return func() { w.fail(FactUnresolved, offered()) }
		}
		fact, why = FactResolvedCopy, WhyCopy
		if name != t.Thread {
			title = name
		}
	case t.Thread == NewThread:
		fact, why = FactResolvedNew, WhyNew
	case t.Thread == "":
		if err := w.r.loadStickies(ctx, w.caller, w.book); err != nil {
			return func() { w.fail(FactUnresolved, err) }
		}
		fact, why = FactResolvedNew, WhyNew
		if s, ok := w.book.sticky(keyOf(t)); ok {
			fact, why, t.Thread, title = FactResolvedSticky, WhyContinued, s.Target.Thread, s.Title
		}
	}
	return func() { w.resolved(fact, t, why, title) }
}

// names resolves the names, unless that was done ahead. A machine that was away then may be back.
func (w *work) names(ctx context.Context, thread string) (Target, error) {
	if w.guess != nil {
		t, err := w.guess.resolved(ctx)
		if err == nil || AsError(err).Code != CodeUnreachable {
			return t, err
		}
	}
	return w.r.fleet.Resolve(ctx, w.grant, Target{Server: w.args.Server, Thread: thread})
}

// dropGuess closes what was attached ahead and not used.
func (w *work) dropGuess() {
	if w.guess == nil {
		return
	}
	<-w.guess.ready
	w.agentsMu.Lock()
	used := w.guessUsed
	w.agentsMu.Unlock()
	if agent := w.guess.at.Agent; agent != nil && !used {
		w.hold(agent)
	}
}

// reached attaches the thread, or takes what was attached ahead.
func (w *work) reached(ctx context.Context, t Target) (Attached, error) {
	if w.guess != nil {
		if at, ok := w.guess.attached(ctx, t); ok && w.useGuess() {
			return at, nil
		}
	}
	return w.r.fleet.Attach(ctx, t)
}

// useGuess tells whether what was attached ahead may be used: once.
func (w *work) useGuess() bool {
	w.agentsMu.Lock()
	defer w.agentsMu.Unlock()
	first := !w.guessUsed
	w.guessUsed = true
	return first
}

// cutPrefixFold cuts a prefix whatever its case.
func cutPrefixFold(s, prefix string) (string, bool) {
	if len(s) > len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
		return strings.TrimSpace(s[len(prefix):]), true
	}
	return s, false
}

// resolved continues in the owner loop: it takes the lane, so that two requests of ours never meet on a
// thread, and no second thread is made while the first is on its way to become sticky.
func (w *work) resolved(fact Fact, t Target, why, title string) {
	w.target = t
	lane := ""
	switch {
	case fact == FactResolvedNew && w.args.Thread == "":
		lane = newLane(w.caller, t)
	case fact == FactResolvedThread, fact == FactResolvedSticky:
		lane = threadLane(t)
	}
	if fact == FactResolvedCopy {
		w.waits = waitsYes
	}
	free := lane == "" || w.take(lane)
	w.leaveOthers(lane)
	w.rec = w.book.change(w.id, func(r *Record) {
		r.Server, r.Project, r.Title = t.Server, t.Project, title
		if free {
			r.Why = why
		}
		if fact != FactResolvedNew {
			r.ThreadID = t.Thread
		}
	})
	if !free {
		w.awaited = lane
		fact = FactResolvedTaken
	}
	w.call.tell(beganEvent{id: w.id, server: t.Server, title: title, answered: w.state.Answered})
	w.step(fact)
}

func (w *work) take(lane string) bool {
	if !w.r.lanes.take(lane, w.id, w.caller) {
		return false
	}
	if !slices.Contains(w.claims, lane) {
		w.claims = append(w.claims, lane)
	}
	return true
}

// leaveOthers gives up the lanes of threads that the words do not go to: who waits there must not meet
// them elsewhere.
func (w *work) leaveOthers(lane string) {
	var kept, left []string
	for _, key := range w.claims {
		if key == lane {
			kept = append(kept, key)
		} else {
			left = append(left, key)
		}
	}
	w.claims = kept
	w.r.lanes.leave(left, w.id)
}

func (w *work) attach(ctx context.Context) func() {
	at, err := w.reached(ctx, w.target)
	if err != nil {
		e := AsError(err)
		switch e.Code {
		case CodeSessionGone, CodeSessionElsewhere:
			return func() { w.fail(FactThreadGone, e) }
		case CodeSessionInUse:
			return func() { w.heldElsewhere(e) }
		}
		return func() { w.unattached(e) }
	}
	w.hold(at.Agent)
	return w.arrived(at, func() {
		w.lost = time.Time{}
		if at.Target.Thread != w.target.Thread { // the last line of defence: adapters check it too
			w.fail(FactAttachFailed, Fault(CodeSessionMismatch, w.target.Server, "got "+at.Target.Thread))
			return
		}
		if at.Running != "" {
			w.waits = waitsTheirs
			w.step(busyFact(at.Agent))
			return
		}
		w.step(FactAttached)
	})
}

// unattached: words that were told to begin by themselves are not given up because their machine is away for
// a while.
func (w *work) unattached(e *Error) {
	if w.lost.IsZero() {
		w.lost = time.Now()
	}
	if w.state.Phase != PhaseWaiting || final(e) || time.Since(w.lost) > w.r.patience {
		w.fail(FactAttachFailed, e)
		return
	}
	w.attached.Running = "" // what runs there shows when the thread is attached again
	w.do(ActAwait)
}

// busyFact: a queue of the server is better than waiting here, it outlives us.
func busyFact(a Agent) Fact {
	_, queues := a.(Queuer)
	_, awaits := a.(Awaiter)
	if queues && awaits {
		return FactAttachedQueue
	}
	return FactAttachedBusy
}

func (w *work) create(ctx context.Context) func() {
	t := w.target
	t.Thread = NewThread
	at, err := w.r.fleet.Create(ctx, t)
	return w.made(at, err)
}

// made goes on with a thread that nobody else has.
func (w *work) made(at Attached, err error) func() {
	if err != nil {
		return func() { w.fail(FactAttachFailed, err) }
	}
	w.r.owners.made(w.caller, at.Target)
	w.hold(at.Agent)
	return w.arrived(at, func() {
		w.target.Thread = at.Target.Thread
		if !w.take(threadLane(w.target)) {
			w.fail(FactAttachFailed, Fault(CodeSessionMismatch, w.target.Server, "a new thread is already in use"))
			return
		}
		w.step(FactAttached)
	})
}

// arrived shows what was attached and lets go of what was attached before.
func (w *work) arrived(at Attached, then func()) func() {
	return func() {
		w.attached = at
		w.io.Go(func() { w.detach(1) })
		w.rec = w.book.change(w.id, func(r *Record) {
			r.ThreadID = at.Target.Thread
			if at.Title != "" {
				r.Title = at.Title
			}
			if w.state.Replaced {
				r.Why, r.Title = WhyReplaced, at.Title
			}
		})
		then()
	}
}

// asTurn is the request as the agent gets it.
func (w *work) asTurn() Turn {
	turn := Turn{ID: w.id, Input: TextInput(w.args.Prompt), Context: []Context{{Key: "switchboard", Value: spokenContext, Trusted: true}}}
	if len(w.words) > 0 {
		turn.Context = append(turn.Context, Context{Key: "caller_words", Value: strings.Join(w.words, "\n")})
	}
	return turn
}

// start gives the thread its turn, by one try.
func (w *work) start() func(context.Context) func() {
	agent, turn := w.attached.Agent, w.asTurn()
	w.before = w.attached.Newest
	write := w.dispatch()
	return func(ctx context.Context) func() {
		if err := write(ctx); err != nil {
			return func() { w.fail(FactStartRefused, err) }
		}
		id, err := agent.Start(ctx, turn)
		if err == nil {
			return func() { w.acknowledged(id) }
		}
		e := AsError(err)
		switch e.Code {
		case CodeJoined:
			return func() { w.merged(id) }
		case CodeUnknownStart, CodeInternal: // only a clear refusal proves that nothing runs
			return func() { w.fail(FactStartUnknown, e) }
		case CodeBusy:
			return func() {
				w.attached.Running = "" // which one it is shows when the thread is attached again
				w.waits = waitsTheirs
				w.step(FactStartBusy)
			}
		}
		return func() { w.refused(e) }
	}
}

// refused: the words certainly did not begin anything. What was attached may have been closed or lost meanwhile.
func (w *work) refused(e *Error) {
	fact := FactStartRefused
	switch e.Code {
	case CodeSessionInUse:
		w.heldElsewhere(e)
		return
	case CodeSessionGone:
		fact = FactThreadGone
	case CodeUnreachable:
		fact = FactStartUnsent
	}
	if w.state.Stopping && fact != FactStartRefused { // that is what the caller wanted
		w.step(fact)
		return
	}
	w.fail(fact, e)
}

// dispatch writes to the ledger that the words are about to be sent; without that they are not.
func (w *work) dispatch() func(context.Context) error {
	w.attempt = max(w.attempt, 1)
	if w.state.Again || w.sent != (Target{}) && w.sent != w.target { // else the ledger would keep the former thread
		w.attempt = 2
	}
	w.sent = w.target
	w.line.words(LedgerBody{Prompt: w.args.Prompt})
	line, attempt, facts := w.line, w.attempt, LedgerFacts{
		CallID: LedgerHash(w.req.CallID), ClientID: w.id, Target: w.target, Watermark: w.before,
		Prompt: w.args.Prompt, Title: w.rec.Title, Why: w.rec.Why,
	}
	return func(ctx context.Context) error {
		limited, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		if err := line.dispatch(limited, attempt, facts); err != nil {
			return unwritten(limited, err)
		}
		return w.noted(ctx)
	}
}

// acknowledged takes the turn's id. One that is not new belongs to somebody else: the server put the
// words into a turn that ran already.
func (w *work) acknowledged(id TurnID) {
	if id == w.attached.Newest || id == w.attached.Running {
		w.merged(id)
		return
	}
	w.turn = id
	w.step(FactStarted)
}

// merged follows the turn of somebody else that took the words in.
func (w *work) merged(id TurnID) {
	if id == "" {
		w.fail(FactStartUnknown, Fault(CodeUnknownStart, w.target.Server, "joined a turn without an id"))
		return
	}
	w.turn, w.fault = id, nil
	w.rec = w.book.change(w.id, func(r *Record) { r.Why = WhyMerged })
	w.step(FactMerged)
}

func (w *work) interrupt() func(context.Context) func() {
	controls, ok := w.attached.Agent.(Controls)
	turn := w.turn
	return func(ctx context.Context) func() {
		if !ok {
			w.log.Info("the agent cannot be interrupted")
			return nil
		}
		for try := 0; ; try++ {
			err := controls.Interrupt(ctx, turn)
			if err == nil {
				return nil
			}
			code := AsError(err).Code
			w.log.Info("interrupt failed", zap.String("code", string(code)), zap.Error(err))
			if code != CodeOverloaded && code != CodeAgentGone || !w.r.pause(ctx, try) { // a second one does no harm
				return nil
			}
		}
	}
}

// remember makes the thread sticky: the acknowledged turn proves that it can be resumed. What the caller has
// chosen since they asked for this stays. The store is written behind; the book already knows.
func (w *work) remember() {
	title := w.rec.Title
	if title == "" {
		title = Clip(strings.TrimSpace(w.args.Prompt), 80)
		w.rec = w.book.change(w.id, func(r *Record) { r.Title = title })
	}
	s := Sticky{Target: w.target, Title: title, Named: w.rec.Why == WhyNamed, Since: time.Now()}
	if old, ok := w.book.sticky(keyOf(w.target)); ok && old.Target == s.Target {
		s.Named, s.Since = old.Named || s.Named, old.Since
	}
	if w.book.putSticky(s, w.asked) {
		w.r.stick(w.caller, w.book, stickyWrite{sticky: s})
	}
}

// forget drops the sticky thread that is gone; its successor becomes sticky once its turn runs. Who waits
// for the one that is gone finds that out; who wants the successor waits where it is made.
func (w *work) forget() {
	gone := w.target
	dropped := w.book.dropGone(gone)
	if lane := newLane(w.caller, gone); w.take(lane) {
		w.leaveOthers(lane)
	}
	if dropped {
		w.r.stick(w.caller, w.book, stickyWrite{sticky: Sticky{Target: gone}, clear: true})
	}
}
