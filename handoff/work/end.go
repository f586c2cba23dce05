package work

import (
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/phase"
	"switchboard/handoff/wording"
)

// toldWithin bounds how long the store may take to have an outcome before it is told all the same. Together with the
// 1.5 s in which it would be the answer, the caller hears nothing for 2.5 s at most.
const toldWithin = time.Second

// finish gives the record its outcome. From here on others may use the thread, before it is detached: the caller may
// answer the outcome at once.
func (s *State) finish(h *Handoff, fault *handoff.Error) {
	s.leave(h, "")
	h.awaited = ""
	h.wait.store, h.wait.within = pending{}, time.Time{}
	h.watch.unseen, h.watch.silent = time.Time{}, time.Time{}
	s.halt(h)
	fault = outcomeFault(h.state, fault, &h.Record)
	if codeOf(fault) == handoff.CodeShutdown && h.state.Outcome == handoff.OutcomeCancelled && h.state.Noted {
		// The words were promised, and the next life of the process asks the caller about them, as after a kill.
		fault = handoff.Fault(handoff.CodeNotBegun, h.Server, "the process ended before it began")
	}
	if h.state.Phase == phase.Writing && h.state.Outcome != handoff.OutcomeUnknown {
		for i := len(h.Items) - 1; i >= 0; i-- { // the turn has ended: unfinished messages are dropped
			if it := h.Items[i]; it.State == itemRunning && it.Kind == handoff.ItemMessage {
				s.drop(h, it.ID)
			}
		}
	}
	goesOn := codeOf(fault) == handoff.CodeShutdown && h.state.Outcome == handoff.OutcomeUnknown
	s.show(h, func() {
		h.State, h.Outcome = handoff.StatusCompleted, h.state.Outcome
		if h.Why == handoff.WhyAdded && h.Outcome != handoff.OutcomeResult && h.Outcome != handoff.OutcomeUnknown {
			h.Why, h.Into = "", "" // no turn has the words
		}
		h.Error, h.Fault = recordError(fault), fault
		h.Paused = h.NotBegun()
		h.EndedAt, h.Tested = new(s.now), handoff.TestsOf(h.Items)
		h.Spoken = wording.English.OutcomeSentence(h.Record)
		for i := range h.Items {
			if h.Items[i].State == itemRunning {
				h.Items[i].State = itemFailed
			}
		}
	})
	switch {
	case !h.Paused:
		h.request = ""
	case h.request == "": // it was paused before its words were noted
		h.request = encodeRequest(h.run.Request)
	}
	if goesOn {
		h.doc.closed = true // the next life of the process finds the document, and tells how the turn ended
		return
	}
	if h.doc.known || h.Paused { // the caller is asked about paused work, also in the next life
		s.write(h, handoff.StatusCompleted)
	}
	s.closeQuestions(h)
	s.watchOn(h)
}

// writeOutcome waits until the store has the outcome, for [toldWithin] at most.
func (s *State) writeOutcome(h *Handoff) {
	if h.doc.clean() || codeOf(h.Fault) == handoff.CodeStoreDown { // nothing is to be written, or it certainly takes long
		s.apply(h, phase.FactWritten, nil)
		return
	}
	h.wait.store = pending{tells, s.now.Add(toldWithin), h.doc.seq}
}

// outcomeFault returns the fault that belongs to an outcome; nil if there is nothing to explain. known is the fault of
// the fact that ended the handoff.
func outcomeFault(st phase.State, known *handoff.Error, rec *handoff.Record) *handoff.Error {
	switch {
	case st.Outcome == handoff.OutcomeResult && codeOf(known) == handoff.CodeUnread,
		st.Outcome == handoff.OutcomeInterrupted && codeOf(known) == handoff.CodeAgentEnded:
		return known
	case st.Outcome == handoff.OutcomeResult && st.Stopping && rec.Why == handoff.WhyAdded: // the turn had them already
		return handoff.Fault(handoff.CodeWorkEnded, "", "")
	case st.Outcome == handoff.OutcomeResult, st.Outcome == handoff.OutcomeInterrupted:
		return nil
	case st.Outcome == handoff.OutcomeCancelled && st.Stopping: // the caller wanted it
		return nil
	case st.Outcome == handoff.OutcomeCancelled && st.Paused:
		return handoff.Fault(handoff.CodePaused, rec.Server, "")
	case known == nil && st.Outcome == handoff.OutcomeUnknown:
		known = handoff.Fault(handoff.CodeAgentGone, rec.Server, "")
	}
	if codeOf(known) == handoff.CodeAgentGone && rec.EndsWithUs {
		known = handoff.Fault(handoff.CodeAgentEnded, known.Subject, known.Detail)
	}
	return known
}

func codeOf(e *handoff.Error) handoff.Code {
	if e == nil {
		return ""
	}
	return e.Code
}

func recordError(e *handoff.Error) *handoff.RecordError {
	if e == nil {
		return nil
	}
	return &handoff.RecordError{Code: e.Code, Message: e.Spoken(), Next: e.NextStep(), Detail: e.Detail, Why: e.Why}
}

// Ends says that no work is taken any more. Every open handoff gets its outcome, unless the caller has another home,
// which goes on from the store.
type Ends struct{ Moved bool }

func (e *Ends) apply(s *State) {
	s.over = true
	fact := phase.FactShutdown
	if e.Moved {
		fact = phase.FactMoved
	}
	for _, h := range slices.Clone(s.all) {
		watches := h.state.Phase == phase.Waiting || h.unsent()
		switch {
		case !h.open:
		case h.run.Request.Mode == handoff.ModeWatch && watches: // the next life watches on
			s.apply(h, phase.FactMoved, handoff.Fault(handoff.CodeShutdown, "", ""))
		default:
			s.unbegin(h)
			s.apply(h, fact, handoff.Fault(handoff.CodeShutdown, "", ""))
		}
	}
}

// unsent reports whether the words are sent as soon as the store has that.
func (h *Handoff) unsent() bool { return h.wait.store.what == sends }

// unbegin takes back that unsent words are about to be sent: they are as they were when they were accepted.
func (s *State) unbegin(h *Handoff) {
	if h.unsent() {
		h.wait.store, h.attempt, h.state.Phase = pending{}, attempt{}, phase.Attaching
		h.request = encodeRequest(h.run.Request)
		s.write(h, handoff.StatusAccepted)
	}
}

// Due is the event that the time of [State.Next] has come.
type Due struct{}

// Next returns when something is due; zero: nothing is.
func (s *State) Next() (next time.Time) {
	earliest := func(all ...time.Time) {
		for _, t := range all {
			if !t.IsZero() && (next.IsZero() || t.Before(next)) {
				next = t
			}
		}
	}
	for _, h := range s.all {
		if h.open {
			earliest(h.wait.within, h.wait.store.by, h.watch.unseen, h.watch.silent)
		}
	}
	for _, q := range s.questions {
		earliest(q.giveUp)
	}
	earliest(s.keep.again)
	return next
}

// came reports whether a time has come, and clears it then.
func (s *State) came(t *time.Time) bool {
	if t.IsZero() || s.now.Before(*t) {
		return false
	}
	*t = time.Time{}
	return true
}

func (*Due) apply(s *State) {
	for _, h := range slices.Clone(s.all) {
		if h.open {
			s.due(h)
		}
	}
	for _, q := range s.sorted() {
		if s.came(&q.giveUp) {
			s.do(Decline{q})
		}
	}
	s.came(&s.keep.again)
}

func (s *State) due(h *Handoff) {
	if s.came(&h.wait.within) {
		s.apply(h, phase.FactDue, nil)
	}
	if s.came(&h.wait.store.by) {
		s.missed(h)
	}
	if s.came(&h.watch.unseen) {
		s.cfg.Threads.Runs(h.ID, Turn{})
		s.apply(h, phase.FactUnseen, nil)
	}
	if s.came(&h.watch.silent) {
		if len(s.questionsOf(h.ID)) > 0 { // a turn that waits for the caller's answer is not silent
			h.watch.silent = s.now.Add(s.cfg.Silence)
			return
		}
		s.apply(h, phase.FactSilent, nil)
	}
}
