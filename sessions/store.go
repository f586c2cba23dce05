package sessions

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
)

const (
	// tickEvery is how often a snapshot is written when something changed, and how often the lease is
	// renewed: a third of its life, so that one lost renewal does no harm.
	tickEvery = time.Second
	// closeWithin bounds what Close does after the last tick.
	closeWithin = 2 * time.Second
)

// Config says where a [Store] keeps its keys.
type Config struct {
	// URL of a Redis, "redis://[user:password@]host:port/db"; "" uses the embedded one.
	URL string
	// StateDir is where the embedded Redis keeps its snapshot; it is made with mode 0700 if it is
	// missing. "" keeps nothing beyond the process. A real Redis does not use it.
	StateDir string
	// Prefix begins every key; "" means "switchboard".
	Prefix string
	// Log gets warnings; nil means none.
	Log *zap.Logger
}

// A Store keeps what outlives a call. It implements [switchboard/handoff.Stickies] and
// [switchboard/handoff.Ledger] and is safe for concurrent use.
type Store struct {
	prefix string        // Set once
	where  string        // Set once; names the Redis in errors, without a password
	log    *zap.Logger   // Set once
	client *redis.Client // Set once
	within time.Duration // Set once; bounds one round trip of the ledger
	keeper keeper        // Set once; used only by who holds the turn
	counts *counters     // Set once

	turn  chan struct{} // capacity 1; Run and then Close put a token in to use the keeper
	stop  chan struct{} // closed by Close; ends Run
	close func() error  // Set once; runs once
}

// A keeper does what has to be done from time to time so that the keys stay ours and stay.
type keeper interface {
	// tick runs about once a second. Its error ends the store.
	tick(ctx context.Context) error
	// end runs once, after the last tick, while the client still works.
	end(ctx context.Context) error
	// release runs once, after the client was closed.
	release()
}

// counters count what went wrong; anybody may add.
type counters struct {
	saves, saveErrors, renewErrors, leasesLost, badEntries atomic.Uint64
}

// Stats counts what a store did since it was opened.
type Stats struct {
	Saves       uint64 // snapshots written
	SaveErrors  uint64 // snapshots that could not be written
	RenewErrors uint64 // renewals of the lease that got no answer
	LeasesLost  uint64 // leases that another process took over
	BadEntries  uint64 // entries that could not be read and were left out
}

// Stats returns the counters.
func (s *Store) Stats() Stats {
	return Stats{
		Saves: s.counts.saves.Load(), SaveErrors: s.counts.saveErrors.Load(),
		RenewErrors: s.counts.renewErrors.Load(), LeasesLost: s.counts.leasesLost.Load(),
		BadEntries: s.counts.badEntries.Load(),
	}
}

// Open opens the store. A Redis URL that does not parse or does not answer within three seconds gives an
// error with code unreachable that names host and port. A store that another process uses, or a snapshot
// that cannot be read, gives an error that says what to do. The caller runs [Store.Run] and, after
// everything that uses the store has ended, [Store.Close].
func Open(ctx context.Context, cfg Config) (*Store, error) {
	s := &Store{
		prefix: cfg.Prefix, log: cfg.Log, counts: &counters{}, within: ledgerWithin,
		turn: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	if s.prefix == "" {
		s.prefix = "switchboard"
	}
	if s.log == nil {
		s.log = zap.NewNop()
	}
	s.close = sync.OnceValue(s.shut)
	redis.SetLogger(silence{})
	open := s.openEmbedded
	where := cfg.StateDir
	if cfg.URL != "" {
		open, where = s.openRedis, cfg.URL
	}
	if err := open(ctx, where); err != nil {
		return nil, err
	}
	return s, nil
}

// Run writes snapshots of the embedded Redis, or renews the lease on a real one, until the context ends
// or the store is closed; then it returns nil. It returns an error when another process has taken the
// lease: this one must end then. A Redis that does not answer is waited for.
func (s *Store) Run(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-s.stop:
		return nil
	}
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		if err := s.keeper.tick(ctx); err != nil {
			return err
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

// Close ends [Store.Run], writes the last snapshot or gives the lease back, and closes the connections.
// Its error says what was not kept. A second Close returns the same.
func (s *Store) Close() error { return s.close() }

func (s *Store) shut() error {
	close(s.stop)
	s.turn <- struct{}{}
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	err := s.keeper.end(ctx)
	_ = s.client.Close() // what matters was said by end
	s.keeper.release()
	<-s.turn
	return err
}
