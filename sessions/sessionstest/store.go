// Package sessionstest holds what every store of sessions has to do, as tests over a factory, and starts
// the real Redis that such tests need. It must not know any store: it speaks to them through the
// interfaces of package handoff, and through its own for what only the edge asks.
package sessionstest

import (
	"context"
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
	Logins
	Secrets
}

// A Ledger is a ledger with its history.
type Ledger interface {
	ledger.Ledger
	ledger.History
}

// Logins are the logins of the page, and the minutes that callers spend.
type Logins interface {
	LoginKeeper
	DropLogin(ctx context.Context, principal, id string) (bool, error)
	Spend(ctx context.Context, name, day string, d time.Duration) (time.Duration, error)
}

// A LoginKeeper keeps logins.
type LoginKeeper interface {
	PutLogin(ctx context.Context, l sessions.Login) error
	Login(ctx context.Context, sum [32]byte) (sessions.Login, bool, error)
	Logins(ctx context.Context, principal string) ([]sessions.Login, error)
}

// TestStore runs every contract. open returns an empty store that lives until the test ends.
func TestStore(t *testing.T, open func(t *testing.T) Store) {
	t.Run("stickies", func(t *testing.T) {
		TestStickies(t, func(t *testing.T) handoff.Stickies { return open(t) })
	})
	t.Run("ledger", func(t *testing.T) {
		TestLedger(t, func(t *testing.T) ledger.Ledger { return open(t) })
	})
	t.Run("history", func(t *testing.T) {
		TestHistory(t, func(t *testing.T) Ledger { return open(t) })
	})
	t.Run("logins", func(t *testing.T) {
		TestLogins(t, func(t *testing.T) Logins { return open(t) })
	})
	t.Run("secrets", func(t *testing.T) {
		TestSecrets(t, func(t *testing.T) Secrets { return open(t) })
	})
}
