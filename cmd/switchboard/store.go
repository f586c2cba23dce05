package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
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

// backupVerb copies the file of a state directory.
func backupVerb(ctx context.Context, s *settings, state, to string, stdout io.Writer) error {
	if s.Redis.Reveal() != "" {
		return errors.New("what Switchboard remembers is in its Redis: back that up, as with redis-cli --rdb FILE")
	}
	to, err := filepath.Abs(to)
	if err == nil {
		err = sqlite.Backup(ctx, state, to)
	}
	if err == nil {
		_, err = fmt.Fprintf(stdout, "%s is a whole copy of what was written until now; keys, machines.pem and audit.jsonl in "+
			"%s are files of their own\n", to, state)
	}
	return err
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
