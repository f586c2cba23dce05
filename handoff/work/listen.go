package work

import (
	"slices"

	"switchboard/handoff"
	"switchboard/handoff/phase"
	"switchboard/handoff/wording"
)

// An Attendance is one listener of a caller, from [Attend] until [Leave].
type Attendance struct {
	Grant    handoff.Grant    // Set once
	Listener handoff.Listener // Set once
}

// may reports whether the listener may hear of a handoff, and take its outcome.
func (a *Attendance) may(h *Handoff) bool { return h.Told(a.Grant) }

// Attend lets a listener hear of the caller's handoffs: of those that it starts, of those whose listener has left, and
// of those that ended while nobody attended.
type Attend struct{ Attendance *Attendance }

func (a *Attend) apply(s *State) {
	s.listeners = append(s.listeners, a.Attendance)
	s.handOver()
	if s.open() {
		s.keep.beat = s.keep.open // the store may have lost that outcomes were heard
		s.tellUnheard()
	}
}

// Leave ends an attendance. Outcomes that the listener did not tell go back into the outbox, and its handoffs to
// another listener, if there is one. Nobody waits there any more for a quick result, so handoffs that are not
// promised yet are promised now.
type Leave struct{ Attendance *Attendance }

func (l *Leave) apply(s *State) {
	s.listeners = slices.DeleteFunc(s.listeners, func(o *Attendance) bool { return o == l.Attendance })
	var open []*Handoff
	for _, h := range s.all {
		if h.listener == l.Attendance && h.open {
			h.listener = nil
			open = append(open, h)
		}
	}
	var unheard []*Handoff
	for _, h := range s.ended(func(h *Handoff) bool { return h.givenTo == l.Attendance }) {
		if h.givenTo = nil; !s.settleAdded(h) {
			unheard = append(unheard, h)
			s.outbox(h)
		}
	}
	s.tellUnheard()
	for _, h := range unheard {
		s.noticeOutcome(h)
	}
	for _, h := range open {
		s.apply(h, phase.FactDue, nil)
	}
	s.handOver()
	for _, h := range open {
		if h.listener == nil {
			for _, q := range s.questionsOf(h.ID) {
				s.noticeQuestion(q)
			}
		}
	}
}

func (s *State) attendance(l handoff.Listener) *Attendance {
	for _, a := range s.listeners {
		if l != nil && a.Listener == l {
			return a
		}
	}
	return nil
}

// handOver gives each offered handoff without a listener to the newest listener that may hear of it, oldest first.
func (s *State) handOver() {
	if len(s.listeners) == 0 {
		return
	}
	for _, h := range s.all {
		if !h.offered || h.listener != nil || !h.open || h.log.over {
			continue
		}
		for _, a := range slices.Backward(s.listeners) {
			if !a.may(h) {
				continue
			}
			var open []handoff.OpenQuestion
			for _, q := range s.questionsOf(h.ID) {
				open = append(open, q.OpenQuestion)
			}
			if a.Listener.Hear(h.event(handoff.EventTaken{Questions: open})) {
				h.listener = a
				break
			}
		}
	}
}

// publish adds an event to the log of a handoff, and gives it to its listener. It reports whether a listener took it.
func (s *State) publish(h *Handoff, kind handoff.EventKind) bool {
	e := h.logEvent(kind)
	if _, closed := kind.(handoff.EventAnswered); closed { // the question may have been asked in other calls, too
		for _, a := range s.listeners {
			a.Listener.Hear(e)
		}
		return true
	}
	if h.listener == nil || !h.listener.Listener.Hear(e) {
		return false
	}
	if _, ended := kind.(handoff.EventEnded); ended {
		h.givenTo = h.listener
	}
	return true
}

// byHand tells every listener that may hear of a handoff what the caller did with it outside of calls.
func (s *State) byHand(id string, e handoff.EventByHand) {
	h := s.find(id)
	if h == nil { // pushed out by newer ones
		return
	}
	for _, a := range s.listeners {
		if a.may(h) {
			a.Listener.Hear(h.event(e))
		}
	}
}

// ended returns the handoffs that have an outcome and that include accepts, in the order in which they ended.
func (s *State) ended(include func(*Handoff) bool) []*Handoff {
	var ended []*Handoff
	for _, h := range s.all {
		if h.Outcome != "" && include(h) {
			ended = append(ended, h)
		}
	}
	slices.SortStableFunc(ended, func(x, y *Handoff) int { return x.EndedAt.Compare(*y.EndedAt) })
	return ended
}

// tellUnheard gives each outcome in the outbox to the newest listener that may hear of it.
func (s *State) tellUnheard() {
	for _, a := range slices.Backward(s.listeners) {
		unheard := s.ended(func(h *Handoff) bool { return h.unheard && a.may(h) })
		ended := make([]handoff.Record, len(unheard))
		for i, h := range unheard {
			ended[i] = h.Clone()
		}
		if len(ended) == 0 || !a.Listener.Outbox(ended) {
			continue
		}
		for _, h := range unheard {
			h.unheard, h.givenTo = false, a
		}
	}
}

// outbox puts an outcome into the outbox, unless it was heard, and sees to it that it outlives the process.
func (s *State) outbox(h *Handoff) {
	// A reader of the work may have reported that it was heard meanwhile.
	h.unheard = h.State != handoff.StatusDelivered
	if h.unheard && !h.doc.known {
		s.write(h, handoff.StatusCompleted)
	}
}

// settleAdded reports whether a handoff is of words that were added to other work. It marks it as heard: the caller is
// told the outcome of the other work alone.
func (s *State) settleAdded(h *Handoff) bool {
	if !h.Added() {
		return false
	}
	s.heard(h)
	return true
}

// keepUnheard puts an outcome that nobody heard into the outbox, and gives the outbox to a listener if one attends.
func (s *State) keepUnheard(h *Handoff) {
	if s.settleAdded(h) {
		return
	}
	s.outbox(h)
	s.tellUnheard()
	s.noticeOutcome(h)
}

// Keep says that nobody was there to be told the outcome of a handoff.
type Keep struct{ ID string }

func (k *Keep) apply(s *State) {
	if h := s.find(k.ID); h != nil && h.Outcome != "" {
		s.keepUnheard(h)
	}
}

// noticeOutcome sends a notice outside of calls, once, of an outcome that nobody heard. It sends none of work that goes
// on without this process: the next life of the process does.
func (s *State) noticeOutcome(h *Handoff) {
	if h.notified || !h.unheard {
		return
	}
	h.notified = true
	if h.Outcome == handoff.OutcomeUnknown && h.Error != nil && h.Error.Code == handoff.CodeShutdown {
		return
	}
	s.do(Notice{handoff.Notice{
		Caller: s.cfg.Caller, Kind: handoff.NoticeOutcome, Handoff: h.ID, Server: h.Server, Title: h.Title, Text: h.Spoken,
		Failed: h.Record.Failed(),
	}})
}

// Heard says that the caller was told an outcome. Err and Kept are results: Kept is closed when the store has it, or
// nil if nothing is written.
type Heard struct {
	Grant handoff.Grant
	ID    string
	Err   error
	Kept  <-chan struct{}
}

func (e *Heard) apply(s *State) {
	h := s.find(e.ID)
	switch {
	case h == nil || !h.Shown(e.Grant):
		e.Err = handoff.Fault(handoff.CodeNotFound, "such work", "")
	case !h.Told(e.Grant):
		e.Err = e.Grant.May(handoff.ActPersonal)
	default:
		e.Kept = s.heard(h)
	}
}

// heard notes that the caller was told an outcome.
func (s *State) heard(h *Handoff) (kept <-chan struct{}) {
	if h.State == handoff.StatusCompleted {
		s.show(h, func() { h.State = handoff.StatusDelivered })
	}
	s.withdraw(h)
	if h.State != handoff.StatusDelivered {
		return nil // it has no outcome yet
	}
	if !h.NotBegun() { // else the caller is still to be asked, also in the next life
		kept = s.writeDelivered(h)
	}
	s.forget(h)
	return kept
}

// withdraw takes an outcome that the caller has heard out of the outbox, and back from the listener that was given it.
func (s *State) withdraw(h *Handoff) {
	if h.givenTo != nil { // also if this listener itself reports that the outcome was heard
		h.givenTo.Listener.Hear(h.event(handoff.EventHeard{}))
	}
	h.unheard, h.givenTo = false, nil
}

// Stop stops a handoff: one whose turn has not started is cancelled, others are interrupted. Work that waits for it is
// paused, and the caller is asked about it. Work that is paused already is dropped. Err and Kept are results, as in
// [Heard].
type Stop struct {
	Grant handoff.Grant
	ID    string
	Of    handoff.StopOf
	Err   error
	Kept  <-chan struct{}
}

func (e *Stop) apply(s *State) {
	h := s.find(e.ID)
	switch {
	case h == nil || !h.Shown(e.Grant):
		e.Err = handoff.Fault(handoff.CodeNotFound, "such work", "")
	case h.Paused:
		s.closePaused(h, "")
		e.Kept = s.endPaused(h, wording.WasDropped)
		s.byHand(e.ID, handoff.EventByHand{Deed: handoff.DeedDrop})
	case !h.open, h.Outcome != "":
		e.Err = handoff.Fault(handoff.CodeWorkEnded, "", "")
	case h.Why == handoff.WhyMerged:
		e.Err = handoff.Fault(handoff.CodeJoined, h.Server, "a turn of somebody else is not stopped")
	case e.Of == handoff.StopWatching && h.Why != handoff.WhyWatched:
		e.Err = handoff.Fault(handoff.CodeNotFound, "watched work of that name", "")
	case e.Of == handoff.StopWatching:
		s.apply(h, phase.FactLeft, nil)
	case h.Why == handoff.WhyWatched && h.state.Phase >= phase.Starting && e.Of != handoff.StopTheirs:
		e.Err = handoff.Fault(handoff.CodeNoConsent, handoff.WhyTheirs, "")
	default:
		s.byHand(e.ID, handoff.EventByHand{Deed: handoff.DeedStop})
		s.stop(h)
	}
}

// stop stops a handoff, and pauses what the caller has waiting behind it.
func (s *State) stop(h *Handoff) {
	if threads, ok := s.cfg.Threads.(Waiting); ok {
		for _, id := range threads.Behind(h.ID) {
			if waits := s.find(id); waits != nil && waits.open {
				s.apply(waits, phase.FactPaused, nil)
			}
		}
	}
	s.apply(h, phase.FactStop, nil)
}

// endPaused marks work that is no longer paused as heard, so that nobody is asked about it after a restart. spoken says
// what became of it.
func (s *State) endPaused(h *Handoff, spoken string) (kept <-chan struct{}) {
	if h == nil {
		return nil
	}
	s.withdraw(h)
	if h.State == handoff.StatusCompleted {
		s.show(h, func() { h.State = handoff.StatusDelivered })
	}
	h.doc.spoken = spoken
	return s.writeDelivered(h)
}

// closePaused ends the pause of a handoff. instead is the one that was begun in its place; "": it was dropped.
func (s *State) closePaused(h *Handoff, instead string) {
	if h == nil || !h.NotBegun() {
		return
	}
	h.begunAs, h.request = instead, ""
	s.show(h, func() {
		h.Paused, h.Spoken = false, wording.WasDropped
		if instead == "" {
			h.Fault, h.Error = nil, nil
			return
		}
		h.Spoken, h.WentOn = wording.WentOn, true
		h.Error = &handoff.RecordError{Code: h.Fault.Code, Message: wording.WentOn}
	})
}

// pauseAgain undoes closePaused: the handoff that was begun in place of a paused one has failed before anything had its
// words.
func (s *State) pauseAgain(h, instead *Handoff) {
	if h == nil || h.begunAs != instead.ID {
		return
	}
	h.begunAs, h.request = "", encodeRequest(instead.run.Request)
	if instead.key == h.key { // it has the key again, and stands in the store again
		s.byKey[h.key] = h.ID
		h.doc.closed, h.doc.clear, h.doc.texts = false, true, nil
		s.mark(h)
	}
	s.show(h, func() {
		h.Error, h.Paused, h.WentOn, h.Spoken = recordError(h.Fault), true, false, ""
		h.Spoken = wording.English.OutcomeSentence(h.Record)
	})
}

// Move puts waiting work before another piece of work that waits in the same queue, or behind all of the caller's: "".
// It begins and ends nothing, and the work of other callers keeps its place. Err is the result: if one of the two does
// not wait there any more, nothing changes.
type Move struct {
	Grant      handoff.Grant
	ID, Before string
	Err        error
}

func (m *Move) apply(s *State) {
	h := s.find(m.ID)
	switch {
	case h == nil || !h.Shown(m.Grant):
		m.Err = handoff.Fault(handoff.CodeNotFound, "such work", "")
		return
	case !h.open, h.Outcome != "":
		m.Err = handoff.Fault(handoff.CodeWorkEnded, "", "")
		return
	}
	own := map[string]bool{}
	for _, other := range s.all {
		own[other.ID] = other.open
	}
	threads, _ := s.cfg.Threads.(Waiting)
	order := threads.Move(m.ID, m.Before, own)
	if order == nil {
		m.Err = handoff.Fault(handoff.CodeMalformed, "one of the two does not wait there any more", "")
		return
	}
	for i, id := range order {
		if waiting := s.find(id); waiting != nil {
			s.show(waiting, func() {
				if waiting.Waits != "" {
					waiting.Place = i + 1
				}
			})
		}
	}
}

// List asks for the records, newest first. All is the result.
type List struct{ All []handoff.Record }

func (l *List) apply(s *State) {
	l.All = make([]handoff.Record, 0, len(s.all))
	for _, h := range slices.Backward(s.all) {
		l.All = append(l.All, h.Clone())
	}
}

// Find asks for one record. Record and Open are results: Open means that it has not ended. Without such work, ID of the
// record is "".
type Find struct {
	ID     string
	Record handoff.Record
	Open   bool
	Over   bool // its end was published
}

func (f *Find) apply(s *State) {
	if h := s.find(f.ID); h != nil {
		f.Record, f.Open, f.Over = h.Clone(), h.open, h.log.over
	}
}

// brief returns the record without what the agent did.
func (h *Handoff) brief() handoff.Record {
	rec := h.Record
	rec.Items = nil
	return rec
}
