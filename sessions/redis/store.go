// Package redis is the store in a Redis. Package sessions says what a store remembers and promises.
//
// It must not know voice, servers or HTTP, nor the other store.
//
// # Concurrency
//
// A [Store] is safe for concurrent use. A change of more than one command is decided from what was read, and one Lua
// script writes it if that is still so; no other client sees half of it. Other scripts are for what needs the clock of
// the Redis, or bounds what a caller or a group may have. The Redis client never repeats a command: if only the answer
// was lost, a repeated command would count twice. A batch of a caller may be repeated: it is written once.
//
// # Failure
//
// While a Redis does not answer, errors have code unreachable and come within seconds, those of what callers keep
// within one. The store works again when the Redis is back. A Redis that refuses writes because it is full or has
// become a replica counts as not answering, and so does a Cluster that lacks a node. One process at a time uses a
// prefix: it holds a lease. Processes that share a prefix hold the lease together, and each caller belongs to one of
// them: see [Homes]. A Cluster is always shared.
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

// indexEvery bounds how long this life's index of callers may be missing after a Redis came back in an older state.
// After one came back empty, the next renewal of the lease restores the index.
const indexEvery = 10 * time.Second

// closeWithin bounds the release of the lease in Close.
const closeWithin = 2 * time.Second

// Config configures a [Store].
type Config struct {
	// URL of the Redis: "redis://[user:password@]host:port/db". With Sentinels it has the address of one Sentinel,
	// "?master_name=NAME", and "&addr=host:port" for each other one; more than half of these have to answer. For a
	// Cluster it has the address of one node and "?addr=host:port" for at least one other.
	URL string
	// Prefix begins every key; the default is "switchboard".
	Prefix string
	// HistoryFor is how long history is kept after it was heard, at least a millisecond; the default is
	// [sessions.HistoryFor].
	HistoryFor time.Duration
	// ThreadsFor is how long a thread is kept after its last turn; the default is [sessions.ThreadsFor], or HistoryFor
	// where that is longer.
	ThreadsFor time.Duration
	// Shared lets other instances with Shared use the prefix too: each writes for a caller only while it has the
	// caller's home; see [Homes]. A Cluster requires it.
	Shared bool
	// Lease is how long after this process was killed the store stays closed to others; the default is three seconds.
	// Tests shorten it.
	Lease time.Duration
	// Log gets warnings; the default discards them.
	Log *zap.Logger
}

// A Store stores what outlives a call. It implements
// [sessions.Callers] and [switchboard/handoff/ledger.History] and is safe for concurrent use.
type Store struct {
	*engine          // Set once
	sessions.Archive // Set once
	*sessions.Keyed  // Set once
	callers
	spent
	conversations
	documents
	values
	rates
	gates

	leaseToken chan struct{} // capacity 1; a token in it is the right to use the lease: of Run, then of Close
	stop       chan struct{} // closed by Close; ends Run
	close      func() error  // Set once; runs once
}

// newStore returns a store without a client.
func newStore(cfg Config) *Store {
	prefix := cmp.Or(cfg.Prefix, "switchboard")
	e := &engine{
		prefix: prefix, together: prefix, leaseFor: cmp.Or(cfg.Lease, leaseFor), within: commitWithin,
		log: cmp.Or(cfg.Log, zap.NewNop()), id: rand.Text(), shared: cfg.Shared, homes: homeSet{byName: map[string]*home{}},
	}
	e.historyFor, e.threadsFor = sessions.Kept(cfg.HistoryFor, cfg.ThreadsFor)
	s := &Store{
		engine: e, Archive: sessions.NewArchive(callers{e}, e.badEntry),
		Keyed: sessions.NewKeyed(values{e}, e.badEntry), callers: callers{e}, spent: spent{e},
		conversations: conversations{e}, documents: documents{e}, values: values{e}, rates: rates{e}, gates: gates{e},
		leaseToken: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	s.close = sync.OnceValue(func() error {
		close(s.stop)
		s.leaseToken <- struct{}{}
		ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
		defer cancel()
		err := s.lease.end(ctx)
		_ = s.hangUp() // the error of end says what matters
		<-s.leaseToken
		return err
	})
	goredis.SetLogger(silence{})
	return s
}

// Open opens the store and takes its lease. If the URL is malformed, or the Redis does not answer within three
// seconds, the error has code unreachable and names host and port. If another process uses the store, the error says
// what to do. The caller runs [Store.Run] and, after everything that uses the store has ended, [Store.Close].
func Open(ctx context.Context, cfg Config) (*Store, error) {
	s := newStore(cfg)
	if err := s.connect(ctx, cfg.URL); err != nil {
		return nil, err
	}
	if err := s.needsPeers(); err != nil {
		return nil, errors.Join(err, s.hangUp())
	}
	err := s.upgrade(ctx)
	if err == nil {
		s.lease = newLease(s.engine)
		err = s.lease.acquire(ctx)
	}
	if err != nil {
		return nil, errors.Join(s.needsCluster(err), s.hangUp())
	}
	if err := s.index(ctx, true); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Run renews the lease until the context ends or the store is closed; then it returns nil. It returns an error when
// another process has taken the lease: this one must end then. It goes on while a Redis does not answer.
func (s *Store) Run(ctx context.Context) error {
	select {
	case s.leaseToken <- struct{}{}:
		defer func() { <-s.leaseToken }()
	case <-s.stop:
		return nil
	}
	ticker := time.NewTicker(s.lease.every())
	defer ticker.Stop()
	for indexed := time.Now(); ; {
		if err := s.lease.tick(ctx); err != nil {
			return err
		}
		s.sentinels.leave(ctx)
		switch all := time.Since(indexed) >= indexEvery; {
		case s.lease.silent: // the index waits until the Redis answers
		case s.shared:
			s.followed(ctx)
		default:
			if err := s.index(ctx, all); err != nil {
				indexed = time.Time{} // try again next time
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

// Close ends [Store.Run], releases the lease and closes the connections. Further calls return the same error.
func (s *Store) Close() error { return s.close() }

// Metrics yields the counters of the store. Round trips are measured by its callers.
func (s *Store) Metrics() iter.Seq[handoff.Metric] {
	n := &s.counts
	return slices.Values([]handoff.Metric{
		handoff.NewMetric("switchboard_store_bad_entries_total",
			"Entries of the store that could not be read and were left out.", n.badEntries.Load()),
		handoff.NewMetric("switchboard_redis_renew_failures_total",
			"Renewals of the lease on Redis that got no answer.", n.renewErrors.Load()),
		handoff.NewMetric("switchboard_redis_leases_lost_total",
			"Leases on Redis that another process took over.", n.leasesLost.Load()),
		handoff.NewMetric("switchboard_redis_unconfirmed_total",
			"Writes to Redis that were refused because no replica confirmed them.", n.unconfirmed.Load()),
	})
}
