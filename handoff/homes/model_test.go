package homes

import (
	"fmt"
	"os"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger/ledgertest"
)

// The model: every order of events of two instances, one caller and one piece of work that is asked for up to twice
// under its key, with faults. What an instance does about its home is asked of [Verify], and what a step of the ledger
// makes of [ledger.Entry.Apply]; modelled are the scripts of the store, its replica, and what time lets happen. Of time
// it takes what TestNobodyActsOnWhatIsTaken shows: one is held for dead by an instance that reaches the store, after it
// has ceased to act itself. The model of package router goes further within a home.

// A mutant is a rule that is left out on purpose; each has to be caught.
type mutant struct {
	noWait              bool // what was promised may not be at the replica
	noSelf              bool // an instance acts although others may have taken its homes
	noEpoch             bool // the store takes steps of the ledger from a former home
	unfencedSticky      bool // it takes sticky sessions from a former home
	deadWithoutOwnBeats bool // time counts in which whoever holds others for dead did not reach the store
	indexAfterHome      bool // a home is taken before the caller is in the index of the instance
	releaseBeforeFlush  bool // a home is free before what belongs to it is written
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

// mEntry is the entry of the work.
type mEntry struct {
	status, outcome, owner uint8
	inherited, sent, turn  bool
	down                   bool // its outcome is that the store was away
}

// mKept is what the store has, or its replica.
type mKept struct {
	id, epoch uint8 // who has the home: 1 + the instance; 0: it is free
	index     uint8 // instances in whose index the caller is, as bits
	entry     mEntry
	sticky    uint8 // the choice that was written
}

// Where the work stands at an instance.
const (
	pcNone    = iota // nothing is open here
	pcAsked          // it was asked for
	pcGranted        // the ledger has that it is about to be sent
	pcSettle         // another home was about to send it
	pcFollow         // its turn runs
	pcEnded          // the outcome is known
	pcTold           // and was told, and is not written yet
)

// mInstance is one of the two.
type mInstance struct {
	life          uint8 // of mRuns, mPaused, mDead
	cut           bool  // it does not reach the store
	fresh, lapsed bool  // see [Neighbours.MayAct]
	holdsDead     bool  // it holds the other for dead
	epoch         uint8 // of its home; 0: it has none
	pc            uint8
	run           uint8 // who owns the work in the ledger
	outcome       uint8
	down, started bool  // of the outcome; the start of its turn is in the ledger
	choice        uint8 // a sticky session on its way to the store; 0: none
	over          bool  // the home was let go of before that was written
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
	runs          uint8
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
	ledgertest.Search[mState, move]
	mutant
	memo  map[mAsked]mAnswer
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
	s.in[0].epoch, s.epochs, s.replica = 1, 1, s.kept
	return s
}

// search visits every state, or stops at the first bad one.
func search(mut mutant, begin mState) *model {
	m := &model{mutant: mut, memo: map[mAsked]mAnswer{}}
	m.Visit(begin, func(s mState) {
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
	m.Add(s, move{name, i}, fault, s.bad != 0)
}

// endsWell reports whether the state is a good end: the ledger has nothing open and nobody is at work.
func (s mState) endsWell() bool {
	e := s.kept.entry.status
	return (e == stNone || e == stDelivered || s.told != 0) && s.asked == 2 && s.in[0].pc == pcNone && s.in[1].pc == pcNone
}

// TestModel visits every state of three worlds. SWITCHBOARD_SOAK=1 adds a fault to each: half a minute.
func TestModel(t *testing.T) {
	more := uint8(0)
	if os.Getenv("SWITCHBOARD_SOAK") != "" {
		more = 1
	}
	for name, begin := range map[string]mState{
		"asked once": mWorld(1, 0, 2+more), "asked twice": mWorld(2, 0, 1+more), "sessions chosen": mWorld(0, 2, 2+more),
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			m := search(mutant{}, begin)
			if m.Broken >= 0 {
				t.Fatalf("%s:\n%s\n%+v", badNames[m.States[m.Broken].bad], m.Path(m.Broken), m.States[m.Broken])
			}
			if at := m.Lost(mState.endsWell); at >= 0 {
				t.Fatalf("lost:\n%s\n%+v", m.Path(at), m.States[at])
			}
			t.Logf("%d states, %d moves without a fault, in %v", len(m.States), m.Edges, time.Since(began))
			if len(m.States) < 10_000 || m.taken == 0 {
				t.Errorf("only %d states, %d homes taken", len(m.States), m.taken)
			}
		})
	}
}

// TestModelMutants leaves out one rule at a time: the model must tell.
func TestModelMutants(t *testing.T) {
	work, sessions := mWorld(2, 0, 2), mWorld(0, 2, 2)
	for name, tt := range map[string]struct {
		mutant mutant
		begin  mState
		bad    uint8 // 0: something is lost
	}{
		"no wait":                {mutant{noWait: true}, work, badStart},
		"no self":                {mutant{noSelf: true}, work, badLate},
		"no epoch":               {mutant{noEpoch: true}, mWorld(1, 0, 1), 0},
		"unfenced sticky":        {mutant{unfencedSticky: true}, sessions, badSticky},
		"dead without own beats": {mutant{deadWithoutOwnBeats: true}, sessions, badTaken},
		"index after home":       {mutant{indexAfterHome: true}, mWorld(1, 0, 1), 0},
		"release before flush":   {mutant{releaseBeforeFlush: true}, sessions, badLost},
	} {
		t.Run(name, func(t *testing.T) {
			m := search(tt.mutant, tt.begin)
			at, bad := m.Broken, uint8(0)
			if at >= 0 {
				bad = m.States[at].bad
			} else {
				at = m.Lost(mState.endsWell)
			}
			if at < 0 || bad != tt.bad {
				t.Fatalf("after %d states nothing that is %q: %q", len(m.States), badNames[tt.bad], badNames[bad])
			}
			t.Logf("%s after %d states:\n%s", badNames[bad], len(m.States), m.Path(at))
		})
	}
}
