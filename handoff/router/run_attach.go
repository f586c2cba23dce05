package router

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/phase"
	"switchboard/handoff/wording"
)

// copyOf in front of a thread's name asks for a copy of the thread. The caller is asked before the copy is made.
const copyOf = "copy of "

// resolve finds the target: the server, then the thread (named, sticky or new), then whether the thread is free.
func (r *run) resolve(ctx context.Context) (phase.Fact, *handoff.Error) {
	name, isCopy := cutPrefixFold(r.req.Target.Thread, copyOf)
	var t handoff.Target
	var from handoff.Transcript
	var err error
	if !r.limited(ctx, func(ctx context.Context) {
		if r.agents.ahead != nil {
			t, err = r.agents.ahead.awaitTarget(ctx)
		}
		// A machine that was away when the names were resolved ahead may be back.
		if r.agents.ahead == nil || err != nil && handoff.AsError(err).Code == handoff.CodeUnreachable {
			t, err = r.router.cfg.Fleet.Resolve(ctx, r.grant, handoff.Target{Server: r.req.Target.Server, Thread: name})
		}
		if err == nil && t.Thread == "" && r.req.Mode != handoff.ModeAside {
			err = r.caller.loadStickies(ctx)
		}
		if err == nil && r.req.From != (handoff.Target{}) {
			from, err = r.caller.readFrom(ctx, r.grant, r.req.From)
		}
	}) {
		return phase.FactNothing, nil
	}
	if err != nil {
		return phase.FactUnresolved, handoff.AsError(err)
	}
	if r.req.From != (handoff.Target{}) {
		r.extra = contextOf(from)
		r.show(func(rec *handoff.Record) {
			rec.From = &handoff.RecordFrom{Server: from.Server, ThreadID: from.ID, Title: from.Title}
		})
	}
	switch {
	case isCopy && t.Thread != "" && t.Thread != handoff.NewThread:
		if r.caller.questions.offers(t) {
			return phase.FactUnresolved, offered()
		}
		title := ""
		if name != t.Thread {
			title = name
		}
		return r.resolved(phase.FactResolvedCopy, t, handoff.WhyCopy, title)
	case t.Thread == "" && r.req.Mode != handoff.ModeAside:
		if s, ok := r.caller.stickies.get(keyOf(t)); ok {
			t.Thread = s.Target.Thread
			return r.resolved(phase.FactResolvedSticky, t, handoff.WhyContinued, s.Title)
		}
		return r.resolved(phase.FactResolvedNew, t, handoff.WhyNew, "")
	case t.Thread == "":
		return r.resolved(phase.FactResolvedNew, t, handoff.WhyAside, "")
	case t.Thread == handoff.NewThread:
		return r.resolved(phase.FactResolvedNew, t, handoff.WhyNew, "")
	}
	return r.resolved(phase.FactResolvedThread, t, handoff.WhyNamed, "")
}

// cutPrefixFold is [strings.CutPrefix] without regard to case, and trims the rest.
func cutPrefixFold(s, prefix string) (string, bool) {
	if len(s) > len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
		return strings.TrimSpace(s[len(prefix):]), true
	}
	return s, false
}

// resolved takes the queue of the thread, or waits in it, so that two runs of this process never use one thread at a
// time, and no second new thread is made before the first becomes sticky.
func (r *run) resolved(fact phase.Fact, t handoff.Target, why, title string) (phase.Fact, *handoff.Error) {
	r.target = t
	key := ""
	switch {
	case copiesAside(r.req):
		fact = phase.FactBranches
	case fact == phase.FactResolvedNew && r.req.Target.Thread == "" && r.req.Mode != handoff.ModeAside:
		key = newSessionKey(r.caller.who, t)
	case fact == phase.FactResolvedThread, fact == phase.FactResolvedSticky:
		key = threadKey(t)
	case fact == phase.FactResolvedCopy:
		r.wait.reason = handoff.WaitsYes
	}
	free := key == "" || r.claim.take(key)
	r.claim.keep(key)
	if !free && r.req.After != "" {
		fact, free = phase.FactBranches, true
	}
	own := r.router.registered(t.Server).EndsWithUs
	r.show(func(rec *handoff.Record) {
		rec.Server, rec.Project, rec.Title, rec.EndsWithUs = t.Server, t.Project, title, own
		if free {
			rec.Why = why
		}
		if fact != phase.FactResolvedNew {
			rec.ThreadID = t.Thread
		}
	})
	r.publish(handoff.RunPlaced{})
	if !free {
		r.claim.awaited = key
		return phase.FactResolvedTaken, nil
	}
	if r.req.Within == 0 { // the target exists, so the work can be promised
		r.step(phase.FactDue, nil)
	}
	return fact, nil
}

// copiesAside reports whether the words go to an ephemeral copy of the thread, even if the thread is free.
func copiesAside(req handoff.Request) bool { return req.Mode == handoff.ModeAside && req.After != "" }

// attach resumes the thread, and decides whether a turn can be started in it now.
func (r *run) attach(ctx context.Context) (phase.Fact, *handoff.Error) {
	target, g := r.target, r.gate
	var at handoff.Attached
	var err error
	current := r.limited(ctx, func(ctx context.Context) { at, err = g.attach(ctx, &r.agents, target) })
	if r.gate.lease = g.lease; !current {
		r.openGate()
		return phase.FactNothing, nil
	}
	if err != nil {
		e := handoff.AsError(err)
		switch e.Code {
		case handoff.CodeStoreDown: // another instance may be about to start a turn
			return phase.FactAttachFailed, e
		case handoff.CodeSessionGone, handoff.CodeSessionElsewhere:
			return phase.FactThreadGone, e
		case handoff.CodeSessionInUse:
			return r.heldElsewhere(e)
		}
		if r.wait.lostAt.IsZero() {
			r.wait.lostAt = time.Now()
		}
		if permanent(e) || time.Since(r.wait.lostAt) > r.router.cfg.Patience {
			return phase.FactAttachFailed, e
		}
		r.attached.Running = "" // the next attachment has the id of the running turn
		return phase.FactAttachAway, e
	}
	r.setAttached(at)
	r.wait.lostAt = time.Time{}
	switch {
	case at.Target.Thread != target.Thread: // adapters check it, too
		return phase.FactAttachFailed, handoff.Fault(handoff.CodeSessionMismatch, target.Server, "got "+at.Target.Thread)
	case r.req.After != "" && (at.Running != "" || at.Newest != r.req.After):
		r.claim.keep("")
		return phase.FactBranches, nil
	case at.Running != "" || g.lease.elsewhere:
		r.wait.reason = handoff.WaitsTheirs
		return phase.FactAttachedBusy, nil
	}
	return phase.FactAttached, nil
}

// create makes a new thread for the words.
func (r *run) create(ctx context.Context) (phase.Fact, *handoff.Error) {
	t, create := r.target, r.router.cfg.Fleet.Create
	t.Thread = handoff.NewThread
	if fleet, ok := r.router.cfg.Fleet.(handoff.Ephemeral); ok && r.req.Mode == handoff.ModeAside {
		create = fleet.CreateEphemeral
	}
	return r.attachNew(ctx, func(ctx context.Context) (handoff.Attached, error) { return create(ctx, t) })
}

// attachNew attaches the new thread that create makes. Nobody else knows of it.
func (r *run) attachNew(
	ctx context.Context, create func(context.Context) (handoff.Attached, error),
) (phase.Fact, *handoff.Error) {
	var at handoff.Attached
	var err error
	if !r.limited(ctx, func(ctx context.Context) {
		if at, err = create(ctx); err == nil {
			r.router.cfg.Owners.add(r.caller.who, at.Target)
			r.agents.hold(at, nil)
		}
	}) {
		return phase.FactNothing, nil
	}
	if err != nil {
		return phase.FactAttachFailed, handoff.AsError(err)
	}
	r.setAttached(at)
	r.openGate() // of the thread that the new one replaces
	r.target.Thread, r.gate.alone = at.Target.Thread, true
	if !r.claim.take(threadKey(r.target)) {
		e := handoff.Fault(handoff.CodeSessionMismatch, r.target.Server, "a new thread is already in use")
		return phase.FactAttachFailed, e
	}
	return phase.FactAttached, nil
}

// setAttached sets the newest attachment, shows it on the record, and closes the earlier ones.
func (r *run) setAttached(at handoff.Attached) {
	r.attached = at
	if old := r.agents.former(); len(old) > 0 {
		r.io.Go(func() { closeAgents(r.log, old) })
	}
	r.show(func(rec *handoff.Record) {
		rec.ThreadID = at.Target.Thread
		if at.Title != "" {
			rec.Title = at.Title
		}
		if r.state.Replaced {
			rec.Why, rec.Title = handoff.WhyReplaced, at.Title
		}
	})
}

// remember makes the thread sticky: the acknowledged turn proves that it can be resumed. If the caller has chosen
// another thread since this request, that one stays. The store is written later.
func (r *run) remember() {
	title := r.rec.Title
	if title == "" {
		title = handoff.Clip(strings.TrimSpace(handoff.InputText(r.req.Input)), 80)
		r.show(func(rec *handoff.Record) { rec.Title = title })
	}
	if r.req.Mode == handoff.ModeAside || r.req.After != "" && r.rec.Why == handoff.WhyCopy {
		return
	}
	s := handoff.Sticky{Target: r.target, Title: title, Named: r.rec.Why == handoff.WhyNamed, Since: time.Now()}
	old, ok := r.caller.stickies.get(keyOf(r.target))
	if ok && old.Target == s.Target {
		s.Named, s.Since = old.Named || s.Named, old.Since
	}
	if r.caller.stickies.put(s, r.askedAt) && (!ok || s != old) { // else the store has it already
		r.caller.stick(stickyWrite{sticky: s})
	}
}

// forget drops the sticky thread, which is gone. The new thread becomes sticky once its turn runs; until then, other
// requests wait in the queue of the caller's next new thread.
func (r *run) forget() {
	gone := r.target
	dropped := r.caller.stickies.dropGone(gone)
	if key := newSessionKey(r.caller.who, gone); r.claim.take(key) {
		r.claim.keep(key)
	}
	if dropped {
		r.caller.stick(stickyWrite{sticky: handoff.Sticky{Target: gone}, clear: true})
	}
}

// heldElsewhere handles a thread that another program on that machine has open: the caller is offered a copy, unless
// they are being asked already.
func (r *run) heldElsewhere(e *handoff.Error) (phase.Fact, *handoff.Error) {
	if r.caller.questions.offers(r.target) {
		return phase.FactAttachFailed, offered()
	}
	if _, copies := r.router.cfg.Fleet.(handoff.Forker); !copies {
		return phase.FactAttachFailed, e
	}
	title := cmp.Or(r.rec.Title, e.Subject)
	r.show(func(rec *handoff.Record) { rec.Title = title })
	r.wait.reason, r.wait.elsewhere, r.wait.program = handoff.WaitsYes, true, e.Program
	return phase.FactAttachHeld, e
}

// offered returns the fault of a request for a copy of a session while the caller is being asked about one.
func offered() *handoff.Error {
	return handoff.Fault(handoff.CodeNoConsent, "whether a copy of that session may be made", "")
}

// offer asks the caller whether to make a copy, in the same way as an agent asks for permission: the answer is a yes in
// a call, with evidence, or a tap on the page. Meanwhile other runs may use the thread.
func (r *run) offer(ctx context.Context) (phase.Fact, *handoff.Error) {
	r.claim.keep("")
	q := handoff.Question{
		ID: handoff.QuestionID("copy:" + r.ID), Kind: handoff.QuestionCopy, Asked: time.Now(),
		Decisions: []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline},
		Text: fmt.Sprintf("May a copy of the session %s be made on %s, to go on there?",
			wording.English.SayTitle(r.rec.Title), r.rec.Server),
	}
	if r.wait.elsewhere {
		q.Program = r.wait.program
		q.Reason = "It is open in " + cmp.Or(q.Program, "another program") + " on that machine."
	}
	level := r.router.registered(r.target.Server).VoiceApprovals
	r.caller.ask(r, &question{
		OpenQuestion: handoff.OpenQuestion{Question: q, Level: level}, thread: r.target.Thread, controls: offer{r},
	})
	r.unlocked(ctx, func() { <-ctx.Done() }) // the answer comes as a fact from outside, see [offer.Decide]
	return phase.FactNothing, nil
}

// An offer is the [handoff.Controls] of a question that the router asks itself, about a copy.
type offer struct{ run *run }

// Decide passes the answer to the run.
func (o offer) Decide(_ context.Context, _ handoff.QuestionID, d handoff.Decision) error {
	fact := phase.FactCopyDeclined
	if d == handoff.DecisionAccept {
		fact = phase.FactCopyAllowed
	}
	o.run.apply(fact, nil)
	return nil
}

// Steer is refused: nothing runs.
func (o offer) Steer(context.Context, handoff.TurnID, []handoff.Part) error {
	return handoff.Fault(handoff.CodeNotPending, "", "")
}

// Interrupt is refused: nothing runs.
func (o offer) Interrupt(context.Context, handoff.TurnID) error {
	return handoff.Fault(handoff.CodeNotPending, "", "")
}

// copyThread makes the copy that the caller allowed, or that the request asks for.
func (r *run) copyThread(ctx context.Context) (phase.Fact, *handoff.Error) {
	r.wait.reason = handoff.WaitsNot
	r.show(func(rec *handoff.Record) { rec.Why = handoff.WhyCopy })
	target, fleet := r.target, r.router.cfg.Fleet
	return r.attachNew(ctx, func(ctx context.Context) (handoff.Attached, error) {
		if forker, ok := fleet.(handoff.Ephemeral); ok && copiesAside(r.req) {
			return forker.ForkEphemeral(ctx, target, r.req.After)
		}
		if forker, ok := fleet.(handoff.Forker); ok && !copiesAside(r.req) {
			return forker.Fork(ctx, target, r.req.After)
		}
		return handoff.Attached{}, handoff.Fault(handoff.CodeUnsupported, target.Server, "this fleet makes no such copies")
	})
}
