// Package sessionstest has the tests that every store of sessions must pass, over a function that opens one, and
// starts the real Redis that such tests need. It must not know any store: it uses stores through the interfaces of
// packages handoff and sessions, and through its own for methods that only the HTTP edge needs.
package sessionstest

import (
	"context"
	"io"
	"testing"

	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

// A Store has the methods of every store.
type Store interface {
	Ledger
	Edge
}

// An Edge has the methods that the HTTP edge needs.
type Edge interface {
	Credentials
	Front
}

// Credentials stores what logs people and programs in.
type Credentials interface {
	sessions.Logins
	Secrets
	Programs
}

// Programs stores apps and codes.
type Programs interface {
	sessions.Apps
	sessions.Codes
}

// A Front stores what fronts keep.
type Front interface {
	sessions.Conversations
	sessions.Documents
	Installation
}

// Installation stores the data that belongs to no caller.
type Installation interface {
	sessions.Machines
	sessions.Records
	sessions.Values
}

// A Ledger is what is kept of callers.
type Ledger interface {
	sessions.Memory
	ledger.History
	ledger.Owners
}

// contracts are the tests by subject and name. Each gets an empty store. Set once.
var contracts = map[string]map[string]func(*testing.T, Store){
	"callers": {
		"nothing": testNothing, "a batch of several": testBatch, "from another state": testOutdated, "twice": testRepeated,
		"a key that is not free": testNotFree, "for a time": testKeptFor, "one of many writes": testOneWriter,
		"callers are apart": testCallers, "odd words are kept": testWords, "nobody is refused": testNobody,
		"who made a thread": testOwned, "a random walk": testWalk,
	},
	"history": {
		"page by page": testPages, "search": testSearch, "found by its key": testFound, "no words": testUnkept,
		"callers are apart": testPastApart, "what cannot be read": testUnreadable,
	},
	"logins": {
		"one life": testLoginLife, "principals are apart": testLoginsApart, "ended is none": testLoginEnds,
		"minutes add up": testSpend,
	},
	"apps": {
		"one life": testAppLife, "principals are apart": testAppsApart, "ended is none": testAppEnds,
		"a credential is used once": testAppOnce, "a principal has so many": testAppsBounded,
	},
	"codes": {
		"is used once": testCodeOnce, "one has so many": testCodesBounded, "wrong ones void none": testWrongCodesVoidNone,
		"one of many gets it": testCodeOneWins,
	},
	"secrets": {
		"is found by its sum": testSecretFound, "ended is none": testSecretEnds,
		"a principal has so many": testSecretsBounded,
	},
	"conversations": {
		"pages": testSaidPages, "search": testSaidSearch, "is kept once and apart": testSaidOnce,
		"is bounded": testSaidBounded,
	},
	"machines": {
		"one life": testMachineLife, "what is no machine is refused": testNoMachines,
	},
	"records": {
		"one life": testRecordLife, "the first one stays": testRecordKept,
	},
	"values": {
		"as it was read": testValueChanged, "groups are apart": testValueGroups, "ended is none": testValueEnds,
		"a group has so many": testValuesBounded, "one of many changes it": testValueOneWins,
		"what is no value is refused": testNoValues,
	},
	"documents": {
		"is its owner's": testDocumentOwned, "ended is none": testDocumentEnds,
		"an owner has so many": testDocumentsBounded, "levels": testLevels,
		"calls that broke off": testBroken, "calls of the voice model's server": testCarried,
	},
}

// TestStore runs every contract. open returns an empty store that stays open until the test ends.
func TestStore(t *testing.T, open func(t *testing.T) Store) {
	for about, tests := range contracts {
		t.Run(about, func(t *testing.T) {
			for name, run := range tests {
				t.Run(name, func(t *testing.T) { run(t, open(t)) })
			}
		})
	}
}

// Opened opens a store and closes it when the test ends.
func Opened[S io.Closer](t testing.TB, open func(context.Context) (S, error)) S {
	t.Helper()
	s, err := open(t.Context())
	Must(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// Must fails the test at once if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Run runs a store. The returned function ends that and returns what Run returned.
func Run(t *testing.T, s interface{ Run(context.Context) error }) (ended func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return func() error { cancel(); return <-done }
}
