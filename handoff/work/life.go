package work

import (
	"cmp"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/phase"
	"switchboard/handoff/wording"
)

// apply moves a handoff by a fact, and does what follows. The fault is the reason of a fact that is a failure: it
// counts if the fact ends the handoff.
func (s *State) apply(h *Handoff, f phase.Fact, fault *handoff.Error) {
	before := h.state
	if before.Phase == phase.Ended {
		return
	}
	next, acts := before.Step(f)
	h.state = next
	if next.Stopping && !before.Stopping && h.doc.known && !h.doc.closed { // the next life stops it, if this one cannot
		s.mark(h)
	}
	if next.Outcome != "" && before.Outcome == "" {
		s.finish(h, fault)
	}
	if next.Noted && !before.Noted {
		h.log.noted = true
		s.publish(h, handoff.EventNoted{})
	}
	told := f == phase.FactWritten || f == phase.FactUnwritten // in the second case it is written before what follows
	if (told || next.Noted && !before.Noted) && h.run.Request.Instead != "" {
		switch paused := s.find(string(h.run.Request.Instead)); {
		case h.Outcome == handoff.OutcomeFailed && !next.Noted:
			s.pauseAgain(paused, h) // nothing has its words but itself
		default:
			s.endPaused(paused, wording.WentOn)
		}
	}
	if ends := f == phase.FactShutdown || f == phase.FactMoved; ends && before.Phase >= phase.Starting {
		h.run.Gate = GateLease{} // the next life of the handoff frees the gate, or its lease expires
	} else if !next.Gated() {
		s.openGate(h)
	}
	for _, act := range acts {
		s.act(h, act)
	}
	if next.Phase == phase.Ended && h.open {
		s.close(h)
	}
}

// close detaches a handoff whose outcome is published, or that somebody else has.
func (s *State) close(h *Handoff) {
	h.open, h.offered, h.listener = false, false, nil
	h.wait.store = pending{}
	s.closeQuestions(h)
	s.halt(h)
	s.do(Ended{Ending{
		Record: h.brief(), Turn: h.run.Turn, Code: codeOf(h.Fault), Yielded: h.Outcome == "", Span: h.span,
	}})
	// What only its jobs needed is let go: pictures, context, the agent, the listener that asked.
	h.run = Run{Target: s.target(h), Before: h.run.Before, Turn: h.run.Turn,
		Request: handoff.Request{Instead: h.run.Request.Instead}}
	h.watch = watch{}
	if over := s.ended(func(o *Handoff) bool { return !o.open }); len(over) > maxWhole {
		over[len(over)-maxWhole-1].cutDetails()
	}
}

// act does an action.
func (s *State) act(h *Handoff, a phase.Action) {
	switch a {
	case phase.ActResolve:
		s.begin(h, Resolve)
	case phase.ActJoin:
		h.wait.queued = false
		s.begin(h, Join)
	case phase.ActSteer:
		h.run.Before = h.run.Holder.ID
		s.dispatch(h)
	case phase.ActAttach:
		s.begin(h, Attach)
	case phase.ActCreate:
		s.begin(h, Create)
	case phase.ActOffer:
		s.offer(h)
	case phase.ActCopy:
		h.wait.reason = handoff.WaitsNot
		s.show(h, func() { h.Why = handoff.WhyCopy })
		s.begin(h, Copy)
	case phase.ActAwait:
		s.await(h)
	case phase.ActStart:
		s.start(h)
	case phase.ActReconcile:
		s.begin(h, Reconcile)
	case phase.ActFollow:
		s.follow(h)
	case phase.ActReconnect:
		if h.run.Lost.IsZero() {
			h.run.Lost = s.now
			s.publish(h, handoff.EventLost{})
		}
		s.begin(h, Reconnect)
		h.run.Tries++
	case phase.ActWriteOutcome:
		s.writeOutcome(h)
	default:
		s.actFast(h, a)
	}
}

// actFast does an action that replaces no job.
func (s *State) actFast(h *Handoff, a phase.Action) {
	switch a {
	case phase.ActRemember:
		s.remember(h)
	case phase.ActForget:
		s.forgetThread(h)
	case phase.ActInterrupt:
		s.takesWords(h)
		s.do(Interrupt{h.ID, h.run.Attached.Agent, h.run.Turn})
	case phase.ActNote:
		s.note(h)
	case phase.ActPromise:
		s.showWaits(h)
		s.publish(h, handoff.EventPromised{Waits: h.wait.reason})
		h.offered = true
		s.handOver()
	case phase.ActPublishWait:
		if s.showWaits(h) { // once, also if the action comes again
			s.publish(h, handoff.EventWaiting{Waits: h.wait.reason})
		}
	case phase.ActPublishJoined:
		s.publish(h, handoff.EventJoined{})
	case phase.ActPublishSilence:
		s.publish(h, handoff.EventSilent{})
	case phase.ActPublishOutcome:
		// An outcome that nobody heard is kept, unless the work was never promised: then whoever gave it is told.
		if !s.publish(h, handoff.EventEnded{}) && (h.state.Noted || h.run.Request.By != nil) {
			s.keepUnheard(h)
		}
	case phase.ActYield:
		s.leave(h, "")
		h.doc.closed = true
		s.publish(h, handoff.EventYielded{})
	}
}

// showWaits shows on the record what the handoff waits for, and reports whether that is a change.
func (s *State) showWaits(h *Handoff) bool {
	after := map[handoff.Wait]string{handoff.WaitsOurs: "ours", handoff.WaitsTheirs: "theirs"}[h.wait.reason]
	if after == h.Waits {
		return false
	}
	s.show(h, func() { h.Waits, h.Place = after, 0 })
	return true
}

// start starts the turn in the thread, in one try. A lease that was taken too long ago is taken again.
func (s *State) start(h *Handoff) {
	watch := h.run.Request.Mode == handoff.ModeWatch // nothing is started
	if s.cfg.Shared && !watch && !h.run.Alone && !h.run.Gate.Fresh(h.run.Target, s.now) {
		s.begin(h, Lease)
		return
	}
	s.send(h)
}

func (s *State) send(h *Handoff) {
	s.advance(h, handoff.StatusDispatching)
	h.run.Before = h.run.Attached.Newest
	s.dispatch(h)
}

// dispatch writes to the store that the words are about to be sent. They are sent when the store has acknowledged that,
// see [State.dispatched].
func (s *State) dispatch(h *Handoff) {
	s.halt(h)
	h.attempt.number = max(h.attempt.number, 1)
	// To another thread it is a second attempt, or the store would keep the first thread.
	if h.state.Again || h.attempt.target != (handoff.Target{}) && h.attempt.target != h.run.Target {
		h.attempt.number = 2
	}
	h.attempt.target = h.run.Target
	h.request, h.run.Turn = "", ""
	if h.doc.never {
		s.dispatched(h)
		return
	}
	s.write(h, handoff.StatusDispatching)
	h.wait.store = pending{sends, s.now.Add(StoreTakes), h.doc.seq} // this step notes the words, too
}

// dispatched sends the words: the store has them.
func (s *State) dispatched(h *Handoff) {
	watch := h.run.Request.Mode == handoff.ModeWatch
	if (h.state.Stopping || h.state.Paused) && !watch { // the stop came meanwhile
		s.apply(h, phase.FactStartUnsent, nil)
	}
	s.apply(h, phase.FactNoted, nil)
	switch {
	case h.state.Outcome != "":
	case h.state.Phase == phase.Steering:
		s.begin(h, Steer)
	case watch: // its turn runs, and nothing is sent
		h.run.Turn = cmp.Or(h.run.Attached.Running, h.run.Attached.Newest)
		s.apply(h, phase.FactStarted, nil)
		s.apply(h, phase.FactSeen, nil)
	default:
		s.begin(h, Start)
	}
}

// await waits for the end of somebody else's turn.
func (s *State) await(h *Handoff) {
	h.wait.reason = handoff.WaitsTheirs
	if h.run.Attached.Running == "" && h.run.Gate.Elsewhere {
		s.begin(h, Elsewhere)
		h.run.Tries++
		return
	}
	s.openGate(h)
	s.begin(h, Await)
	h.run.Tries++
}

// openGate frees the gate. If that fails, the gate opens when the lease expires.
func (s *State) openGate(h *Handoff) {
	thread := h.run.Gate.Thread
	h.run.Gate = GateLease{}
	if s.cfg.Shared && thread.Thread != "" {
		s.do(Free{h.ID, thread, h.run.Turn})
	}
}

// follow follows the turn to its end. Others that wait for the thread may give it more words meanwhile.
func (s *State) follow(h *Handoff) {
	waited := h.Waits != ""
	if s.advance(h, handoff.StatusStarted); waited {
		s.publish(h, handoff.EventPromised{Waits: handoff.WaitsNot})
	}
	if h.doc.turn != h.run.Turn {
		h.doc.turn = h.run.Turn
		s.write(h, handoff.StatusStarted)
	}
	s.takesWords(h)
	h.watch.unseen, h.watch.silent = time.Time{}, s.now.Add(s.cfg.Silence)
	if !h.state.Seen {
		h.watch.unseen = s.now.Add(seenWithin)
	}
	s.begin(h, Follow)
}

// takesWords lets others put their words into the turn, unless it is one of somebody else or is being stopped.
func (s *State) takesWords(h *Handoff) {
	controls, _ := h.run.Attached.Agent.(handoff.Controls)
	if h.state.Merged || h.state.Stopping {
		controls = nil
	}
	s.cfg.Threads.Runs(h.ID, Turn{h.run.Turn, controls, h.run.Target, h.Title})
}

// offer asks the caller whether to make a copy, in the same way as an agent asks for permission: the answer is a yes in
// a call, with evidence, or a tap on the page. Meanwhile others may use the thread.
func (s *State) offer(h *Handoff) {
	s.halt(h)
	s.leave(h, "")
	q := handoff.Question{
		ID: handoff.QuestionID("copy:" + h.ID), Kind: handoff.QuestionCopy, Asked: s.now,
		Decisions: []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline},
		Text: "May a copy of the session " + wording.English.SayTitle(h.Title) + " be made on " + h.Server +
			", to go on there?",
	}
	if h.wait.elsewhere {
		q.Program = h.wait.program
		q.Reason = "It is open in " + cmp.Or(q.Program, "another program") + " on that machine."
	}
	level := s.cfg.Registered(h.run.Target.Server).VoiceApprovals
	s.ask(h, &Question{
		OpenQuestion: handoff.OpenQuestion{Question: q, Level: level}, thread: h.run.Target.Thread,
	})
}

// Copied is the caller's answer to the question whether to make a copy.
type Copied struct {
	ID       string
	Decision handoff.Decision
}

func (c *Copied) apply(s *State) {
	fact := phase.FactCopyDeclined
	if c.Decision == handoff.DecisionAccept {
		fact = phase.FactCopyAllowed
	}
	if h := s.find(c.ID); h != nil && h.open {
		s.apply(h, fact, nil)
	}
}
