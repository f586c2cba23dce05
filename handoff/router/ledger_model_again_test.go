package router_test

// otherRun tells the owners of the two runs of a request apart.
const otherRun = 32

// formerEnd is what a run writes that the store refused.
func formerEnd(owner uint8) mStep {
	return mStep{owner: owner, to: stCompleted, outcome: ouFailed, down: true, fresh: true, former: true}
}

// ended is what the entry is after a former run wrote that it failed and that this was heard, as far as the table
// lets it.
func (m *model) ended(e mEntry, step mStep) mAnswer {
	answer := m.apply(e, step)
	return m.apply(answer.entry, mStep{owner: step.owner, to: stDelivered})
}

// askAgain is a request that comes once more under its key, after it is over and the key is free: in memory, or in the
// ledger of what nobody here knows.
func (m *model) askAgain(s mState, p, i int) {
	w, e := s.routers[p].works[i], s.ledger[i]
	over := w.pc == pcTold || w.pc == pcDone // whoever asks was told
	free := over && (w.down || w.written && w.known.full().Free())
	free = free || w.pc == pcNone && !s.down && (e.status == stNone || e.status == stDelivered && e.full().Free())
	free = free || m.mutant.noFree && over
	// one that was replaced writes nothing more: the store sees to that
	if other := s.routers[1-p]; other.works[i].pc != pcNone {
		return
	}
	if s.routers[p].gen != s.gen || s.asked&(1<<i) == 0 || (s.again|s.once)&(1<<i) != 0 || !free {
		return
	}
	t := s
	t.again |= 1 << i
	t.spoken[i], t.heard[i] = 0, 0 // what is said of it has another name
	former := over && !w.written
	if former {
		t.late |= 1 << i
	}
	if m.mutant.noFree {
		t.ledger[i] = mEntry{}
	}
	t.routers[p].works[i] = mWork{pc: pcAsked, run: 1, again: true, former: former}
	m.emit(t, move{"ask again", int8(p), int8(i)}, false)
}
