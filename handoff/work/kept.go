package work

import (
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/phase"
)

// Committed is what became of a batch. If the store had another version, State is what it has.
type Committed struct {
	Result ledger.Committed
	State  ledger.State
	Err    error
}

func (c *Committed) apply(s *State) {
	k := &s.keep
	was := k.sent
	if was == nil {
		return
	}
	k.sent = nil
	switch code := handoff.CodeOf(c.Err); {
	case code == handoff.CodeShutdown, code == handoff.CodeTakenOver:
		s.fenced()
	case c.Err != nil:
		k.doubted = append(k.doubted, was.version)
		s.putBack(was)
		if k.single = code != handoff.CodeUnreachable; k.single { // it may be due to one of them: others go first
			k.rotate()
		}
		s.away(c.Err)
	case c.Result == ledger.NotFree:
		k.tries = 0
		if k.single = len(was.of) > 1; k.single {
			s.putBack(was)
			return
		}
		h := was.of[0].h
		was.of = nil
		s.putBack(was)
		k.dirty = slices.DeleteFunc(k.dirty, func(o *Handoff) bool { return o == h })
		s.notFree(h)
	case c.Result == ledger.Outdated:
		k.tries = 0
		s.putBack(was)
		if !slices.Contains(k.doubted, c.State.Version) {
			s.rewrite(c.State.Documents)
		}
		k.reads(c.State)
	default:
		k.tries, k.doubted = 0, nil
		k.has(was)
		for _, of := range was.of {
			s.written(of)
		}
	}
}

// rotate puts the first handoff that is to be written last.
func (k *keeper) rotate() {
	if len(k.dirty) > 1 {
		k.dirty = append(slices.Clone(k.dirty[1:]), k.dirty[0])
	}
}

// reads takes what the store has.
func (k *keeper) reads(now ledger.State) {
	k.version, k.doubted, k.docs = now.Version, nil, map[string]bool{}
	for name := range now.Documents {
		k.docs[name] = true
	}
}

// has takes that the store has a batch. Without any document it keeps nothing of the caller.
func (k *keeper) has(was *sent) {
	for _, name := range was.put {
		k.docs[name] = true
	}
	for _, name := range was.drop {
		delete(k.docs, name)
	}
	if k.version = was.version; len(k.docs) == 0 {
		k.version = ""
	}
}

// putBack has a batch sent again, with what changed meanwhile.
func (s *State) putBack(was *sent) {
	for _, of := range slices.Backward(was.of) {
		if !slices.Contains(s.keep.dirty, of.h) {
			s.keep.dirty = slices.Insert(s.keep.dirty, 0, of.h)
		}
	}
	for _, p := range was.places {
		s.keep.places[p] = true
	}
}

// away: the store did not take a batch, or could not be read. What was to be sent is not: only what waits is tried
// again.
func (s *State) away(err error) {
	k := &s.keep
	k.err = err
	k.again = s.now.Add(s.cfg.Pause(k.tries))
	k.tries++
	for _, h := range slices.Clone(s.all) {
		for h.open && h.wait.store.what > notes { // what is not sent may have its outcome to be told
			s.missed(h)
		}
	}
}

// missed: the store does not have what something waits for, or not in time.
func (s *State) missed(h *Handoff) {
	was := h.wait.store.what
	h.wait.store = pending{}
	switch was {
	case notes:
		s.unwrite(h)
		s.apply(h, phase.FactUnnoted, s.keep.fault())
	case sends:
		s.unwrite(h)
		s.apply(h, phase.FactStartRefused, s.keep.fault())
	case tells:
		s.apply(h, phase.FactUnwritten, nil)
	}
}

// fault returns the error of something that the store did not take.
func (k *keeper) fault() *handoff.Error {
	err := k.err
	if k.tries == 0 {
		err = handoff.Fault(handoff.CodeUnreachable, "the store", "it did not answer in time")
	}
	if handoff.CodeOf(err) == handoff.CodeUnreachable {
		err = handoff.StoreDown(err)
	}
	return handoff.AsError(err)
}

// rewrite has everything written again: the store has lost what it had. docs are those that it has: of what was heard,
// that is written again which stands there still, and what was heard lately.
func (s *State) rewrite(docs map[string]string) {
	for _, h := range s.all {
		d := &h.doc
		_, stands := docs[ledger.HandoffDoc+h.key]
		over := d.known && !d.closed && (stands || s.now.Sub(d.past) < time.Minute)
		if d.waits() || over {
			d.texts, d.free = nil, false
			s.mark(h)
		}
	}
	for p := range s.current {
		s.writePlace(p)
	}
	for name := range docs { // that of a place whose thread is not in use any more goes
		if field, is := strings.CutPrefix(name, ledger.StickyDoc); is {
			if c, _, ok := ledger.DecodeSticky(field, docs[name]); ok {
				s.writePlace(PlaceOf(c.Target))
			}
		}
	}
}

// written: the store has a handoff.
func (s *State) written(was sentOf) {
	h := was.h
	d := &h.doc
	d.acked, d.free, d.clear = was.seq, false, false
	for _, part := range was.texts {
		if part == ledger.PartRequest && was.dropped {
			d.request = false
			d.texts = slices.DeleteFunc(d.texts, func(had string) bool { return had == part })
			continue
		}
		d.texts = append(d.texts, part)
	}
	d.waiters = slices.DeleteFunc(d.waiters, func(w waiter) bool {
		if w.seq <= d.acked {
			close(w.kept)
		}
		return w.seq <= d.acked
	})
	if h.wait.store.seq <= d.acked {
		next := h.wait.store.what
		h.wait.store = pending{}
		switch next {
		case notes:
			s.apply(h, phase.FactNoted, nil)
		case sends:
			s.dispatched(h)
		case tells:
			s.apply(h, phase.FactWritten, nil)
		}
	}
	if h.heard() {
		s.forget(h)
	}
}

// notFree: the key is one of the past, or of work that was not known when it was asked, so the request is another one.
func (s *State) notFree(h *Handoff) {
	h.doc.closed = true
	fault := handoff.Fault(handoff.CodeTakenOver, "", "its key is that of earlier work")
	was := h.wait.store.what
	h.wait.store = pending{}
	switch was {
	case sends:
		s.apply(h, phase.FactStartRefused, fault)
	case tells:
		s.apply(h, phase.FactWritten, nil)
	default:
		s.apply(h, phase.FactUnnoted, fault)
	}
}

// fenced: another home or life of the process has the caller, and goes on from the store.
func (s *State) fenced() {
	s.over = true
	for _, h := range slices.Clone(s.all) {
		switch {
		case !h.open:
		case h.state.Phase == phase.Writing:
			s.apply(h, phase.FactTakenOver, nil)
		default:
			s.unbegin(h)
			s.apply(h, phase.FactMoved, handoff.Fault(handoff.CodeShutdown, "", ""))
		}
		h.doc.closed = true
	}
	s.keep.dirty = nil
	clear(s.keep.places)
}

// Beat asks the store whether it still has what it acknowledged, if anything waits there.
type Beat struct{}

func (*Beat) apply(s *State) {
	s.keep.beat = s.keep.beat || s.keep.open && slices.ContainsFunc(s.all, func(h *Handoff) bool { return h.doc.waits() })
}

// GiveUp says that the process ends: what the store does not have by now is left as it is.
type GiveUp struct{}

func (*GiveUp) apply(s *State) {
	if !s.over {
		return
	}
	for _, h := range s.keep.dirty {
		h.doc.closed = true
	}
	s.keep.dirty = nil
	clear(s.keep.places)
}

// Gave says that the caller was given to another home: nothing is written any more, not even what a front reports late.
type Gave struct{}

func (*Gave) apply(s *State) { s.keep.closed = true }

// Unstored asks whether something is still to be written. Left is the result: what waits or is on its way.
type Unstored struct {
	Now  bool // try at once
	Left bool
}

func (u *Unstored) apply(s *State) {
	if u.Now {
		s.keep.again = time.Time{}
	}
	u.Left = !s.stored()
}
