package homes

import (
	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// change emits what an instance does.
func (m *model) change(s mState, i int, name string, how func(*mState, *mInstance)) {
	how(&s, &s.in[i])
	m.emit(name, i, false, s)
}

// work is what an instance does about the work, and about the sticky session.
func (m *model) work(s mState, i int) {
	do := func(name string, how func(*mState, *mInstance)) { m.change(s, i, name, how) }
	in := s.in[i]
	if in.over {
		m.commit(s, i)
	}
	if in.epoch == 0 || in.closed {
		return
	}
	if !in.open {
		if s.reaches(i) && (m.mayAct(in) || m.opensOthers) {
			do("opens the caller", func(s *mState, in *mInstance) { in.opens(s.kept) })
		}
		return
	}
	m.commit(s, i)
	if s.chosen < 2 {
		do("a session is chosen", func(s *mState, in *mInstance) {
			s.chosen++
			in.choice, in.pickDirty = s.chosen, true
		})
	}
	if s.asked < 2 {
		do("the work is asked for", func(s *mState, in *mInstance) { s.ask(in, s.reaches(i)) })
	}
	switch in.pc {
	case pcAsked:
		if !s.reaches(i) { // nothing was sent to the store, so nothing is written
			do("is refused by the store", func(s *mState, in *mInstance) {
				s.told |= 1 << ouFailed
				in.pc, in.entry, in.workDirty = pcNone, mEntry{}, false
			})
		}
	case pcGranted:
		if !m.mayAct(in) {
			do("sends nothing", func(_ *mState, in *mInstance) { in.ends(ouFailed, true) })
			return
		}
		do("sends the words", func(s *mState, in *mInstance) {
			switch in.runs(); {
			case s.turn != turnNone:
				s.bad = badStart
			case s.told&(1<<ouUnknown) != 0:
				s.bad = badLate
			}
			s.turn = turnRuns
		})
	case pcSettle: // for longer than words are on their way that an instance is about to send
		other := s.in[1-i]
		switch {
		case s.turn != turnNone:
			do("finds the turn", func(_ *mState, in *mInstance) { in.runs() })
		case other.life != mRuns || other.pc != pcGranted || !other.fresh || other.lapsed:
			do("finds no turn", func(_ *mState, in *mInstance) { in.ends(ouUnknown, false) })
		}
	case pcFollow:
		if s.turn == turnEnded {
			do("sees its end", func(_ *mState, in *mInstance) { in.ends(ouResult, false) })
		}
	case pcEnded:
		if !in.workDirty || !s.reaches(i) { // a store that is away is waited for shortly
			do("tells the outcome", func(s *mState, in *mInstance) {
				s.told |= 1 << in.entry.outcome
				in.pc, in.entry.status, in.workDirty = pcNone, stDelivered, true
			})
		}
	}
}

// ask asks for the work under its key. What was asked before answers for itself, unless its key is free again; what is
// not known here is looked for in the store.
func (s *mState) ask(in *mInstance, reaches bool) {
	s.asked++
	known := in.entry
	if known.status == stNone {
		known = s.kept.entry
		if !reaches {
			return
		}
	}
	if in.pc != pcNone || known.status != stNone && !known.isFree() {
		return
	}
	in.pc, in.entry, in.workDirty = pcAsked, mEntry{status: stDispatching, sent: true}, true
	in.free = known.status == stNone
}

// isFree asks whether the key of work is free again.
func (e mEntry) isFree() bool {
	full := ledger.Entry{Status: mStatuses[e.status], Facts: ledger.Facts{Outcome: mOutcomes[e.outcome]}}
	if e.sent {
		full.Attempt = 1
	}
	if e.turn {
		full.Turn = "turn"
	}
	if e.down {
		full.Code = handoff.CodeStoreDown
	}
	return full.Free()
}

// runs: its turn runs.
func (in *mInstance) runs() {
	in.pc, in.entry.status, in.entry.turn, in.workDirty = pcFollow, stStarted, true, true
}

// ends: its outcome is known.
func (in *mInstance) ends(outcome uint8, down bool) {
	in.pc, in.workDirty = pcEnded, true
	in.entry.status, in.entry.outcome, in.entry.down = stCompleted, outcome, down
}

// opens goes on from what the store has.
func (in *mInstance) opens(kept mKept) {
	in.mHome = mHome{open: true, version: kept.version, choice: kept.sticky}
	if kept.entry.status == stNone || kept.entry.status == stDelivered {
		return
	}
	in.entry = kept.entry
	switch {
	case in.entry.status == stCompleted:
		in.pc = pcEnded
	case in.entry.turn:
		in.pc = pcFollow
	default:
		in.pc = pcSettle
	}
}

// commit writes a batch as the store does. While work is open, a home asks so whether the store still has it.
func (m *model) commit(s mState, i int) {
	in := s.in[i]
	waits := in.entry.status != stNone && in.entry.status != stDelivered
	if !s.reaches(i) || !in.workDirty && !in.pickDirty && !(waits && s.kept.version != in.version) {
		return
	}
	switch {
	case in.over && !m.noFence: // the store knows no home of whoever writes
		m.change(s, i, "is refused, since it has no home", func(s *mState, in *mInstance) {
			s.bad = badLost
		})
	case s.kept.epoch > in.epoch && !m.noFence:
		m.change(s, i, "is refused, since another has the home", func(_ *mState, in *mInstance) {
			in.mHome = mHome{closed: true}
		})
	case s.kept.version != in.version:
		m.change(s, i, "finds that the store has lost something", func(s *mState, in *mInstance) {
			in.version, in.free = s.kept.version, false
			in.workDirty, in.pickDirty = in.entry.status != stNone, in.choice != 0
		})
	case in.workDirty && in.free && s.kept.entry.status == stDelivered:
		m.change(s, i, "finds that its key is taken", func(_ *mState, in *mInstance) {
			in.pc, in.entry, in.workDirty, in.free = pcNone, mEntry{}, false, false
		})
	default:
		m.change(s, i, "writes", func(s *mState, in *mInstance) { m.write(s, in) })
	}
}

func (m *model) write(s *mState, in *mInstance) {
	if in.pickDirty {
		if s.kept.sticky > in.choice {
			s.bad = badSticky
		}
		s.kept.sticky = in.choice
	}
	promise := in.workDirty && in.entry.status == stDispatching
	if in.workDirty {
		s.kept.entry = in.entry
	}
	const unused = 9 // there are four at most
	if s.kept.version = unused; s.kept.sticky == 0 && (s.kept.entry.status == stNone || s.kept.entry.status == stDelivered) {
		s.kept.version = 0
	}
	in.version, in.workDirty, in.pickDirty, in.free = s.kept.version, false, false, false
	if in.pc == pcAsked {
		in.pc, s.told = pcGranted, 0 // what was told is of what was asked before
	}
	if promise && !m.noWait {
		s.replica = s.kept
	}
}
