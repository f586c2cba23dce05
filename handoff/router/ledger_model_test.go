package router_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger/ledgertest"
)

// The model: every order of events of two requests on one thread, with faults. What a router does next is
// asked of the service's own [phase.State.Step], what the ledger says of [ledger.Entry.Apply];
// modelled is who knows what, and what can be lost.

// A mutant is a rule that is left out on purpose; each has to be caught.
type mutant struct {
	noReconcile bool // a start that is not seen counts as lost while its bytes are still on their way
	noAsk       bool // inherited intents are treated like our own, and sent again
	noItemID    bool // an outcome that is said again has another id
	noWatermark bool // a start is found again by its id alone
	noOrder     bool // an outcome is said first and written then
	noFree      bool // what is over is asked for again under another key, whether anything was sent or not
}

// Small numbers that the model uses for words of the service.
var (
	mStatuses = []handoff.Status{"", handoff.StatusAccepted, handoff.StatusDispatching, handoff.StatusStarted,
		handoff.StatusCompleted, handoff.StatusDelivered}
	mOutcomes = []handoff.Outcome{"", handoff.OutcomeResult, handoff.OutcomeFailed, handoff.OutcomeInterrupted,
		handoff.OutcomeUnknown}
	mTurns = []handoff.TurnID{"", "turn-0", "turn-1", "foreign"}
	mMasks = []handoff.TurnID{"", "w1", "w2", "w3", "w4", "w5", "w6", "w7"}
)

// Indexes into the above.
const (
	stNone, stAccepted, stDispatching, stStarted, stCompleted, stDelivered = 0, 1, 2, 3, 4, 5
	ouResult, ouFailed, ouInterrupted, ouUnknown                           = 1, 2, 3, 4
)

// mEntry is a ledger entry.
type mEntry struct {
	status, owner, attempt, outcome uint8
	turn                            uint8 // index into mTurns
	mark                            uint8 // watermark: the turns that were there, as bits
	inherited                       bool
	down                            bool // it failed because the store took nothing
}

// Where a handoff stands in the memory of a router.
const (
	pcNone     = iota // not known to this life
	pcAsked           // the request came
	pcAccepted        // and is in the ledger
	pcGranted         // dispatching is in the ledger, nothing sent yet
	pcSent            // the start is written to the socket
	pcLost            // it cannot be told what became of it
	pcRejoin          // the turn is known, the agent is lost
	pcFollow          // the turn is known and watched
	pcEnded           // the outcome is known
	pcTell            // it has to be said
	pcSaid            // it is on its way to the voice model
	pcHeard           // it was said, the confirmation is on its way
	pcTold            // it was confirmed
	pcDone            // delivered
	pcDropped         // somebody else took over
	pcFound           // another life left it behind
)

// mWork is what one life of the router knows of one handoff.
type mWork struct {
	pc      uint8
	outcome uint8
	seen    bool   // the turn reported something
	written bool   // the outcome is in the ledger
	down    bool   // it failed because the store took nothing
	run     uint8  // 1 when it was asked for once more: then it has another owner
	again   bool   // it was, and nothing of that is written
	former  bool   // what the run before has to write comes first
	known   mEntry // the entry as last seen
}

// How a life of the router is.
const (
	lifeNone = iota
	lifeRuns
	lifePaused
	lifeDead
)

type mRouter struct {
	gen, life uint8
	conn      bool  // connected to the agent
	wire      uint8 // the start on its way there: 1 + request, or 0
	works     [2]mWork
}

// What can be wrong.
const (
	badStart   = 1 + iota // the same words ran twice
	badSpeech             // an outcome was said twice in one voice session
	badOutcome            // an outcome changed
	badHeard              // two different outcomes were heard
	badResult             // a result was told of work that did not end well
)

var badNames = []string{"", "started twice", "said twice", "outcome changed", "two outcomes heard", "a wrong result"}

// How a turn is.
const (
	turnNone = iota
	turnRuns
	turnEnded
	turnCut
)

// mState is the whole world.
type mState struct {
	ledger  [2]mEntry
	routers [2]mRouter
	gen     uint8    // of the newest life
	asked   uint8    // requests that came, as bits
	unasked uint8    // and those that never will
	again   uint8    // those that were asked for once more
	once    uint8    // those that never will be
	late    uint8    // those of which a former run may still write its end
	turns   [3]uint8 // the turns of the requests, and the foreign one
	noName  uint8    // turns whose id was not kept, as bits
	joined  [2]uint8 // 1 + the turn that took the words of a request in
	old     [2]uint8 // starts of lost connections that may still arrive, by request
	spoken  [2]uint8 // how often the outcome was said in this voice session
	heard   [2]uint8 // outcomes ever heard, as bits
	down    bool     // the store does not answer
	outage  bool     // it did not, once
	bad     uint8

	// Faults that may still come: all together, and of each kind.
	faults, crashes, pauses, cuts, agents, stores, voices, strangers, doubts uint8
}

// world is the beginning: at most so many faults, at most one of each kind.
func world(requests, faults uint8) mState {
	s := mState{
		gen: 1, asked: 3 &^ (1<<requests - 1), unasked: 3 &^ (1<<requests - 1), faults: faults, crashes: 1, pauses: 1,
		cuts: 1, agents: 1, stores: 1, voices: 1, strangers: 1, doubts: 1,
	}
	s.once = 3 &^ 1
	s.routers[0] = mRouter{gen: 1, life: lifeRuns, conn: true}
	return s
}

// A move is how one state follows another.
type move struct {
	name    string
	who, on int8
}

func (m move) String() string { return fmt.Sprintf("%s (router %d, request %d)", m.name, m.who, m.on) }

// model is one run of the search.
type model struct {
	ledgertest.Search[mState, move]
	mutant mutant
	memo   map[mAsked]mAnswer
}

// search visits every state, or stops at the first bad one.
func search(mut mutant, begin mState) *model {
	m := &model{mutant: mut, memo: map[mAsked]mAnswer{}}
	m.Visit(begin, func(s mState) {
		m.faults(s)
		m.outside(s)
		for p := range s.routers {
			if s.routers[p].life == lifeRuns {
				for i := range s.routers[p].works {
					m.work(s, p, i)
				}
			}
		}
	})
	return m
}

// emit adds a state that follows from the present one.
func (m *model) emit(s mState, how move, fault bool) {
	if fault {
		if s.faults == 0 {
			return
		}
		s.faults--
	}
	m.Add(s, how, fault, s.bad != 0)
}

// endsWell reports whether the state is a good end: both requests came, and each was answered for. One that was
// asked of a router which died before it wrote anything is not known to anybody, and never ran.
func (s mState) endsWell() bool {
	for i, e := range s.ledger {
		former := s.again&(1<<i) != 0 && e.owner < otherRun // who asked for that was told before they asked again
		told := e.status == stDelivered && (s.heard[i] != 0 || former)
		forgotten := e.status == stNone && s.turns[i] == turnNone && s.joined[i] == 0 && s.old[i] == 0
		if s.unasked&(1<<i) != 0 {
			continue
		}
		if s.asked&(1<<i) == 0 || !told && !(forgotten && !s.atWork(i)) {
			return false
		}
	}
	return true
}

// atWork reports whether a router still has to do something about a request.
func (s mState) atWork(i int) bool {
	for _, r := range s.routers {
		if pc := r.works[i].pc; (r.life == lifeRuns || r.life == lifePaused) && pc != pcNone && pc < pcDone {
			return true
		}
	}
	return false
}

// TestLedgerModel visits every state of two worlds: one request with any three faults, and two requests
// with any one. SWITCHBOARD_SOAK=1 adds a fault to both: minutes, and several gigabytes.
func TestLedgerModel(t *testing.T) {
	more := uint8(0)
	if os.Getenv("SWITCHBOARD_SOAK") != "" {
		more = 1
	}
	states := 0
	var outcomes, statuses uint
	for name, begin := range map[string]mState{"one request": world(1, 3+more), "two requests": world(2, 1+more)} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			m := search(mutant{}, begin)
			if m.Broken >= 0 {
				t.Fatalf("%s:\n%s", badNames[m.States[m.Broken].bad], m.Path(m.Broken))
			}
			if at := m.Lost(mState.endsWell); at >= 0 {
				t.Fatalf("lost:\n%s\n%+v", m.Path(at), m.States[at])
			}
			t.Logf("%d states, %d moves without a fault, in %v", len(m.States), m.Edges, time.Since(began))
			states += len(m.States)
			for key, answer := range m.memo {
				outcomes |= 1 << answer.entry.outcome
				statuses |= 1 << key.entry.status
			}
		})
	}
	if states < 50_000 {
		t.Errorf("only %d states", states)
	}
	if outcomes != 1<<len(mOutcomes)-1 || statuses != 1<<len(mStatuses)-1 {
		t.Errorf("some outcomes or statuses never came: %b, %b", outcomes, statuses)
	}
}

// TestLedgerMutants leaves out one rule at a time: the model must tell.
func TestLedgerMutants(t *testing.T) {
	for name, tt := range map[string]struct {
		mutant mutant
		bad    uint8
	}{
		"no reconcile": {mutant{noReconcile: true}, badStart},
		"no ask":       {mutant{noAsk: true}, badStart},
		"no item id":   {mutant{noItemID: true}, badSpeech},
		"no watermark": {mutant{noWatermark: true}, badStart},
		"no order":     {mutant{noOrder: true}, badHeard},
		"no free key":  {mutant{noFree: true}, badStart},
	} {
		t.Run(name, func(t *testing.T) {
			m := search(tt.mutant, world(2, 2))
			if m.Broken < 0 || m.States[m.Broken].bad != tt.bad {
				t.Fatalf("after %d states nothing that is %q", len(m.States), badNames[tt.bad])
			}
			t.Logf("%s after %d states:\n%s", badNames[tt.bad], len(m.States), m.Path(m.Broken))
		})
	}
}

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
