// Package redis remembers in a Redis what outlives a call; see package sessions for what that is and for
// what a store promises.
//
// It must not know voice, servers or HTTP, nor the other store.
//
// # Concurrency
//
// A [Store] is safe for concurrent use. Every change that takes more than one command is one Lua script,
// so that no other client sees half of it. The Redis client never repeats a command: a repeated command
// whose first answer was lost may count twice. Whoever asked for a step of the ledger may repeat it.
//
// # Failure
//
// A Redis that does not answer gives errors with code unreachable within seconds, the ledger within one
// second, and works again when it is back. One that answers and takes nothing, because it is full or has
// become a replica, counts as one that does not answer; so does a Cluster where it lacks a node. One process at a time
// uses a prefix: it holds a lease. Processes that share a prefix hold it together, and each caller has one of them: see
// [Homes]. In a Cluster they always do.
package redis

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/sessions"
)

// indexEvery is how long this life's index of callers may be missing after a Redis came back as it was a while ago. One
// that came back empty has it after a renewal of the lease.
const indexEvery = 10 * time.Second

// closeWithin bounds what Close does after the last tick.
const closeWithin = 2 * time.Second

// Config says where a [Store] keeps its keys.
type Config struct {
	// URL of the Redis, "redis://[user:password@]host:port/db"; where Sentinels know which one it is, the address of
	// one of them, with "?master_name=NAME" and "&addr=host:port" for each other; of a Cluster, that of a node, with
	// "?addr=host:port" for each other that may be asked for the rest, one at least.
	URL string
	// Prefix begins every key; "" means "switchboard".
	Prefix string
	// HistoryFor is how long history is kept after it was heard, at least a millisecond; 0 means
	// [sessions.HistoryFor].
	HistoryFor time.Duration
	// ThreadsFor is how long a thread is kept after its last turn; 0 means [sessions.ThreadsFor], or HistoryFor where
	// that is longer.
	ThreadsFor time.Duration
	// Shared lets other instances with Shared use the prefix too: what is of a caller is written only while this one
	// has their home; see [Homes]. A Cluster takes no others.
	Shared bool
	// Lease is how long the store is kept from others after its process was killed; 0 means three seconds. Tests
	// shorten it.
	Lease time.Duration
	// Log gets warnings; nil means none.
	Log *zap.Logger
}

// A Store keeps what outlives a call. It implements [switchboard/handoff.Stickies],
// [switchboard/handoff/ledger.Ledger] and [switchboard/handoff/ledger.History] and is safe for concurrent use.
type Store struct {
	*engine // Set once
	handoffs
	stickies
	credentials
	conversations
	documents
	machines
	apps
	codes
	records
	rates
	gates

	turn  chan struct{} // capacity 1; Run and then Close put a token in to use the lease
	stop  chan struct{} // closed by Close; ends Run
	close func() error  // Set once; runs once
}

// newStore returns a store without its client.
func newStore(cfg Config) *Store {
	prefix := cmp.Or(cfg.Prefix, "switchboard")
	e := &engine{
		prefix: prefix, together: prefix, leaseFor: cmp.Or(cfg.Lease, leaseFor), within: ledgerWithin,
		log: cmp.Or(cfg.Log, zap.NewNop()), id: rand.Text(), shared: cfg.Shared, held: held{of: map[string]*heldHome{}},
	}
	e.historyFor, e.threadsFor = sessions.Kept(cfg.HistoryFor, cfg.ThreadsFor)
	s := &Store{
		engine: e, handoffs: handoffs{e}, stickies: stickies{e}, credentials: credentials{e},
		conversations: conversations{e}, documents: documents{e}, machines: machines{e}, apps: apps{e}, codes: codes{e},
		records: records{e}, rates: rates{e}, gates: gates{e},
		turn: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	s.close = sync.OnceValue(func() error {
		close(s.stop)
		s.turn <- struct{}{}
		ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
		defer cancel()
		err := s.lease.end(ctx)
		_ = s.client.Close() // what matters was said by end
		<-s.turn
		return err
	})
	goredis.SetLogger(silence{})
	return s
}

// Open opens the store and takes its lease. A URL that does not parse or does not answer within three seconds
// gives an error with code unreachable that names host and port. A store that another process uses gives an
// error that says what to do. The caller runs [Store.Run] and, after everything that uses the store has ended,
// [Store.Close].
func Open(ctx context.Context, cfg Config) (*Store, error) {
	s := newStore(cfg)
	if err := s.connect(ctx, cfg.URL); err != nil {
		return nil, err
	}
	if err := s.needsPeers(); err != nil {
		return nil, errors.Join(err, s.client.Close())
	}
	s.lease = newLease(s.engine)
	if err := s.lease.acquire(ctx); err != nil {
		return nil, errors.Join(s.needsCluster(err), s.client.Close())
	}
	err := s.former(ctx)
	if err == nil {
		err = s.index(ctx, true)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Run renews the lease until the context ends or the store is closed; then it returns nil. It returns an error
// when another process has taken the lease: this one must end then. A Redis that does not answer is waited for.
func (s *Store) Run(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-s.stop:
		return nil
	}
	ticker := time.NewTicker(s.lease.every())
	defer ticker.Stop()
	for indexed := time.Now(); ; {
		if err := s.lease.tick(ctx); err != nil {
			return err
		}
		switch all := time.Since(indexed) >= indexEvery; {
		case s.lease.silent: // it is told when it answers
		case s.shared:
			s.followed(ctx)
		default:
			if err := s.index(ctx, all); err != nil {
				indexed = time.Time{} // it is told next time
			} else if all {
				indexed = time.Now()
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		case <-s.stop:
			return nil
		}
	}
}

// Close ends [Store.Run], gives the lease back and closes the connections. A second Close returns the same.
func (s *Store) Close() error { return s.close() }

// Metrics yields what the store counts of itself. Its round trips are counted by who waits for them.
func (s *Store) Metrics() iter.Seq[handoff.Metric] {
	n := &s.counts
	return slices.Values([]handoff.Metric{
		handoff.NewMetric("switchboard_store_bad_entries_total",
			"Entries of the store that could not be read and were left out.", n.badEntries.Load()),
		handoff.NewMetric("switchboard_redis_renew_failures_total",
			"Renewals of the lease on Redis that got no answer.", n.renewErrors.Load()),
		handoff.NewMetric("switchboard_redis_leases_lost_total",
			"Leases on Redis that another process took over.", n.leasesLost.Load()),
	})
}
