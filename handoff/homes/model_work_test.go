package homes

import (
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// work is what an instance does about the work, and about the sticky session.
func (m *model) work(s mState, i int) {
	do := func(name string, change func(*mState, *mInstance)) {
		t := s
		change(&t, &t.in[i])
		m.emit(name, i, false, t)
	}
	in := s.in[i]
	if in.epoch != 0 && s.chosen < 2 && in.choice == 0 {
		do("a session is chosen", func(s *mState, in *mInstance) { s.chosen++; in.choice = s.chosen })
	}
	if in.choice != 0 && s.reaches(i) {
		m.writeChoice(s, i)
	}
	if in.epoch == 0 {
		return
	}
	if s.asked < 2 {
		do("the work is asked for", func(s *mState, in *mInstance) {
			if s.asked++; in.pc == pcNone {
				s.runs++
				in.pc, in.run = pcAsked, s.runs
			}
		})
	}
	switch in.pc {
	case pcAsked:
		m.begin(s, i)
	case pcGranted:
		if !m.mayAct(in) {
			do("sends nothing", func(_ *mState, in *mInstance) { in.pc, in.outcome, in.down = pcEnded, ouFailed, true })
			return
		}
		do("sends the words", func(s *mState, in *mInstance) {
			switch in.pc = pcFollow; {
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
			do("finds the turn", func(_ *mState, in *mInstance) { in.pc = pcFollow })
		case other.life != mRuns || other.pc != pcGranted || !other.fresh || other.lapsed:
			do("finds no turn", func(_ *mState, in *mInstance) { in.pc, in.outcome = pcEnded, ouUnknown })
		}
	case pcFollow:
		if !in.started && s.reaches(i) {
			m.write(s, i, "writes that it runs", mStep{to: stStarted, fresh: true}, func(_ *mState, in *mInstance) {
				in.started = true
			})
		}
		if s.turn == turnEnded {
			do("sees its end", func(_ *mState, in *mInstance) { in.pc, in.outcome = pcEnded, ouResult })
		}
	case pcEnded, pcTold:
		m.end(s, i)
	}
}

// writeChoice writes which session is sticky.
func (m *model) writeChoice(s mState, i int) {
	in := s.in[i]
	t := s
	t.in[i].choice, t.in[i].over = 0, false
	switch {
	case in.over && !m.unfencedSticky: // the store knows no home of whoever writes
		t.bad = badLost
	case s.kept.epoch > in.epoch && !m.unfencedSticky:
	case s.kept.sticky > in.choice:
		t.bad = badSticky
	default:
		t.kept.sticky = in.choice
	}
	m.emit("writes the choice", i, false, t)
}

// begin writes that the words are about to be sent. Without the store they are not. What was asked before under the key
// answers for itself.
func (m *model) begin(s mState, i int) {
	if !s.reaches(i) {
		t := s
		t.in[i].pc, t.in[i].outcome, t.in[i].down = pcEnded, ouFailed, true
		m.emit("is refused by the store", i, false, t)
		return
	}
	again := s.kept.entry.full().Free()
	m.write(s, i, "writes that it begins", mStep{to: stDispatching, fresh: true, again: again},
		func(s *mState, in *mInstance) {
			if in.pc = pcGranted; again {
				s.told = 0 // of what was asked before
			}
			if !m.noWait {
				s.replica = s.kept
			}
		})
}

// end tells the outcome and writes it, with that it was heard. A store that is away is told later.
func (m *model) end(s mState, i int) {
	in := s.in[i]
	t := s
	if in.pc == pcEnded {
		t.told |= 1 << in.outcome
		t.in[i].pc = pcTold
		if !s.reaches(i) {
			m.emit("tells the outcome", i, false, t)
			return
		}
	} else if !s.reaches(i) {
		return
	}
	m.write(t, i, "writes the outcome", mStep{to: stCompleted, fresh: true, outcome: in.outcome, down: in.down},
		func(s *mState, in *mInstance) {
			s.kept.entry = m.apply(s.kept.entry, mStep{to: stDelivered, owner: in.run}).entry
			in.pc, in.run, in.outcome, in.down, in.started = pcNone, 0, ouNone, false, false
		})
}

// write writes a step of the ledger as the store does: whoever is of a former home, or does not own the entry, is
// refused, and goes on no more.
func (m *model) write(s mState, i int, name string, step mStep, then func(*mState, *mInstance)) {
	t := s
	in := &t.in[i]
	step.owner = in.run
	answer := m.apply(s.kept.entry, step)
	if s.kept.epoch > in.epoch && !m.noEpoch || !answer.taken {
		in.pc, in.run, in.outcome, in.down, in.started = pcNone, 0, ouNone, false, false
		m.emit(name+", and is refused", i, false, t)
		return
	}
	t.kept.entry = answer.entry
	then(&t, in)
	m.emit(name, i, false, t)
}

// mStep is a step of the ledger; to is 0 for the adoption of an entry.
type mStep struct {
	owner, to, outcome uint8
	fresh, again, down bool
}

// mAsked and mAnswer remember what the table says.
type mAsked struct {
	entry mEntry
	step  mStep
}

type mAnswer struct {
	entry mEntry
	taken bool
}

var mFrom = ledger.Entry{Key: "key", Caller: handoff.Caller{Principal: "owner"}, Args: "args"}

// full is the entry as the service has it.
func (e mEntry) full() ledger.Entry {
	if e.status == stNone {
		return ledger.Entry{}
	}
	full := mFrom
	full.Owner, full.Status, full.Inherited = string('0'+rune(e.owner)), mStatuses[e.status], e.inherited
	if full.Outcome = mOutcomes[e.outcome]; e.sent {
		full.Attempt = 1
	}
	if e.turn {
		full.Turn = "turn"
	}
	if e.down {
		full.Code = handoff.CodeStoreDown
	}
	return full
}

// apply asks the table of the service.
func (m *model) apply(e mEntry, step mStep) mAnswer {
	asked := mAsked{e, step}
	if answer, ok := m.memo[asked]; ok {
		return answer
	}
	full := ledger.Step{
		Key: mFrom.Key, Caller: mFrom.Caller, Args: mFrom.Args, Owner: string('0' + rune(step.owner)), To: mStatuses[step.to],
		Adopt: step.to == stNone, New: step.fresh, Again: step.again, At: time.UnixMilli(1),
	}
	switch step.to {
	case stDispatching:
		full.Attempt = 1
	case stStarted:
		full.Set.Turn = "turn"
	case stCompleted:
		if full.Set.Outcome = mOutcomes[step.outcome]; step.down {
			full.Set.Code = handoff.CodeStoreDown
		}
	}
	after, err := e.full().Apply(full)
	if err != nil && handoff.CodeOf(err) == handoff.CodeInternal {
		panic("the model asks for what the table never allows: " + err.Error())
	}
	answer := mAnswer{taken: err == nil}
	if after.Status != "" {
		answer.entry = mEntry{
			status: uint8(slices.Index(mStatuses, after.Status)), outcome: uint8(slices.Index(mOutcomes, after.Outcome)),
			owner: after.Owner[0] - '0', inherited: after.Inherited, sent: after.Attempt > 0, turn: after.Turn != "",
			down: after.Code == handoff.CodeStoreDown,
		}
	}
	m.memo[asked] = answer
	return answer
}
