// Package sqlite is the store in one SQLite file of the state directory, used when no Redis is configured. Package
// sessions says what a store remembers and promises.
//
// It must not know voice, servers or HTTP, nor the other store.
//
// # Concurrency
//
// A [Store] is safe for concurrent use. One connection writes, a few read, and one more makes checkpoints, which move
// changes from the write-ahead log into the file, and the daily copy. A batch of a caller is one transaction. Each
// subject is a type of its own on the one open file.
//
// # Failure
//
// What was acknowledged survives the end of the process at any instant; a power cut may lose the last two seconds.
// While the disk is full or fails, or another program locks the file, errors have code unreachable. A damaged file is
// refused with an error that names the newest copy. A lock on the state directory keeps a second process out.
package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/sessions"
)

const (
	// fileName is the name of the database file in the state directory.
	fileName = "switchboard.db"

	tickEvery = time.Second
)

// Config configures a [Store].
type Config struct {
	// Dir is the state directory; it is made with mode 0700 if it is missing.
	Dir string
	// HistoryFor is how long history is kept after it was heard; the default is [sessions.HistoryFor].
	HistoryFor time.Duration
	// ThreadsFor is how long a thread is kept after its last turn; the default is [sessions.ThreadsFor], or HistoryFor
	// where that is longer.
	ThreadsFor time.Duration
	// Log gets warnings; the default discards them.
	Log *zap.Logger
}

// A Store stores what outlives a call. It implements
// [sessions.Callers] and [switchboard/handoff/ledger.History] and is safe for concurrent use.
type Store struct {
	*file            // Set once
	sessions.Archive // Set once
	*sessions.Keyed  // Set once
	callers
	spent
	conversations
	documents
	values
	upkeep

	upkeepToken chan struct{} // capacity 1; a token in it is the right to do the upkeep: of Run, then of Close
	close       func() error  // Set once; runs once
}

// Open locks the state directory and opens its file, which it makes with mode 0600 if it is missing. It refuses a
// directory that another process uses or that is on a network file system, and a file that is damaged or of a newer
// version; the error says what to do. The caller runs [Store.Run] and, after everything that uses the store has ended,
// [Store.Close].
func Open(ctx context.Context, cfg Config) (*Store, error) {
	path, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("find the state directory: %w", err)
	}
	dir, err := sessions.HoldDir(path)
	if err != nil {
		return nil, err
	}
	f := &file{
		dir: dir, path: filepath.Join(path, fileName), log: cmp.Or(cfg.Log, zap.NewNop()),
		writer: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	s := &Store{
		file: f, callers: callers{file: f}, spent: spent{f},
		conversations: conversations{f}, documents: documents{f}, values: values{f},
		upkeep: upkeep{file: f}, upkeepToken: make(chan struct{}, 1),
	}
	s.historyFor, s.threadsFor = sessions.Kept(cfg.HistoryFor, cfg.ThreadsFor)
	s.close = sync.OnceValue(func() error {
		close(s.stop)
		s.upkeepToken <- struct{}{}
		err := s.release()
		<-s.upkeepToken
		return err
	})
	if err := f.open(ctx); err != nil {
		return nil, errors.Join(err, f.release())
	}
	s.Archive = sessions.NewArchive(&s.callers, f.badEntry)
	s.Keyed = sessions.NewKeyed(values{f}, f.badEntry)
	if err := s.prepareAll(ctx); err != nil {
		return nil, errors.Join(err, f.release())
	}
	return s, nil
}

// Run maintains the file: a checkpoint each second, deletion of old data each minute, a copy each day. It returns nil
// when the context ends or the store is closed, and an error when another process has taken the state directory.
func (s *Store) Run(ctx context.Context) error {
	select {
	case s.upkeepToken <- struct{}{}:
		defer func() { <-s.upkeepToken }()
	case <-s.stop:
		return nil
	}
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		if err := s.tick(ctx); err != nil {
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

// Close ends [Store.Run], makes a last checkpoint, closes the file and releases the state directory. Further calls
// return the same error.
func (s *Store) Close() error { return s.close() }

// Metrics yields the counters of the store. Round trips are measured by its callers.
func (s *Store) Metrics() iter.Seq[handoff.Metric] {
	n := &s.counts
	return slices.Values([]handoff.Metric{
		handoff.NewMetric("switchboard_store_bad_entries_total",
			"Entries of the store that could not be read and were left out.", n.badEntries.Load()),
		handoff.NewMetric("switchboard_sqlite_refused_total",
			"Changes that the file did not take: a full disk, or another program's lock.", n.refused.Load()),
		handoff.NewMetric("switchboard_sqlite_copies_total", "Copies of the file that were made.", n.copies.Load()),
	})
}
