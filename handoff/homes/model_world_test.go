package homes

import (
	"switchboard/handoff/ledger"
)

// store is what happens to the store, its replica and the agent.
func (m *model) store(s mState) {
	t := s
	if s.turn == turnRuns {
		t.turn = turnEnded
		m.emit("the turn ends", -1, false, t)
		t = s
	}
	if s.away {
		t.away = false
		m.emit("the store answers again", -1, false, t)
		return
	}
	if t.replica = s.kept; t != s && s.failovers > 0 {
		m.emit("the replica follows", -1, false, t)
		t = s
	}
	if s.outages > 0 {
		t.outages, t.away = 0, true
		m.emit("the store is gone", -1, true, t)
		t = s
	}
	if s.failovers > 0 && s.kept != s.replica {
		t.failovers, t.kept = 0, s.replica
		m.emit("the replica takes its place", -1, true, t)
	}
}

// fault is what goes wrong with an instance, and what ends that.
func (m *model) fault(s mState, i int) {
	do := func(name string, fault bool, change func(*mState, *mInstance)) {
		t := s
		if change(&t, &t.in[i]); fault {
			t.failed |= 1 << i
		}
		m.emit(name, i, fault, t)
	}
	in := s.in[i]
	if in.life == mRuns {
		if s.kills > 0 {
			do("killed", true, func(s *mState, in *mInstance) { s.kills, *in = 0, mInstance{life: mDead} })
		}
		if s.pauses > 0 {
			do("paused", true, func(s *mState, in *mInstance) { s.pauses, in.life = 0, mPaused })
		}
		if s.cuts > 0 {
			do("cut off from the store", true, func(s *mState, in *mInstance) { s.cuts, in.cut = 0, true })
		}
	}
	if in.life == mPaused {
		do("goes on", false, func(_ *mState, in *mInstance) { in.life = mRuns })
	}
	if in.cut {
		do("reaches the store again", false, func(_ *mState, in *mInstance) { in.cut = false })
	}
	if in.fresh && !s.reaches(i) {
		do("has not beaten for three seconds", false, func(_ *mState, in *mInstance) { in.fresh, in.lapsed = false, true })
	}
}

// neighbour is what an instance knows of itself and the other.
func (m *model) neighbour(s mState, i int) {
	do := func(name string, how func(*mState, *mInstance)) { m.change(s, i, name, how) }
	in, other := s.in[i], s.in[1-i]
	silent := !other.fresh && !s.reaches(1-i)
	if !in.holdsDead && silent && (s.reaches(i) || m.deadWithoutOwnBeats) {
		do("holds the other for dead", func(_ *mState, in *mInstance) { in.holdsDead = true })
	}
	if !s.reaches(i) {
		return
	}
	if in.holdsDead && other.fresh {
		do("reads that the other beats", func(_ *mState, in *mInstance) { in.holdsDead = false })
	}
	if !in.fresh {
		do("beats", func(_ *mState, in *mInstance) { in.fresh = true })
		return
	}
	if in.epoch == 0 && in.lapsed {
		do("has nothing to verify", func(_ *mState, in *mInstance) { in.lapsed = false })
		return
	}
	if in.epoch == 0 {
		return
	}
	mine := ledger.Claim{ID: mName(uint8(i) + 1), Epoch: int64(in.epoch)}
	switch Verify(mine, ledger.Claim{ID: mName(s.kept.id), Epoch: int64(s.kept.epoch)}) {
	case Keep:
		do("verifies", func(_ *mState, in *mInstance) { in.lapsed = false })
	case Assert:
		do("asserts", func(s *mState, in *mInstance) {
			s.kept.id, s.kept.epoch, s.kept.index = uint8(i)+1, in.epoch, s.kept.index|1<<i
		})
	case Evict:
		do("is evicted", func(_ *mState, in *mInstance) { in.evict() })
	}
}

func mName(id uint8) string {
	if id == 0 {
		return ""
	}
	return string('a' + rune(id) - 1)
}

// evict ends what an instance has of the caller.
func (in *mInstance) evict() { in.epoch, in.mHome = 0, mHome{} }

// mayAct reports whether an instance gives agents anything.
func (m *model) mayAct(in mInstance) bool { return m.noSelf || in.fresh && !in.lapsed }

// home takes the home, or lets go of it.
func (m *model) home(s mState, i int) {
	in, id := s.in[i], uint8(i)+1
	if in.epoch == 0 && !in.over && s.reaches(i) && m.mayAct(in) {
		// what is read of the other is younger than a pause that counts
		free := s.kept.id == 0 || s.kept.id == id || in.holdsDead && !s.in[1-i].fresh
		wanted := s.asked < 2 || s.chosen < 2 || in.holdsDead && s.kept.index&^(1<<i) != 0
		switch {
		case free && wanted && m.readBeforeHome && !in.open:
			m.change(s, i, "opens the caller", func(s *mState, in *mInstance) { in.opens(s.kept) })
		case free && wanted:
			m.take(s, i)
		}
	}
	if m.indexAfterHome && in.epoch != 0 && s.kept.index&(1<<i) == 0 && s.reaches(i) {
		t := s
		t.kept.index |= 1 << i
		m.emit("is in its index", i, false, t)
	}
	dirty := in.workDirty || in.pickDirty
	idle := in.pc == pcNone && (!dirty || m.releaseBeforeFlush) && (in.open || in.closed || m.releaseUnread)
	if in.epoch != 0 && idle && s.releases > 0 {
		m.change(s, i, "lets go of the home", func(s *mState, in *mInstance) {
			s.releases = 0
			if s.reaches(i) && s.kept.id == id && s.kept.epoch == in.epoch {
				if s.kept.id = 0; s.kept.entry.status == stNone || s.kept.entry.status == stDelivered {
					s.kept.index &^= 1 << i
				}
			}
			if in.epoch, in.over = 0, dirty; !dirty {
				in.mHome = mHome{}
			}
		})
	}
}

// take takes a home that is free, or whose instance is held for dead: the caller is in the index first.
func (m *model) take(s mState, i int) {
	if s.kept.index&(1<<i) == 0 && !m.indexAfterHome {
		t := s
		t.kept.index |= 1 << i
		m.emit("is in its index", i, false, t)
		return
	}
	t := s
	in := &t.in[i]
	if s.kept.id != 0 && s.kept.id != uint8(i)+1 {
		if m.taken++; s.failed&(2>>i) == 0 {
			t.bad = badTaken
		}
	}
	t.epochs++
	t.kept.id, t.kept.epoch, in.epoch = uint8(i)+1, t.epochs, t.epochs
	if !m.noWait {
		t.replica = t.kept
	}
	m.emit("takes the home", i, false, t)
}
