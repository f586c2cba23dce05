package router

import (
	"context"
	"slices"
	"strings"
	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/phase"
	"time"

	"go.uber.org/zap"
)

// copyOf in front of a thread's name asks for a copy of it. The caller is asked before it is made.
const copyOf = "copy of "

// resolve finds the target: the names, then the thread (named, sticky or new), then the right to use it.
func (w *work) resolve(ctx context.Context) func() {
	name, isCopy := cutPrefixFold(w.req.Target.Thread, copyOf)
	t, err := w.names(ctx, name)
	if err != nil {
		return func() { w.fail(phase.FactUnresolved, err) }
	}
	fact, why := phase.FactResolvedThread, handoff.WhyNamed
	var title string
	switch {
	case isCopy && t.Thread != "" && t.Thread != handoff.NewThread:
		if w.book.offers(t) {
			return func() { w.fail(phase.FactUnresolved, offered()) }
		}
		fact, why = phase.FactResolvedCopy, handoff.WhyCopy
		if name != t.Thread {
			title = name
		}
	case t.Thread == handoff.NewThread:
		fact, why = phase.FactResolvedNew, handoff.WhyNew
	case t.Thread == "" && w.req.Mode == handoff.ModeAside:
		fact, why = phase.FactResolvedNew, handoff.WhyAside
	case t.Thread == "":
		if err := w.r.loadStickies(ctx, w.caller, w.book); err != nil {
			return func() { w.fail(phase.FactUnresolved, err) }
		}
		fact, why = phase.FactResolvedNew, handoff.WhyNew
		if s, ok := w.book.sticky(keyOf(t)); ok {
			fact, why, t.Thread, title = phase.FactResolvedSticky, handoff.WhyContinued, s.Target.Thread, s.Title
		}
	}
	return func() { w.resolved(fact, t, why, title) }
}

// names resolves the names, unless that was done ahead. A machine that was away then may be back.
func (w *work) names(ctx context.Context, thread string) (handoff.Target, error) {
	if w.prefetch != nil {
		t, err := w.prefetch.resolved(ctx)
		if err == nil || handoff.AsError(err).Code != handoff.CodeUnreachable {
			return t, err
		}
	}
	return w.r.fleet.Resolve(ctx, w.grant, handoff.Target{Server: w.req.Target.Server, Thread: thread})
}

// dropPrefetch closes what was attached ahead and not used.
func (w *work) dropPrefetch() {
	if w.prefetch == nil {
		return
	}
	<-w.prefetch.ready
	w.agentsMu.Lock()
	used := w.prefetchUsed
	w.agentsMu.Unlock()
	if agent := w.prefetch.at.Agent; agent != nil && !used {
		w.hold(agent)
	}
}

// reached attaches the thread, or takes what was attached ahead.
func (w *work) reached(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	if w.prefetch != nil {
		if at, ok := w.prefetch.attached(ctx, t); ok && w.usePrefetch() {
			return at, nil
		}
	}
	return w.r.fleet.Attach(ctx, t)
}

// usePrefetch tells whether what was attached ahead may be used: once.
func (w *work) usePrefetch() bool {
	w.agentsMu.Lock()
	defer w.agentsMu.Unlock()
	first := !w.prefetchUsed
	w.prefetchUsed = true
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
func (w *work) resolved(fact phase.Fact, t handoff.Target, why, title string) {
	w.target = t
	lane := ""
	switch {
	case fact == phase.FactResolvedNew && w.req.Target.Thread == "" && w.req.Mode != handoff.ModeAside:
		lane = newLane(w.caller, t)
	case fact == phase.FactResolvedThread, fact == phase.FactResolvedSticky:
		lane = threadLane(t)
	}
	if fact == phase.FactResolvedCopy {
		w.waits = handoff.WaitsYes
	}
	free := lane == "" || w.take(lane)
	w.leaveOthers(lane)
	w.rec = w.book.change(w.ID, func(r *handoff.Record) {
		r.Server, r.Project, r.Title = t.Server, t.Project, title
		if free {
			r.Why = why
		}
		if fact != phase.FactResolvedNew {
			r.ThreadID = t.Thread
		}
	})
	if !free {
		w.awaited = lane
		fact = phase.FactResolvedTaken
	}
	w.publish(handoff.RunPlaced{})
	w.Step(fact)
	if w.req.Within == 0 && free { // what leads nowhere was refused before
		w.Step(phase.FactDue)
	}
}

func (w *work) take(lane string) bool {
	if !w.r.lanes.take(lane, w.ID, w.caller) {
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
	w.r.lanes.leave(left, w.ID)
}

func (w *work) attach(ctx context.Context) func() {
	at, err := w.reached(ctx, w.target)
	if err != nil {
		e := handoff.AsError(err)
		switch e.Code {
		case handoff.CodeSessionGone, handoff.CodeSessionElsewhere:
			return func() { w.fail(phase.FactThreadGone, e) }
		case handoff.CodeSessionInUse:
			return func() { w.heldElsewhere(e) }
		}
		return func() { w.unattached(e) }
	}
	w.hold(at.Agent)
	return w.arrived(at, func() {
		w.lost = time.Time{}
		if at.Target.Thread != w.target.Thread { // the last line of defence: adapters check it too
			w.fail(phase.FactAttachFailed, handoff.Fault(handoff.CodeSessionMismatch, w.target.Server, "got "+at.Target.Thread))
			return
		}
		if at.Running != "" {
			w.waits = handoff.WaitsTheirs
			w.Step(phase.FactAttachedBusy)
			return
		}
		w.Step(phase.FactAttached)
	})
}

// unattached: words that were told to begin by themselves are not given up because their machine is away for
// a while.
func (w *work) unattached(e *handoff.Error) {
	if w.lost.IsZero() {
		w.lost = time.Now()
	}
	if w.state.Phase != phase.Waiting || final(e) || time.Since(w.lost) > w.r.patience {
		w.fail(phase.FactAttachFailed, e)
		return
	}
	w.attached.Running = "" // what runs there shows when the thread is attached again
	w.do(phase.ActAwait)
}

func (w *work) create(ctx context.Context) func() {
	t, make := w.target, w.r.fleet.Create
	t.Thread = handoff.NewThread
	if maker, ok := w.r.fleet.(handoff.Ephemeral); ok && w.req.Mode == handoff.ModeAside {
		make = maker.CreateEphemeral
	}
	at, err := make(ctx, t)
	return w.made(at, err)
}

// made goes on with a thread that nobody else has.
func (w *work) made(at handoff.Attached, err error) func() {
	if err != nil {
		return func() { w.fail(phase.FactAttachFailed, err) }
	}
	w.r.owners.made(w.caller, at.Target)
	w.hold(at.Agent)
	return w.arrived(at, func() {
		w.target.Thread = at.Target.Thread
		if !w.take(threadLane(w.target)) {
			w.fail(phase.FactAttachFailed, handoff.Fault(handoff.CodeSessionMismatch, w.target.Server, "a new thread is already in use"))
			return
		}
		w.Step(phase.FactAttached)
	})
}

// arrived shows what was attached and lets go of what was attached before.
func (w *work) arrived(at handoff.Attached, then func()) func() {
	return func() {
		w.attached = at
		w.io.Go(func() { w.detach(1) })
		w.rec = w.book.change(w.ID, func(r *handoff.Record) {
			r.ThreadID = at.Target.Thread
			if at.Title != "" {
				r.Title = at.Title
			}
			if w.state.Replaced {
				r.Why, r.Title = handoff.WhyReplaced, at.Title
			}
		})
		then()
	}
}

// asTurn is the request as the agent gets it.
func (w *work) asTurn() handoff.Turn {
	return handoff.Turn{ID: w.ID, Input: w.req.Input, Context: w.req.Context}
}

// start gives the thread its turn, by one try.
func (w *work) start() func(context.Context) func() {
	agent, turn := w.attached.Agent, w.asTurn()
	w.before = w.attached.Newest
	write := w.dispatch()
	return func(ctx context.Context) func() {
		if err := write(ctx); err != nil {
			return func() { w.fail(phase.FactStartRefused, err) }
		}
		id, err := agent.Start(ctx, turn)
		if err == nil {
			return func() { w.acknowledged(id) }
		}
		e := handoff.AsError(err)
		switch e.Code {
		case handoff.CodeJoined:
			return func() { w.merged(id) }
		case handoff.CodeUnknownStart, handoff.CodeInternal: // only a clear refusal proves that nothing runs
			return func() { w.fail(phase.FactStartUnknown, e) }
		case handoff.CodeBusy:
			return func() {
				w.attached.Running = "" // which one it is shows when the thread is attached again
				w.waits = handoff.WaitsTheirs
				w.Step(phase.FactStartBusy)
			}
		}
		return func() { w.refused(e) }
	}
}

// refused: the words certainly did not begin anything. What was attached may have been closed or lost meanwhile.
func (w *work) refused(e *handoff.Error) {
	fact := phase.FactStartRefused
	switch e.Code {
	case handoff.CodeSessionInUse:
		w.heldElsewhere(e)
		return
	case handoff.CodeSessionGone:
		fact = phase.FactThreadGone
	case handoff.CodeUnreachable:
		fact = phase.FactStartUnsent
	}
	if w.state.Stopping && fact != phase.FactStartRefused { // that is what the caller wanted
		w.Step(fact)
		return
	}
	w.fail(fact, e)
}

// dispatch writes to the ledger that the words are about to be sent; without that they are not.
func (w *work) dispatch() func(context.Context) error {
	w.attempt = max(w.attempt, 1)
	if w.state.Again || w.sent != (handoff.Target{}) && w.sent != w.target { // else the ledger would keep the former thread
		w.attempt = 2
	}
	w.sent = w.target
	w.line.words(ledger.Body{Prompt: w.prompt()})
	line, attempt, facts := w.line, w.attempt, ledger.Facts{
		CallID: ledger.Hash(w.req.Key), ClientID: w.ID, Target: w.target, Watermark: w.before,
		Prompt: w.prompt(), Title: w.rec.Title, Why: w.rec.Why,
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
func (w *work) acknowledged(id handoff.TurnID) {
	if id == w.attached.Newest || id == w.attached.Running {
		w.merged(id)
		return
	}
	w.turn = id
	w.Step(phase.FactStarted)
}

// merged follows the turn of somebody else that took the words in.
func (w *work) merged(id handoff.TurnID) {
	if id == "" {
		w.fail(phase.FactStartUnknown, handoff.Fault(handoff.CodeUnknownStart, w.target.Server, "joined a turn without an id"))
		return
	}
	w.turn, w.fault = id, nil
	w.rec = w.book.change(w.ID, func(r *handoff.Record) { r.Why = handoff.WhyMerged })
	w.Step(phase.FactMerged)
}

func (w *work) interrupt() func(context.Context) func() {
	controls, ok := w.attached.Agent.(handoff.Controls)
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
			code := handoff.AsError(err).Code
			w.log.Info("interrupt failed", zap.String("code", string(code)), zap.Error(err))
			if code != handoff.CodeOverloaded && code != handoff.CodeAgentGone || !w.r.pause(ctx, try) { // a second one does no harm
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
		title = handoff.Clip(strings.TrimSpace(w.prompt()), 80)
		w.rec = w.book.change(w.ID, func(r *handoff.Record) { r.Title = title })
	}
	if w.req.Mode == handoff.ModeAside {
		return
	}
	s := handoff.Sticky{Target: w.target, Title: title, Named: w.rec.Why == handoff.WhyNamed, Since: time.Now()}
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
		w.r.stick(w.caller, w.book, stickyWrite{sticky: handoff.Sticky{Target: gone}, clear: true})
	}
}
