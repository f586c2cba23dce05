package router_test

import (
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/phase"
)

// mStep is a step of the ledger.
type mStep struct {
	owner, to, attempt, outcome, turn, mark uint8
	fresh                                   bool // it may make the entry
	// it is asked for once more; of the store that took nothing; of the run before
	again, down, former bool
}

// mAsked and mAnswer remember what the table says.
type mAsked struct {
	entry mEntry
	step  mStep
}

type mAnswer struct {
	entry mEntry
	code  handoff.Code
}

var mTime = time.UnixMilli(1).UTC()

// full is the entry as the service has it.
func (e mEntry) full() ledger.Entry {
	if e.status == stNone {
		return ledger.Entry{}
	}
	return ledger.Entry{
		Key: "key", Caller: handoff.Caller{Principal: "owner"}, Args: "args", Owner: string('0' + rune(e.owner)),
		Status: mStatuses[e.status], Inherited: e.inherited, Attempt: int(e.attempt),
		Facts: ledger.Facts{
			Watermark: mMasks[e.mark], Turn: mTurns[e.turn], Outcome: mOutcomes[e.outcome], Code: downCode(e.down),
		},
	}
}

func downCode(down bool) handoff.Code {
	if down {
		return handoff.CodeStoreDown
	}
	return ""
}

// small is the entry as the model has it.
func small(e ledger.Entry) mEntry {
	if e.Status == "" {
		return mEntry{}
	}
	return mEntry{
		status: uint8(slices.Index(mStatuses, e.Status)), owner: e.Owner[0] - '0', attempt: uint8(e.Attempt),
		outcome: uint8(slices.Index(mOutcomes, e.Outcome)), turn: uint8(slices.Index(mTurns, e.Turn)),
		mark: uint8(slices.Index(mMasks, e.Watermark)), inherited: e.Inherited, down: e.Code == handoff.CodeStoreDown,
	}
}

// apply asks the table of the service.
func (m *model) apply(e mEntry, s mStep) mAnswer {
	asked := mAsked{e, s}
	if answer, ok := m.memo[asked]; ok {
		return answer
	}
	full := ledger.Step{
		Key: "key", Caller: handoff.Caller{Principal: "owner"}, Args: "args", Owner: string('0' + rune(s.owner)),
		To: mStatuses[s.to], New: s.fresh, Again: s.again, Adopt: s.to == stNone, Attempt: int(s.attempt), At: mTime,
		Set: ledger.Facts{
			Watermark: mMasks[s.mark], Turn: mTurns[s.turn], Outcome: mOutcomes[s.outcome], Code: downCode(s.down),
		},
	}
	after, err := e.full().Apply(full)
	answer := mAnswer{entry: small(after), code: handoff.CodeOf(err)}
	if answer.code == handoff.CodeInternal {
		panic("the model asks for what the table never allows: " + err.Error())
	}
	m.memo[asked] = answer
	return answer
}

// owner names a life of the router in the ledger.
func (m *model) owner(r mRouter) uint8 {
	if m.mutant.noAsk {
		return 1
	}
	return r.gen
}

// advance writes a step: the store does it, or does not answer, or does it and its answer is lost. then
// goes on in the router's memory; it gets "", taken over, or unreachable. Other refusals count as taken
// over: the entry is further than this router thinks.
func (m *model) advance(s mState, p, i int, step mStep, name string, then func(*mState, *mWork, handoff.Code)) {
	how := move{name, int8(p), int8(i)}
	if !step.former {
		step.owner = m.owner(s.routers[p]) + otherRun*s.routers[p].works[i].run
	}
	if s.down {
		t := s
		then(&t, &t.routers[p].works[i], handoff.CodeUnreachable)
		m.emit(t, how, false)
		return
	}
	if step.again && s.routers[p].gen != s.gen { // the store's fence
		t := s
		t.routers[p].works[i].pc = pcDropped
		m.emit(t, how, false)
		return
	}
	answer := m.apply(s.ledger[i], step)
	if step.former {
		answer = m.ended(s.ledger[i], step)
	}
	t := s
	w := &t.routers[p].works[i]
	if answer.code != "" && step.former { // somebody else wrote it
		then(&t, w, "")
		m.emit(t, how, false)
		return
	}
	if answer.code != "" {
		w.pc = pcDropped
		m.emit(t, how, false)
		return
	}
	if old := t.ledger[i].outcome; old != 0 && answer.entry.outcome != old && !step.again {
		t.bad = badOutcome
	}
	t.ledger[i] = answer.entry
	lost := t
	if !step.former {
		w.known = answer.entry
	}
	then(&t, w, "")
	m.emit(t, how, false)
	if s.stores > 0 {
		lost.stores, lost.outage = lost.stores-1, true
		then(&lost, &lost.routers[p].works[i], handoff.CodeUnreachable)
		how.name += ", its answer is lost"
		m.emit(lost, how, true)
	}
}

// work is everything that a router may do about one request now.
func (m *model) work(s mState, p, i int) {
	r := s.routers[p]
	w := r.works[i]
	m.askAgain(s, p, i)
	here := func(name string, change func(*mState, *mWork)) {
		t := s
		change(&t, &t.routers[p].works[i])
		m.emit(t, move{name, int8(p), int8(i)}, false)
	}
	to := func(name string, pc uint8) { here(name, func(_ *mState, w *mWork) { w.pc = pc }) }
	switch w.pc {
	case pcNone, pcDropped:
		m.meet(s, p, i)
	case pcAsked, pcAccepted:
		m.begin(s, p, i)
	case pcGranted:
		if !r.conn {
			to("not sent, the connection is lost", pcLost)
		} else if r.wire == 0 {
			here("send the start", func(s *mState, w *mWork) { s.routers[p].wire, w.pc = uint8(i)+1, pcSent })
		}
	case pcSent:
		if turn := s.turnOf(i); r.conn && r.wire != uint8(i)+1 && turn != 0 {
			m.started(s, p, i, turn, "the start is acknowledged")
		}
	case pcFound:
		m.adopt(s, p, i)
	case pcLost:
		if fact, turn := m.look(s, p, i); fact != 0 {
			m.fact(s, p, i, fact, turn, false)
		}
	case pcRejoin:
		if r.conn {
			m.fact(s, p, i, phase.FactReconnected, w.known.turn, false)
		}
	case pcFollow:
		m.follow(s, p, i)
	case pcEnded:
		m.complete(s, p, i)
	case pcTell:
		to("say it", pcSaid)
	case pcSaid:
		here("it is said", func(s *mState, w *mWork) { m.speak(s, i, w) })
	case pcHeard:
		to("that it was said is confirmed", pcTold)
	case pcTold:
		m.deliver(s, p, i)
	}
}

// meet is how a life of the router comes to know of a request: it is asked, or finds it in the ledger.
func (m *model) meet(s mState, p, i int) {
	r := s.routers[p]
	if r.gen != s.gen {
		return
	}
	t := s
	w := &t.routers[p].works[i]
	switch e := s.ledger[i]; {
	case s.asked&(1<<i) == 0:
		t.asked |= 1 << i
		w.pc = pcAsked
		m.emit(t, move{"ask", int8(p), int8(i)}, false)
	case s.down || e.status == stNone || e.status == stDelivered || e.owner%otherRun == r.gen:
	case m.mutant.noAsk:
		w.pc, w.known, w.run = pcLost, e, e.owner/otherRun
		m.emit(t, move{"find an open entry", int8(p), int8(i)}, false)
	default:
		w.pc, w.run = pcFound, e.owner/otherRun
		m.emit(t, move{"find an open entry", int8(p), int8(i)}, false)
	}
}

// begin writes that the request is accepted, or at once that it is dispatched. A store that does not
// answer refuses it: nothing is started.
func (m *model) begin(s mState, p, i int) {
	refuse := func(w *mWork) { w.pc, w.outcome, w.down = pcEnded, ouFailed, true }
	w := s.routers[p].works[i]
	if w.former {
		end := formerEnd(m.owner(s.routers[p]))
		m.advance(s, p, i, end, "write the end of the run before", func(t *mState, w *mWork, c handoff.Code) {
			if w.former = false; c != "" { // told, and nothing is written of it
				w.pc, t.heard[i] = pcDone, 1<<ouFailed
			}
		})
		return
	}
	if w.pc == pcAsked {
		accept := mStep{to: stAccepted, fresh: true, again: w.again}
		m.advance(s, p, i, accept, "accept", func(_ *mState, w *mWork, c handoff.Code) {
			if w.pc, w.again = pcAccepted, false; c != "" {
				refuse(w)
			}
		})
	}
	if !s.free(p, i) {
		return
	}
	step := mStep{to: stDispatching, attempt: 1, fresh: true, mark: s.seen(), again: w.again}
	m.advance(s, p, i, step, "dispatch", func(_ *mState, w *mWork, c handoff.Code) {
		if w.pc, w.again = pcGranted, false; c != "" {
			refuse(w)
		}
	})
}

// free reports whether the thread may be used: it was resumed and is idle, and no other work of this
// router uses it.
func (s mState) free(p, i int) bool {
	other := s.routers[p].works[1-i].pc
	busy := other >= pcGranted && other <= pcFollow || other == pcFound
	return s.routers[p].conn && !busy && !slices.Contains(s.turns[:], turnRuns)
}

// seen are the turns that are on the thread, as bits.
func (s mState) seen() uint8 {
	var mask uint8
	for at, state := range s.turns {
		if state != turnNone {
			mask |= 1 << at
		}
	}
	return mask
}

// turnOf is 1 + the turn that has the words of a request, or 0.
func (s mState) turnOf(i int) uint8 {
	if s.turns[i] != turnNone {
		return uint8(i) + 1
	}
	return s.joined[i]
}

// started writes that the turn is known. Without the store the work goes on.
func (m *model) started(s mState, p, i int, turn uint8, name string) {
	m.advance(s, p, i, mStep{to: stStarted, fresh: true, turn: turn}, name, func(_ *mState, w *mWork, _ handoff.Code) {
		w.pc, w.known.turn = pcFollow, turn
	})
}

// adopt takes an entry over from another life; what is done next depends on how far it is.
func (m *model) adopt(s mState, p, i int) {
	m.advance(s, p, i, mStep{}, "adopt", func(_ *mState, w *mWork, c handoff.Code) {
		switch {
		case c != "":
		case w.known.status >= stCompleted:
			w.pc, w.outcome, w.written = pcTell, w.known.outcome, true
		case w.known.turn != 0:
			w.pc, w.seen = pcRejoin, true
		default:
			w.pc = pcLost
		}
	})
}

// follow watches a turn: it shows itself, it ends, or the agent is lost meanwhile.
func (m *model) follow(s mState, p, i int) {
	w := s.routers[p].works[i]
	state := s.turns[w.known.turn-1]
	if !s.routers[p].conn {
		m.fact(s, p, i, phase.FactAgentGone, w.known.turn, false)
		return
	}
	if !w.seen {
		t := s
		t.routers[p].works[i].seen = true
		m.emit(t, move{"the turn reports", int8(p), int8(i)}, false)
	}
	switch state {
	case turnEnded:
		m.fact(s, p, i, phase.FactTurnCompleted, 0, false)
	case turnCut:
		m.fact(s, p, i, phase.FactTurnInterrupted, 0, false)
	}
}

// look is what settling finds on the thread: a fact and the turn, or 0 when it has to look again.
func (m *model) look(s mState, p, i int) (phase.Fact, uint8) {
	w := s.routers[p].works[i]
	if w.known.status == stAccepted { // no thread is known of it
		return phase.FactNotReconciled, 0
	}
	if !s.routers[p].conn {
		return 0, 0
	}
	if s.turns[i] != turnNone && s.noName&(1<<i) == 0 {
		return phase.FactAdopted, uint8(i) + 1
	}
	if s.joined[i] != 0 {
		return phase.FactAdopted, s.joined[i]
	}
	newer := s.seen() &^ w.known.mark
	for at := range s.turns { // one that nobody has put a name on may be ours
		if !m.mutant.noWatermark && newer&s.noName&(1<<at) != 0 {
			return phase.FactAdopted, uint8(at) + 1
		}
	}
	if m.mutant.noReconcile || s.old == [2]uint8{} {
		return phase.FactNeverRan, 0
	}
	return 0, 0
}

// phases are the phases that a pc stands for when the service is asked.
var phases = map[uint8]phase.Phase{
	pcLost: phase.Reconciling, pcRejoin: phase.Reconnecting, pcFollow: phase.Running,
}

// fact asks the service what a fact means, and does it.
func (m *model) fact(s mState, p, i int, fact phase.Fact, turn uint8, doubt bool) {
	t := s
	if doubt {
		t.doubts--
	}
	w := &t.routers[p].works[i]
	next, acts := phase.State{
		Phase: phases[w.pc], Noted: true, Due: true, Seen: w.seen, Again: w.known.attempt > 1, Inherited: w.known.inherited,
	}.Step(fact)
	switch {
	case slices.Contains(acts, phase.ActWriteOutcome):
		w.pc, w.outcome = pcEnded, uint8(slices.Index(mOutcomes, next.Outcome))
		if m.mutant.noOrder {
			w.pc = pcTell
		}
	case slices.Contains(acts, phase.ActStart):
		if s.free(p, i) {
			m.again(s, p, i)
		}
		return
	case slices.Contains(acts, phase.ActFollow):
		m.started(s, p, i, turn, fact.String())
		return
	case slices.Contains(acts, phase.ActReconcile):
		w.pc = pcLost
	case slices.Contains(acts, phase.ActReconnect):
		w.pc = pcRejoin
	default:
		panic("the model does not know what to do about " + fact.String())
	}
	m.emit(t, move{fact.String(), int8(p), int8(i)}, doubt)
}

// again writes that the start is sent once more. Without the store it waits.
func (m *model) again(s mState, p, i int) {
	step := mStep{to: stDispatching, attempt: s.routers[p].works[i].known.attempt + 1, mark: s.seen()}
	m.advance(s, p, i, step, "start once more", func(_ *mState, w *mWork, c handoff.Code) {
		if c == "" {
			w.pc = pcGranted
		}
	})
}

// complete writes the outcome; what follows when it is written, or the store does not answer, is asked of
// the service.
func (m *model) complete(s mState, p, i int) {
	w := s.routers[p].works[i]
	step := mStep{to: stCompleted, outcome: w.outcome, fresh: true, down: w.down, again: w.again}
	m.advance(s, p, i, step, "write the outcome", func(_ *mState, w *mWork, c handoff.Code) {
		fact := phase.FactWritten
		if c != "" {
			fact = phase.FactUnwritten
		}
		_, acts := phase.State{Phase: phase.Writing, Noted: true, Due: true, Outcome: mOutcomes[w.outcome]}.Step(fact)
		if !slices.Contains(acts, phase.ActPublishOutcome) {
			panic("the outcome is not told")
		}
		w.pc, w.written, w.again = pcTell, c == "", w.again && c != ""
	})
}

// deliver writes that the outcome was heard, and before that the outcome if it is not written yet.
func (m *model) deliver(s mState, p, i int) {
	w := s.routers[p].works[i]
	if w.written {
		m.advance(s, p, i, mStep{to: stDelivered}, "write that it was heard", func(_ *mState, w *mWork, c handoff.Code) {
			if c == "" {
				w.pc = pcDone
			}
		})
		return
	}
	step := mStep{to: stCompleted, outcome: w.outcome, fresh: true, down: w.down, again: w.again}
	m.advance(s, p, i, step, "write the outcome that was heard", func(_ *mState, w *mWork, c handoff.Code) {
		w.written, w.again = c == "", w.again && c != ""
	})
}

// speak gives the outcome to the voice session, which knows it by its id.
func (m *model) speak(s *mState, i int, w *mWork) {
	w.pc = pcHeard
	if w.run == 0 && s.again&(1<<i) != 0 { // of the run before, which is told under its own name
		return
	}
	if s.spoken[i] > 0 && !m.mutant.noItemID {
		return
	}
	if s.spoken[i]++; s.spoken[i] > 1 {
		s.bad = badSpeech
	}
	turn := s.turnOf(i)
	if w.outcome == ouResult && (turn == 0 || s.turns[turn-1] != turnEnded) {
		s.bad = badResult
	}
	s.heard[i] |= 1 << w.outcome
	definite := s.heard[i] &^ (1 << ouUnknown)
	if definite&(definite-1) != 0 || !s.outage && s.heard[i]&(s.heard[i]-1) != 0 {
		s.bad = badHeard
	}
}
