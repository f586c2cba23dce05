package main

import (
	"context"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
	"switchboard/sessions/redis"
	"switchboard/sessions/sqlite"
)

// A store is what remembers: the Redis that is named, else a file in the state directory.
type store interface {
	routerStore
	edgeStore
	stageStore
}

// routerStore is what the router needs of a store.
type routerStore interface {
	handoff.Stickies
	ledger.Ledger
	ledger.History
}

// edgeStore is what the edge needs of a store.
type edgeStore interface {
	keyStore
	DropLogin(ctx context.Context, principal, id string) (bool, error)
	Spend(ctx context.Context, name, day string, d time.Duration) (time.Duration, error)
}

// keyStore keeps what stands for a key.
type keyStore interface {
	loginStore
	secretStore
}

// loginStore keeps the logins of the page.
type loginStore interface {
	PutLogin(ctx context.Context, l sessions.Login) error
	Login(ctx context.Context, sum [32]byte) (sessions.Login, bool, error)
	Logins(ctx context.Context, principal string) ([]sessions.Login, error)
}

// secretStore keeps client secrets.
type secretStore interface {
	PutSecret(ctx context.Context, secret sessions.Secret) (bool, error)
	Secret(ctx context.Context, sum [32]byte) (sessions.Secret, bool, error)
}

// stageStore is what the service does with a store.
type stageStore interface {
	Run(ctx context.Context) error
	Close() error
}

// openStore opens the store of a plan.
func openStore(ctx context.Context, p plan, log *zap.Logger) (store, error) {
	if p.Redis != "" {
		s, err := redis.Open(ctx, redis.Config{URL: p.Redis, HistoryFor: p.History, Log: log})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	s, err := sqlite.Open(ctx, sqlite.Config{Dir: p.StateDir, HistoryFor: p.History, Log: log})
	if err != nil {
		return nil, err
	}
	return s, nil
}
