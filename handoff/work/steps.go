package work

import (
	"cmp"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/phase"
)

// CopyOf in front of a thread's name asks for a copy of the thread. The caller is asked before the copy is made.
const CopyOf = "copy of "

// done takes what came of a job, and returns the fact that it is.
func (s *State) done(h *Handoff, k Kind, d *Done) (phase.Fact, *handoff.Error) {
	switch k {
	case Resolve:
		return s.resolved(h, d)
	case Attach:
		return s.attached(h, d)
	case Create, Copy:
		return s.made(h, d)
	case Lease:
		return s.leased(h, d)
	case Start:
		return s.started(h, d)
	case Steer:
		return s.steered(h, d)
	case Elsewhere, Await:
		return phase.FactTurnOver, nil
	case Reconcile:
		return s.reconciled(h, d)
	case Follow:
		return s.lost(h, d)
	case Reconnect:
		if d.Err != nil {
			return phase.FactReconnectFailed, handoff.Because(handoff.CodeAgentGone, h.run.Target.Server, d.Err)
		}
		s.setAttached(h, d.Attached)
		return phase.FactReconnected, nil
	}
	return phase.FactNothing, nil
}

// resolved decides which thread is meant (named, current or new), and whether it is free.
func (s *State) resolved(h *Handoff, d *Done) (phase.Fact, *handoff.Error) {
	if d.Err != nil {
		return phase.FactUnresolved, handoff.AsError(d.Err)
	}
	if d.From != nil {
		h.run.Extra = contextOf(*d.From)
		s.show(h, func() {
			h.From = &handoff.RecordFrom{Server: d.From.Server, ThreadID: d.From.ID, Title: d.From.Title}
		})
	}
	t, aside := d.Target, h.run.Request.Mode == handoff.ModeAside
	switch {
	case d.IsCopy && t.Thread != "" && t.Thread != handoff.NewThread:
		if s.offers(t) {
			return phase.FactUnresolved, offered()
		}
		title := ""
		if d.Name != t.Thread {
			title = d.Name
		}
		return s.place(h, phase.FactResolvedCopy, t, handoff.WhyCopy, title)
	case t.Thread == "" && !aside:
		if c, ok := s.current[PlaceOf(t)]; ok {
			t.Thread = c.Target.Thread
			return s.place(h, phase.FactResolvedSticky, t, handoff.WhyContinued, c.Title)
		}
		return s.place(h, phase.FactResolvedNew, t, handoff.WhyNew, "")
	case t.Thread == "":
		return s.place(h, phase.FactResolvedNew, t, handoff.WhyAside, "")
	case t.Thread == handoff.NewThread:
		return s.place(h, phase.FactResolvedNew, t, handoff.WhyNew, "")
	}
	return s.place(h, phase.FactResolvedThread, t, handoff.WhyNamed, "")
}

// place takes the queue of the thread, or waits in it, so that two handoffs of this process never use one thread at a
// time, and no second new thread is made before the first is in use.
func (s *State) place(h *Handoff, fact phase.Fact, t handoff.Target, why, title string) (phase.Fact, *handoff.Error) {
	req := &h.run.Request
	h.run.Target = t
	key := ""
	switch {
	case CopiesAside(*req):
		fact = phase.FactBranches
	case fact == phase.FactResolvedNew && req.Target.Thread == "" && req.Mode != handoff.ModeAside:
		key = newKey(s.cfg.Caller, t)
	case fact == phase.FactResolvedThread, fact == phase.FactResolvedSticky:
		key = ThreadKey(t)
	case fact == phase.FactResolvedCopy:
		h.wait.reason = handoff.WaitsYes
	}
	watch := req.Mode == handoff.ModeWatch
	if watch {
		why = handoff.WhyWatched
		if fact == phase.FactResolvedSticky { // none is made in its place
			fact = phase.FactResolvedThread
		}
	}
	free := key == "" || s.take(h, key)
	registered := s.cfg.Registered(t.Server)
	if watch && (registered.Unwatched || !free || key != ThreadKey(t) || s.watches(t, h)) {
		return s.unwatchable(h, registered.Unwatched, free && !s.watches(t, h))
	}
	if waiting, ok := s.cfg.Threads.(Waiting); ok && !free && req.After == "" {
		free = waiting.Look(key, h.ID, s.cfg.Caller).Mine // it stands in the queue from now on
	}
	s.leave(h, key)
	if !free && req.After != "" {
		fact, free = phase.FactBranches, true
	}
	s.show(h, func() {
		h.Server, h.Project, h.Title, h.EndsWithUs = t.Server, t.Project, title, registered.EndsWithUs
		if free {
			h.Why = why
		}
		if fact != phase.FactResolvedNew {
			h.ThreadID = t.Thread
		}
	})
	s.publish(h, handoff.EventPlaced{})
	if !free {
		h.awaited = key
		return phase.FactResolvedTaken, nil
	}
	if req.Within == 0 { // the target exists, so the work can be promised
		s.apply(h, phase.FactDue, nil)
	}
	return fact, nil
}

// CopiesAside reports whether the words go to an ephemeral copy of the thread, even if the thread is free.
func CopiesAside(req handoff.Request) bool { return req.Mode == handoff.ModeAside && req.After != "" }

// attached decides whether a turn can be started in the thread now.
func (s *State) attached(h *Handoff, d *Done) (phase.Fact, *handoff.Error) {
	if d.Err != nil {
		return s.notAttached(h, handoff.AsError(d.Err))
	}
	at := d.Attached
	s.setAttached(h, at)
	h.run.Lost = time.Time{}
	switch watch := h.run.Request.Mode == handoff.ModeWatch; {
	case at.Target.Thread != h.run.Target.Thread: // adapters check it, too
		return phase.FactAttachFailed,
			handoff.Fault(handoff.CodeSessionMismatch, h.run.Target.Server, "got "+at.Target.Thread)
	case watch:
		return s.nextWatched(h)
	case h.run.Request.After != "" && (at.Running != "" || at.Newest != h.run.Request.After):
		s.leave(h, "")
		return phase.FactBranches, nil
	case at.Running != "" || h.run.Gate.Elsewhere:
		h.wait.reason = handoff.WaitsTheirs
		return phase.FactAttachedBusy, nil
	}
	return phase.FactAttached, nil
}

func (s *State) notAttached(h *Handoff, e *handoff.Error) (phase.Fact, *handoff.Error) {
	switch e.Code {
	case handoff.CodeStoreDown: // another instance may be about to start a turn
		return phase.FactAttachFailed, e
	case handoff.CodeSessionGone, handoff.CodeSessionElsewhere:
		return phase.FactThreadGone, e
	case handoff.CodeSessionInUse:
		if h.run.Request.Mode == handoff.ModeWatch { // a copy has nothing to watch
			return phase.FactAttachFailed, e
		}
		return s.heldElsewhere(h, e)
	}
	if h.run.Lost.IsZero() {
		h.run.Lost = s.now
	}
	waits := h.run.Request.Mode == handoff.ModeWatch && h.state.Phase == phase.Waiting // machines sleep at night
	switch {
	case Permanent(e), !waits && s.now.Sub(h.run.Lost) > s.cfg.Patience:
		return phase.FactAttachFailed, e
	case waits && s.watchedEnough(h):
		return phase.FactLeft, nil
	}
	h.run.Attached.Running = "" // the next attachment has the id of the running turn
	return phase.FactAttachAway, e
}

// made takes a new thread, or a copy. Nobody else knows of it.
func (s *State) made(h *Handoff, d *Done) (phase.Fact, *handoff.Error) {
	if d.Err != nil {
		return phase.FactAttachFailed, handoff.AsError(d.Err)
	}
	s.setAttached(h, d.Attached)
	s.openGate(h) // of the thread that the new one replaces
	h.run.Target.Thread, h.run.Alone = d.Attached.Target.Thread, true
	if !s.take(h, ThreadKey(h.run.Target)) {
		e := handoff.Fault(handoff.CodeSessionMismatch, h.run.Target.Server, "a new thread is already in use")
		return phase.FactAttachFailed, e
	}
	return phase.FactAttached, nil
}

// setAttached sets the newest attachment, shows it on the record, and closes the earlier ones.
func (s *State) setAttached(h *Handoff, at handoff.Attached) {
	h.run.Attached = at
	s.do(Newest{h.ID})
	s.show(h, func() {
		h.ThreadID, h.Worktree = at.Target.Thread, at.Worktree
		if at.Title != "" {
			h.Title = at.Title
		}
		if h.state.Replaced {
			h.Why, h.Title = handoff.WhyReplaced, at.Title
		}
	})
}

// heldElsewhere handles a thread that another program on that machine has open: the caller is offered a copy, unless
// they are being asked already.
func (s *State) heldElsewhere(h *Handoff, e *handoff.Error) (phase.Fact, *handoff.Error) {
	if s.offers(h.run.Target) {
		return phase.FactAttachFailed, offered()
	}
	if !s.cfg.Forks {
		return phase.FactAttachFailed, e
	}
	s.show(h, func() { h.Title = cmp.Or(h.Title, e.Subject) })
	h.wait.reason, h.wait.elsewhere, h.wait.program = handoff.WaitsYes, true, e.Program
	return phase.FactAttachHeld, e
}

// offered returns the fault of a request for a copy of a session while the caller is being asked about one.
func offered() *handoff.Error {
	return handoff.Fault(handoff.CodeNoConsent, "whether a copy of that session may be made", "")
}

// leased decides whether a start may be sent, under a lease that was taken again. If the gate names a new turn that the
// attachment does not show, that turn may run.
func (s *State) leased(h *Handoff, d *Done) (phase.Fact, *handoff.Error) {
	switch {
	case h.state.Stopping:
		return phase.FactStartUnsent, nil
	case d.Err != nil:
		return phase.FactStartRefused, handoff.AsError(d.Err)
	case h.run.Gate.Elsewhere || h.run.Gate.Missed(h.run.Attached):
		return s.busy(h)
	}
	s.send(h)
	return phase.FactNothing, nil
}

// busy: somebody else's turn runs in the thread. The next attachment has its id.
func (s *State) busy(h *Handoff) (phase.Fact, *handoff.Error) {
	h.run.Attached.Running = ""
	h.wait.reason = handoff.WaitsTheirs
	return phase.FactStartBusy, nil
}

// started says what came of the start: only a clear refusal proves that nothing runs.
func (s *State) started(h *Handoff, d *Done) (phase.Fact, *handoff.Error) {
	if d.Err == nil {
		// The server put the words into a running turn of somebody else.
		if d.Turn == h.run.Attached.Newest || d.Turn == h.run.Attached.Running {
			return s.merged(h, d.Turn)
		}
		h.run.Turn = d.Turn
		return phase.FactStarted, nil
	}
	e := handoff.AsError(d.Err)
	switch e.Code {
	case handoff.CodeJoined:
		return s.merged(h, d.Turn)
	case handoff.CodeUnknownStart, handoff.CodeInternal:
		return phase.FactStartUnknown, e
	case handoff.CodeBusy:
		return s.busy(h)
	case handoff.CodeSessionInUse:
		return s.heldElsewhere(h, e)
	case handoff.CodeSessionGone:
		return phase.FactThreadGone, e
	case handoff.CodeUnreachable: // the attachment may have been closed or lost meanwhile
		return phase.FactStartUnsent, e
	}
	return phase.FactStartRefused, e
}

// merged makes the handoff follow a turn of somebody else, into which the server put the words.
func (s *State) merged(h *Handoff, turn handoff.TurnID) (phase.Fact, *handoff.Error) {
	if turn == "" {
		return phase.FactStartUnknown,
			handoff.Fault(handoff.CodeUnknownStart, h.run.Target.Server, "joined a turn without an id")
	}
	h.run.Turn = turn
	s.show(h, func() { h.Why = handoff.WhyMerged })
	return phase.FactMerged, nil
}

// join looks at the queue of a thread that another handoff has: the words wait until the thread is free, or until that
// handoff, if it is of the same caller, has a turn that can take them. changed is nil if they wait no longer.
func (s *State) join(h *Handoff) (changed <-chan struct{}) {
	waiting, ok := s.cfg.Threads.(Waiting)
	if !ok {
		return nil
	}
	v := waiting.Look(h.awaited, h.ID, s.cfg.Caller)
	joinable := v.Same && h.run.Request.Mode == handoff.ModeNow && !h.run.Request.Goal &&
		(v.ID == "" || v.ID != h.wait.refused && v.Control != nil)
	switch {
	case v.Mine:
		h.awaited, h.wait.reason = "", handoff.WaitsNot
		s.apply(h, phase.FactThreadFree, nil)
		return nil
	case joinable && v.ID != "":
		h.run.Holder, h.run.Target, h.wait.refused = v, v.Target, v.ID
		s.show(h, func() {
			h.Server, h.Project, h.ThreadID, h.Title, h.Why = v.Target.Server, v.Target.Project, v.Target.Thread,
				v.Title, handoff.WhyAdded
			h.Into = v.Holder
		})
		s.apply(h, phase.FactOursRuns, nil)
		return nil
	case !joinable && !h.wait.queued:
		h.wait.queued = true
		if h.wait.reason != handoff.WaitsNot {
			break
		}
		h.wait.reason = handoff.WaitsOurs
		if v.Title != "" {
			s.show(h, func() { h.Title = v.Title })
		}
		n := h.job
		if s.apply(h, phase.FactQueued, nil); h.job != n {
			return nil
		}
	}
	return v.Changed
}

// steered says what came of words for a running turn. Words that were refused may be sent again; words that may have
// arrived may not.
func (s *State) steered(h *Handoff, d *Done) (phase.Fact, *handoff.Error) {
	if d.Err == nil {
		s.publish(h, handoff.EventSteered{Into: handoff.ID(h.run.Holder.Holder)})
		return phase.FactSteered, nil
	}
	switch e := handoff.AsError(d.Err); e.Code {
	// Only a clear refusal proves that the agent did not take them.
	case handoff.CodeAgentGone, handoff.CodeUnknownStart, handoff.CodeInternal:
		return phase.FactSteerUnknown, handoff.Because(handoff.CodeUnknownStart, h.run.Target.Server, e)
	}
	s.show(h, func() { h.Why, h.Into = "", "" })
	return phase.FactSteerRefused, nil
}

// reconciled says whether a turn began after a start whose acknowledgement was lost, or which had no updates.
func (s *State) reconciled(h *Handoff, d *Done) (phase.Fact, *handoff.Error) {
	server := h.run.Target.Server
	joined := d.Err != nil && handoff.CodeOf(d.Err) == handoff.CodeJoined && d.Turn != ""
	if d.Err != nil && !joined {
		return phase.FactNotReconciled, handoff.Because(handoff.CodeUnknownStart, server, d.Err)
	}
	s.setAttached(h, d.Attached)
	if joined {
		return s.merged(h, d.Turn)
	}
	if h.state.Merged { // it was not a turn of somebody else
		s.show(h, func() { h.Why = handoff.WhyContinued })
	}
	switch {
	case d.Turn == "" && h.state.Inherited:
		return phase.FactNeverRan, handoff.Fault(
			handoff.CodeUnknownStart, server, "a former life of this process was about to start it")
	case d.Turn == "": // the fault counts if the words are not sent again
		return phase.FactNeverRan, handoff.Fault(handoff.CodeUnreachable, server, "the start was lost twice; nothing runs")
	}
	h.run.Turn = d.Turn
	return phase.FactAdopted, nil
}

// lost: the updates of the turn ended without its end. The agent sends its open questions again when it is back.
func (s *State) lost(h *Handoff, d *Done) (phase.Fact, *handoff.Error) {
	fault := handoff.AsError(d.Err)
	h.watch.unseen, h.watch.silent = time.Time{}, time.Time{}
	s.closeQuestions(h)
	s.cfg.Threads.Runs(h.ID, Turn{})
	if fault.Code == handoff.CodeTurnGone {
		return phase.FactTurnGone, fault
	}
	return phase.FactAgentGone, fault
}

// Permanent reports whether trying again cannot help.
func Permanent(err error) bool {
	switch handoff.AsError(err).Code {
	case handoff.CodeSessionGone, handoff.CodeSessionArchived, handoff.CodeSessionMismatch, handoff.CodeSessionElsewhere,
		handoff.CodeUnknownServer, handoff.CodeUnknownSession, handoff.CodeRefused, handoff.CodeUnsupported,
		handoff.CodeUnknownStart, handoff.CodeMalformed:
		return true
	}
	return false
}

// CutPrefixFold is [strings.CutPrefix] without regard to case, and trims the rest.
func CutPrefixFold(s, prefix string) (string, bool) {
	if len(s) > len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
		return strings.TrimSpace(s[len(prefix):]), true
	}
	return s, false
}
