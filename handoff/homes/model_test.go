package homes

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"switchboard/handoff"
)

// The model: every order of events of two instances, one caller and one piece of work that is asked for up to twice
// under its key, with faults. What an instance does about its home is asked of [Verify], and whether a key is free
// again of [ledger.Entry.Free]; modelled are the store, which takes a batch if the home is not another's by now and the
// state is the one that the batch was decided from, its replica, and what time lets happen. Of time it takes what
// TestNobodyActsOnWhatIsTaken shows: one is held for dead by an instance that reaches the store, after it has ceased to
// act itself. What happens within a home is in the model of package work.

// A mutant is a rule that is left out on purpose; each has to be caught.
type mutant struct {
	noWait              bool // what was promised may not be at the replica
	noSelf              bool // an instance acts although others may have taken its homes
	noFence             bool // the store takes batches from a former home
	deadWithoutOwnBeats bool // time counts in which whoever holds others for dead did not reach the store
	indexAfterHome      bool // a home is taken before the caller is in the index of the instance
	releaseBeforeFlush  bool // a home is free before what belongs to it is written
	releaseUnread       bool // a home is free before its open work was read
	readBeforeHome      bool // the store is read before the home is taken
	opensOthers         bool // it is read although others may have taken the home
}

// Small numbers that the model uses for words of the service.
var (
	mStatuses = []handoff.Status{"", handoff.StatusDispatching, handoff.StatusStarted, handoff.StatusCompleted,
		handoff.StatusDelivered}
	mOutcomes = []handoff.Outcome{"", handoff.OutcomeResult, handoff.OutcomeFailed, handoff.OutcomeUnknown}
)

// Indexes into the above.
const (
	stNone, stDispatching, stStarted, stCompleted, stDelivered = 0, 1, 2, 3, 4
	ouNone, ouResult, ouFailed, ouUnknown                      = 0, 1, 2, 3
)

// mEntry is the work, as the store or a home has it.
type mEntry struct {
	status, outcome uint8
	sent, turn      bool
	down            bool // its outcome is that the store was away
}

// mKept is what the store has, or its replica.
type mKept struct {
	id, epoch uint8 // who has the home: 1 + the instance; 0: it is free
	index     uint8 // instances in whose index the caller is, as bits
	version   uint8 // of what follows; 0: there is nothing
	entry     mEntry
	sticky    uint8 // the choice that was written
}

// Where the work stands at an instance.
const (
	pcNone    = iota // nothing is to be done
	pcAsked          // the store is to have that it is about to be sent
	pcGranted        // the store has that
	pcSettle         // another home was about to send it
	pcFollow         // its turn runs
	pcEnded          // the outcome is known
)

// mInstance is one of the two.
type mInstance struct {
	life          uint8 // of mRuns, mPaused, mDead
	cut           bool  // it does not reach the store
	fresh, lapsed bool  // see [Neighbours.MayAct]
	holdsDead     bool  // it holds the other for dead
	epoch         uint8 // of its home; 0: it has none
	mHome
}

// mHome is what a home knows of the caller.
type mHome struct {
	open      bool // the store was read
	closed    bool // the store takes nothing more
	over      bool // the home was let go of before all was written
	version   uint8
	pc        uint8
	entry     mEntry
	choice    uint8 // the sticky session
	workDirty bool  // the work is to be written
	pickDirty bool  // the sticky session is
	free      bool  // the key of the work must not be in the past
}

const mRuns, mPaused, mDead = 0, 1, 2

// What can be wrong.
const (
	badStart  = 1 + iota // the same words ran twice
	badLate              // they were sent after it was told that nobody knows of them
	badSticky            // an older choice is written over a newer one
	badLost              // what was acknowledged is lost although nothing failed
	badTaken             // a home is taken from an instance at which nothing failed
)

var badNames = []string{"lost", "started twice", "started late", "a newer choice overwritten",
	"a choice lost", "taken from the living"}

const turnNone, turnRuns, turnEnded = 0, 1, 2

// mState is the whole world.
type mState struct {
	kept, replica mKept
	in            [2]mInstance
	epochs        uint8 // given so far
	asked, chosen uint8
	failed        uint8 // instances at which something failed, as bits
	turn          uint8
	told          uint8 // outcomes, as bits
	away          bool  // the store does not answer
	releases      uint8 // that may still come
	bad           uint8

	// Faults that may still come: all together, and of each kind.
	faults, kills, pauses, cuts, outages, failovers uint8
}

// reaches reports whether an instance reaches the store.
func (s *mState) reaches(i int) bool { return s.in[i].life == mRuns && !s.in[i].cut && !s.away }

// A model is one run of the search.
type model struct {
	mSearch
	mutant
	taken int // homes of the other that were taken, over all paths
}

// A move is how one state follows another.
type move struct {
	name string
	at   int // the instance; -1: none
}

func (m move) String() string { return fmt.Sprintf("%s (instance %d)", m.name, m.at) }

// mWorld is the beginning, in which one instance has the home: how often the work is asked for and a session is chosen,
// and how many faults there may be, at most one of each kind.
func mWorld(asked, chosen, faults uint8) mState {
	s := mState{
		asked: 2 - asked, chosen: 2 - chosen, releases: 1,
		faults: faults, kills: 1, pauses: 1, cuts: 1, outages: 1, failovers: 1,
	}
	s.in[0].fresh, s.in[1].fresh = true, true
	s.kept.id, s.kept.epoch, s.kept.index = 1, 1, 1
	s.in[0].epoch, s.in[0].open, s.epochs, s.replica = 1, true, 1, s.kept
	return s
}

// search visits every state, or stops at the first bad one.
func search(mut mutant, begin mState) *model {
	m := &model{mutant: mut}
	m.visit(begin, func(s mState) {
		m.store(s)
		for i := range s.in {
			m.fault(s, i)
			if s.in[i].life == mRuns {
				m.neighbour(s, i)
				m.home(s, i)
				m.work(s, i)
			}
		}
	})
	return m
}

func (m *model) emit(name string, i int, fault bool, s mState) {
	if fault {
		if s.faults == 0 {
			return
		}
		s.faults--
	}
	if s.faults == 0 { // what cannot happen any more tells no states apart
		s.kills, s.pauses, s.cuts, s.outages, s.failovers = 0, 0, 0, 0, 0
	}
	if s.failovers == 0 {
		s.replica = mKept{}
	}
	s.renumber()
	m.add(s, move{name, i}, fault, s.bad != 0)
}

// renumber gives versions the smallest numbers: only whether two are the same counts.
func (s *mState) renumber() {
	var known []uint8
	for _, v := range []*uint8{&s.kept.version, &s.replica.version, &s.in[0].version, &s.in[1].version} {
		if *v == 0 {
			continue
		}
		if !slices.Contains(known, *v) {
			known = append(known, *v)
		}
		*v = 1 + uint8(slices.Index(known, *v))
	}
}

// endsWell reports whether the state is a good end: the store has nothing open, nobody is at work and everything is
// written.
func (s mState) endsWell() bool {
	e, done := s.kept.entry.status, s.asked == 2
	for _, in := range s.in {
		done = done && in.pc == pcNone && !in.workDirty && !in.pickDirty
	}
	return done && (e == stNone || e == stDelivered || s.told != 0)
}

// TestHomesModel visits every state of three worlds. SWITCHBOARD_SOAK=1 adds a fault to each: half a minute.
func TestHomesModel(t *testing.T) {
	more := uint8(0)
	if os.Getenv("SWITCHBOARD_SOAK") != "" {
		more = 1
	}
	for name, begin := range map[string]mState{
		"asked once": mWorld(1, 0, 2+more), "asked twice": mWorld(2, 0, 2+more), "sessions chosen": mWorld(0, 2, 2+more),
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			m := search(mutant{}, begin)
			if m.broken >= 0 {
				t.Fatalf("%s:\n%s\n%+v", badNames[m.states[m.broken].bad], m.path(m.broken), m.states[m.broken])
			}
			if at := m.lost(mState.endsWell); at >= 0 {
				t.Fatalf("lost:\n%s\n%+v", m.path(at), m.states[at])
			}
			t.Logf("%d states, %d moves without a fault, in %v", len(m.states), m.edges, time.Since(began))
			if len(m.states) < 10_000 || m.taken == 0 {
				t.Errorf("only %d states, %d homes taken", len(m.states), m.taken)
			}
		})
	}
}

// TestHomesMutants leaves out one rule at a time: the model must tell.
func TestHomesMutants(t *testing.T) {
	work, sessions := mWorld(2, 0, 2), mWorld(0, 2, 2)
	for name, tt := range map[string]struct {
		mutant mutant
		begin  mState
		bad    uint8 // 0: something is lost
	}{
		"no wait":                {mutant{noWait: true}, work, badStart},
		"no self":                {mutant{noSelf: true}, work, badLate},
		"no fence":               {mutant{noFence: true}, work, badLate},
		"no fence for sessions":  {mutant{noFence: true}, sessions, badSticky},
		"dead without own beats": {mutant{deadWithoutOwnBeats: true}, sessions, badTaken},
		"index after home":       {mutant{indexAfterHome: true}, mWorld(1, 0, 1), 0},
		"release before flush":   {mutant{releaseBeforeFlush: true}, sessions, badLost},
		"release unread":         {mutant{releaseUnread: true}, mWorld(1, 0, 1), 0},
		"read before home":       {mutant{readBeforeHome: true}, work, badLate},
		"opens others":           {mutant{opensOthers: true}, work, badLate},
	} {
		t.Run(name, func(t *testing.T) {
			m := search(tt.mutant, tt.begin)
			at, bad := m.broken, uint8(0)
			if at >= 0 {
				bad = m.states[at].bad
			} else {
				at = m.lost(mState.endsWell)
			}
			if at < 0 || bad != tt.bad {
				t.Fatalf("after %d states nothing that is %q: %q", len(m.states), badNames[tt.bad], badNames[bad])
			}
			t.Logf("%s after %d states:\n%s", badNames[bad], len(m.states), m.path(at))
		})
	}
}
