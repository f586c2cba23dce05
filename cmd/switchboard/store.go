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
	"switchboard/web/metrics"
)

// A store persists everything: the Redis of the settings, or else a file in the state directory.
type store interface {
	// for the router
	sessions.Callers
	ledger.History
	ledger.Owners

	// for the edge: logins and programs, and what callers said and keep
	sessions.Logins
	sessions.Codes
	sessions.Apps
	web.Secrets
	sessions.Conversations
	sessions.Documents

	// for the service itself
	metrics.Source
	sessions.Machines
	sessions.Records
	Threads() threads.Store
	Run(ctx context.Context) error
	Close() error
}

// An edgeMemory is the store for the edge. Deleting a caller's conversation there also deletes it from broken calls.
type edgeMemory struct {
	store
	broken *sessions.BrokenCalls
}

// DropSaid implements [sessions.Conversations].
func (m edgeMemory) DropSaid(ctx context.Context, c handoff.Caller) error {
	m.broken.Forget(c)
	return m.store.DropSaid(ctx, c)
}

// redisLease is how long no other Switchboard can use a Redis after its Switchboard was killed; 0 means the default of
// the package redis. Only TestMain sets it, before anything runs.
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
