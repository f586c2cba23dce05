// Package sessionstest holds what every store of sessions has to do, as tests over a factory, and starts
// the real Redis that such tests need. It must not know any store: it speaks to them through the
// interfaces of package handoff, and through its own for what only the edge asks.
package sessionstest

import (
	"context"
	"io"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

// A Store is what every store does.
type Store interface {
	handoff.Stickies
	Ledger
	Edge
}

// An Edge is what the edge asks of a store.
type Edge interface {
	sessions.Logins
	Secrets
	Front
}

// A Front is what fronts keep.
type Front interface {
	sessions.Conversations
	sessions.Documents
}

// A Ledger is a ledger with its history.
type Ledger interface {
	ledger.Ledger
	ledger.History
	ledger.Owners
}

// TestStore runs every contract. open returns an empty store that lives until the test ends.
func TestStore(t *testing.T, open func(t *testing.T) Store) {
	for name, run := range map[string]func(*testing.T, func(*testing.T) Store){
		"stickies": testStickies, "ledger": testLedger, "history": testHistory, "logins": testLogins,
		"conversations": testConversations, "documents": testDocuments, "secrets": testSecrets,
	} {
		t.Run(name, func(t *testing.T) { run(t, open) })
	}
}

// Opened opens a store that is closed with the test.
func Opened[S io.Closer](t testing.TB, open func(context.Context) (S, error)) S {
	t.Helper()
	s, err := open(t.Context())
	must(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// Sticky is a sticky thread of [Owner].
var Sticky = handoff.Sticky{
	Target: handoff.Target{Server: "bigpc", Project: "api", Thread: "thread-1"}, Title: "auth refactor",
	Named: true, Since: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC),
}

// Owner is the caller of most tests.
var Owner = owner

// must ends a test that cannot go on after err.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
