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
	// of the router
	handoff.Stickies
	ledger.Ledger
	ledger.History
	ledger.Owners

	// of the edge: who may come in, and what callers keep
	sessions.Logins
	sessions.Codes
	sessions.Apps
	web.Secrets
	sessions.Conversations
	sessions.Documents

	// of the service itself
	sessions.Machines
	sessions.Records
	Threads() threads.Store
	Run(ctx context.Context) error
	Close() error
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
