package main

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/threads"
	"switchboard/sessions"
	"switchboard/sessions/redis"
	"switchboard/sessions/sqlite"
	"switchboard/web"
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
	pastStore
}

// pastStore is what the ledger keeps beside its entries.
type pastStore interface {
	ledger.History
	ledger.Owners
}

// edgeStore is what the edge needs of a store.
type edgeStore interface {
	credentialStore
	frontStore
}

// credentialStore is who may come in.
type credentialStore interface {
	sessions.Logins
	web.Secrets
	entryStore
}

// entryStore is what programs and pages come in with before they have a credential that lasts.
type entryStore interface {
	sessions.Apps
	sessions.Codes
}

// frontStore is what fronts keep.
type frontStore interface {
	sessions.Conversations
	sessions.Documents
	ownStore
}

// ownStore is what is no caller's.
type ownStore interface {
	sessions.Machines
	sessions.Records
}

// An edgeMemory is a store for the edge: who deletes what they said and heard deletes also what calls know of it.
type edgeMemory struct {
	store
	broken *sessions.BrokenCalls
}

// DropSaid implements [sessions.Conversations].
func (m edgeMemory) DropSaid(ctx context.Context, c handoff.Caller) error {
	m.broken.Forget(c)
	return m.store.DropSaid(ctx, c)
}

// stageStore is what the service does with a store.
type stageStore interface {
	Run(ctx context.Context) error
	Close() error
	Threads() threads.Store
}

// redisLease is how long a Redis is kept from others after its Switchboard was killed; 0 is the store's own. TestMain
// alone sets it, before anything runs.
var redisLease time.Duration

// openStore opens the store of a plan.
func openStore(ctx context.Context, p plan, log *zap.Logger) (store, error) {
	keep := time.Duration(p.History.Keep)
	if address := p.Redis.Reveal(); address != "" {
		s, err := redis.Open(ctx, redis.Config{
			URL: address, HistoryFor: keep, Shared: p.Peers.set(), Lease: redisLease, Log: log,
		})
		switch {
		case err == nil:
			return s, nil
		case handoff.AsError(err).Code == handoff.CodeUnreachable: // the vocabulary's advice is about machines
			return nil, errors.New(words(err) + " Start it, or correct its address (--redis, REDIS_URL or redis in " +
				"the file); without an address Switchboard remembers in a file.")
		}
		return nil, err
	}
	s, err := sqlite.Open(ctx, sqlite.Config{Dir: p.StateDir, HistoryFor: keep, Log: log})
	if err != nil {
		return nil, err
	}
	return s, nil
}
