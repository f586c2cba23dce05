package router_test

import (
	"slices"

	"switchboard/handoff/phase"
)

// outside is everything that happens without a router and without a fault.
func (m *model) outside(s mState) {
	do := func(name string, p, i int, change func(*mState)) {
		t := s
		change(&t)
		m.emit(t, move{name, int8(p), int8(i)}, false)
	}
	for at, state := range s.turns {
		if state == turnRuns {
			do("the turn ends", -1, at, func(s *mState) { s.turns[at] = turnEnded })
		}
	}
	for i, pending := range s.old {
		if pending > 0 {
			do("a lost start arrives", -1, i, func(s *mState) { s.old[i]--; s.arrive(i) })
			do("a lost start is lost", -1, i, func(s *mState) { s.old[i]-- })
		}
	}
	for i := range s.ledger {
		if s.late&(1<<i) != 0 && !s.down {
			do("a former run writes its end", -1, i, func(s *mState) {
				s.late &^= 1 << i
				s.ledger[i] = m.ended(s.ledger[i], formerEnd(m.owner(mRouter{gen: s.gen}))).entry
			})
		}
	}
	if s.down {
		do("the store answers again", -1, -1, func(s *mState) { s.down = false })
	}
	newest := -1
	for p, r := range s.routers {
		if r.gen == s.gen {
			newest = p
		}
		if r.wire != 0 && r.conn {
			do("the start arrives", p, int(r.wire)-1, func(s *mState) { s.routers[p].wire = 0; s.arrive(int(r.wire) - 1) })
		}
		if r.life == lifeRuns && !r.conn {
			do("reconnect", p, -1, func(s *mState) { s.routers[p].conn = true })
		}
		if r.life == lifePaused {
			do("resume", p, -1, func(s *mState) { s.routers[p].life = lifeRuns })
		}
		if r.life == lifeRuns && r.gen != s.gen {
			do("end, another has taken over", p, -1, func(s *mState) { s.end(p) })
		}
	}
	if s.routers[newest].life != lifeRuns && !s.down { // whoever comes next waits for the store
		for p, r := range s.routers {
			if r.life == lifeNone || r.life == lifeDead {
				do("a new life", p, -1, func(s *mState) {
					s.gen++
					s.routers[p] = mRouter{gen: s.gen, life: lifeRuns, conn: true}
				})
				return
			}
		}
	}
}

// arrive is the agent that takes a start: a new turn, or, while one runs, more words for that.
func (s *mState) arrive(i int) {
	if s.turns[i] != turnNone || s.joined[i] != 0 {
		s.bad = badStart
		return
	}
	if at := slices.Index(s.turns[:], turnRuns); at >= 0 {
		s.joined[i] = uint8(at) + 1
	} else {
		s.turns[i] = turnRuns
	}
}

// cut ends a router's connection to the agent; what was written may still arrive.
func (s *mState) cut(p int) {
	r := &s.routers[p]
	if r.wire != 0 {
		s.old[r.wire-1]++
		r.wire = 0
	}
	r.conn = false
	for i := range r.works {
		if r.works[i].pc == pcSent {
			r.works[i].pc = pcLost
		}
	}
}

// end ends a life of the router; what it knew is gone.
func (s *mState) end(p int) {
	s.cut(p)
	s.routers[p] = mRouter{gen: s.routers[p].gen, life: lifeDead}
}

// faults is everything that may go wrong now.
func (m *model) faults(s mState) {
	do := func(name string, p, i int, change func(*mState)) {
		t := s
		change(&t)
		m.emit(t, move{name, int8(p), int8(i)}, true)
	}
	for p, r := range s.routers {
		if r.life != lifeRuns {
			continue
		}
		newest := r.gen == s.gen
		if newest && s.crashes > 0 {
			do("crash", p, -1, func(s *mState) { s.crashes--; s.end(p) })
			do("crash, and the call ends", p, -1, func(s *mState) { s.crashes--; s.end(p); s.hangUp() })
		}
		if newest && s.pauses > 0 {
			do("pause", p, -1, func(s *mState) { s.pauses--; s.routers[p].life = lifePaused })
		}
		if r.conn && s.cuts > 0 {
			do("the socket is lost", p, -1, func(s *mState) { s.cuts--; s.cut(p) })
		}
		for i, w := range r.works {
			if w.pc == pcLost && s.doubts > 0 {
				m.fact(s, p, i, phase.FactNotReconciled, 0, true)
			}
			if w.pc == pcRejoin && s.doubts > 0 {
				m.fact(s, p, i, phase.FactReconnectFailed, 0, true)
			}
			if w.pc == pcHeard && s.voices > 0 {
				do("that it was said is not confirmed", p, i, func(s *mState) { s.voices--; s.routers[p].works[i].pc = pcTell })
			}
		}
	}
	if s.agents > 0 {
		do("the agent crashes", -1, -1, func(s *mState) { s.agents--; s.agentCrash(false) })
		if slices.Contains(s.turns[:], turnRuns) {
			do("the agent crashes and forgets the id", -1, -1, func(s *mState) { s.agents--; s.agentCrash(true) })
		}
	}
	if s.stores > 0 {
		do("the store is gone", -1, -1, func(s *mState) { s.stores--; s.down, s.outage = true, true })
	}
	if s.voices > 0 {
		do("the call ends, the caller calls again", -1, -1, func(s *mState) { s.voices--; s.hangUp() })
	}
	if s.strangers > 0 && !slices.Contains(s.turns[:], turnRuns) {
		do("somebody else starts a turn", -1, -1, func(s *mState) { s.strangers--; s.turns[2] = turnRuns })
	}
}

// agentCrash interrupts what runs, and loses what was on its way. The id of a turn that had just begun
// may not have been kept.
func (s *mState) agentCrash(forgets bool) {
	for at, state := range s.turns {
		if state == turnRuns {
			s.turns[at] = turnCut
			if forgets {
				s.noName |= 1 << at
			}
		}
	}
	for p := range s.routers {
		s.cut(p)
	}
	s.old = [2]uint8{}
}

// hangUp begins a new voice session. What was on its way to the old one was not heard.
func (s *mState) hangUp() {
	s.spoken = [2]uint8{}
	for p := range s.routers {
		for i := range s.routers[p].works {
			if w := &s.routers[p].works[i]; w.pc == pcSaid || w.pc == pcHeard {
				w.pc = pcTell
			}
		}
	}
}
