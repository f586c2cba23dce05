package handoff

import (
	"context"
	"strings"
	"time"

	"go.uber.org/zap"
)

// spokenContext tells the agent how its answer will be used.
const spokenContext = "This request was spoken on a call and may have been misheard. The answer is read to the caller: " +
	"end it with one short sentence that can be said aloud."

// resolve finds the target: the names, then the thread (named, sticky or new), then the right to use it.
func (w *work) resolve(ctx context.Context) func() {
	t, err := w.r.fleet.Resolve(ctx, w.caller, Target{Server: w.args.Server, Thread: w.args.Thread})
	if err != nil {
		return func() { w.fail(FactUnresolved, err) }
	}
	fact, why := FactResolvedThread, whyNamed
	var title string
	switch t.Thread {
	case NewThread:
		fact, why = FactResolvedNew, whyNew
	case "":
		if err := w.r.loadStickies(ctx, w.caller, w.book); err != nil {
			return func() { w.fail(FactUnresolved, err) }
		}
		fact, why = FactResolvedNew, whyNew
		if s, ok := w.book.sticky(keyOf(t)); ok {
			fact, why, t.Thread, title = FactResolvedSticky, whyContinued, s.Target.Thread, s.Title
		}
	}
	return func() { w.resolved(fact, t, why, title) }
}

// resolved continues in the owner loop: it claims the thread, so that two requests of ours never meet on
// one, and no second thread is made while the first is on its way to become sticky.
func (w *work) resolved(fact Fact, t Target, why, title string) {
	w.target = t
	claim := threadClaim(t)
	if fact == FactResolvedNew {
		claim = ""
		if w.args.Thread == "" {
			claim = newClaim(w.caller, t)
		}
	}
	free := claim == "" || w.claim(claim)
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
		w.fail(FactUnresolved, Fault(CodeBusy, t.Server, "another request of yours uses this session"))
		return
	}
	w.step(fact)
}

func (w *work) claim(key string) bool {
	if !w.r.claim(key, w.id) {
		return false
	}
	w.claims = append(w.claims, key)
	return true
}

func (w *work) attach(ctx context.Context) func() {
	at, err := w.r.fleet.Attach(ctx, w.target)
	if err != nil {
		e := AsError(err)
		if e.Code == CodeSessionGone {
			return func() { w.fail(FactThreadGone, e) }
		}
		return func() { w.fail(FactAttachFailed, e) }
	}
	return w.arrived(at, func() {
		if at.Target.Thread != w.target.Thread { // the last line of defence: adapters check it too
			w.fail(FactAttachFailed, Fault(CodeSessionMismatch, w.target.Server, "got "+at.Target.Thread))
			return
		}
		if at.Running != "" {
			w.fail(FactAttachedBusy, Fault(CodeBusy, w.target.Server, "turn "+string(at.Running)+" runs"))
			return
		}
		w.step(FactAttached)
	})
}

func (w *work) create(ctx context.Context) func() {
	t := w.target
	t.Thread = NewThread
	at, err := w.r.fleet.Create(ctx, t)
	if err != nil {
		return func() { w.fail(FactAttachFailed, err) }
	}
	return w.arrived(at, func() {
		w.fault = nil // a sticky that was gone is no fault any more
		w.target.Thread = at.Target.Thread
		if !w.claim(threadClaim(w.target)) {
			w.fail(FactAttachFailed, Fault(CodeSessionMismatch, w.target.Server, "a new thread is already in use"))
			return
		}
		w.step(FactAttached)
	})
}

// arrived keeps what was attached, also when nobody waits for it any more, and shows it.
func (w *work) arrived(at Attached, then func()) func() {
	w.agents <- at.Agent
	return func() {
		w.attached = at
		w.rec = w.book.change(w.id, func(r *Record) {
			r.ThreadID = at.Target.Thread
			if at.Title != "" {
				r.Title = at.Title
			}
			if w.state.Replaced {
				r.Why, r.Title = whyReplaced, at.Title
			}
		})
		then()
	}
}

func (w *work) start(ctx context.Context) func() {
	turn := Turn{ID: w.id, Prompt: w.args.Prompt, Context: []Context{{Key: "switchboard", Value: spokenContext, Trusted: true}}}
	if len(w.words) > 0 {
		turn.Context = append(turn.Context, Context{Key: "caller_words", Value: strings.Join(w.words, "\n")})
	}
	id, err := w.attached.Agent.Start(ctx, turn)
	if err != nil {
		e := AsError(err)
		if e.Code == CodeUnknownStart || e.Code == CodeInternal { // only a clear refusal proves that nothing runs
			return func() { w.fail(FactStartUnknown, e) }
		}
		return func() { w.fail(FactStartRefused, e) }
	}
	return func() {
		w.turn = id
		w.step(FactStarted)
	}
}

func (w *work) interrupt(ctx context.Context) func() {
	controls, ok := w.attached.Agent.(Controls)
	if !ok {
		w.log.Info("the agent cannot be interrupted")
		return nil
	}
	if err := controls.Interrupt(ctx, w.turn); err != nil {
		w.log.Info("interrupt failed", zap.String("code", string(AsError(err).Code)), zap.Error(err))
	}
	return nil
}

// remember makes the thread sticky: the acknowledged turn proves that it can be resumed. The store is
// written behind; the book already knows.
func (w *work) remember() {
	title := w.rec.Title
	if title == "" {
		title = clip(strings.TrimSpace(w.args.Prompt), 80)
		w.rec = w.book.change(w.id, func(r *Record) { r.Title = title })
	}
	s := Sticky{Target: w.target, Title: title, Named: w.rec.Why == whyNamed, Since: time.Now()}
	if old, ok := w.book.sticky(keyOf(w.target)); ok && old.Target == s.Target {
		s.Named, s.Since = old.Named || s.Named, old.Since
	}
	w.book.putSticky(s)
	w.store("set", func(ctx context.Context) error { return w.r.stickies.Set(ctx, w.caller, s) })
}

// forget drops the sticky thread that is gone; its successor becomes sticky once its turn runs.
func (w *work) forget() {
	gone := w.target
	w.book.dropSticky(keyOf(gone))
	w.store("clear", func(ctx context.Context) error { return w.r.stickies.Clear(ctx, w.caller, gone) })
}
