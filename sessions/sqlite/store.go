// Package sqlite remembers in one SQLite file of the state directory what outlives a call; see package sessions
// for what that is and for what a store promises. It is used when no Redis is configured.
//
// It must not know voice, servers or HTTP, nor the other store.
//
// # Concurrency
//
// A [Store] is safe for concurrent use. One connection writes, a few read, and one more moves what was written
// from the log into the file and makes the daily copy. A step of the ledger is one transaction around the table
// of package ledger.
//
// # Failure
//
// What was acknowledged survives the end of the process at any instant; a power cut may take the last two
// seconds. A disk that is full or fails, or another program that locks the file, gives errors with code
// unreachable until that is over. A file that cannot be read is refused, with the name of the newest copy. A lock on
// the state directory keeps a second process out.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	_ "modernc.org/sqlite" // the driver

	"switchboard/handoff"
	"switchboard/sessions"
)

const (
	// fileName is the store in the state directory.
	fileName = "switchboard.db"
	// formerFile is what an earlier version kept instead.
	formerFile = "snapshot.json"

	busyFor   = 2 * time.Second // how long a file that another program locks is waited for
	readers   = 4               // connections that read; who comes later waits for one
	tickEvery = time.Second
	fileMode  = 0o600
	logLimit  = 16 << 20 // bytes that the file of the log keeps once it was moved
)

// Config says where a [Store] keeps its file.
type Config struct {
	// Dir is the state directory; it is made with mode 0700 if it is missing.
	Dir string
	// HistoryFor is how long history is kept after it was heard; 0 means [sessions.HistoryFor].
	HistoryFor time.Duration
	// ThreadsFor is how long a thread is kept after its last turn; 0 means [sessions.ThreadsFor], or HistoryFor where
	// that is longer.
	ThreadsFor time.Duration
	// Log gets warnings; nil means none.
	Log *zap.Logger
}

// A Store keeps what outlives a call. It implements [switchboard/handoff.Stickies],
// [switchboard/handoff/ledger.Ledger] and [switchboard/handoff/ledger.History] and is safe for concurrent use.
type Store struct {
	dir          *sessions.Dir // Set once
	path         string        // Set once; of the file
	kept         time.Duration // Set once; how long history is kept
	threadsFor   time.Duration // Set once; how long threads are
	log          *zap.Logger   // Set once
	write        *sql.Conn     // Set once; used by who holds writing
	writer, read *sql.DB       // Set once; of write alone, and of who reads
	mover        *sql.DB       // Set once; one connection, used only by who holds the turn
	asks         statements    // Set once
	epoch        int64         // Set once: of this life; steps of an older one are refused

	counts counters
	dirty  atomic.Bool // something was written since the log was last moved; anybody may set it
	lost   atomic.Bool // the lock is another's: nothing is started any more. Set by who holds the turn

	writing chan struct{} // capacity 1; a token in it is a transaction

	turn   chan struct{} // capacity 1; Run and then Close put a token in to keep the file
	keeper keeper        // Owned by who holds the turn
	stop   chan struct{} // closed by Close; ends Run
	close  func() error  // Set once; runs once
}

// counters count what a store did since it was opened; anybody may add.
type counters struct {
	refused    atomic.Uint64 // changes that the file did not take: a full disk, another program's lock
	badEntries atomic.Uint64 // entries that could not be read and were left out
	copies     atomic.Uint64 // copies of the file that were made
}

// Open takes the state directory and opens its file, which it makes with mode 0600 if it is missing. A state
// directory that another process uses or that is on another machine, and a file that is newer or cannot be
// read, give an error that says what to do. The caller runs [Store.Run] and, after everything that uses the
// store has ended, [Store.Close].
func Open(ctx context.Context, cfg Config) (*Store, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("find the state directory: %w", err)
	}
	s := &Store{
		path: filepath.Join(dir, fileName), kept: cfg.HistoryFor, log: cfg.Log,
		writing: make(chan struct{}, 1), turn: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	if s.kept == 0 {
		s.kept = sessions.HistoryFor
	}
	if s.threadsFor = cfg.ThreadsFor; s.threadsFor == 0 {
		s.threadsFor = max(s.kept, sessions.ThreadsFor)
	}
	if s.log == nil {
		s.log = zap.NewNop()
	}
	s.close = sync.OnceValue(s.shut)
	if s.dir, err = sessions.HoldDir(dir); err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.release())
	}
	if _, err := s.dir.Root().Stat(formerFile); err == nil {
		s.log.Warn("a file of an earlier version is not read any more and may be removed", zap.String("file", filepath.Join(dir, formerFile)))
	}
	return s, nil
}

// open opens the connections and sees to it that the file is whole and has its tables.
func (s *Store) open(ctx context.Context) error {
	unclean := false
	if about, err := os.Stat(s.path + "-wal"); err == nil {
		unclean = about.Size() > 0 // who closes the file removes it
	}
	file, err := s.dir.Root().OpenFile(fileName, os.O_RDWR|os.O_CREATE, fileMode) // so that it has its mode before anything is in it
	if err == nil {
		err = errors.Join(file.Chmod(fileMode), file.Close())
	}
	if err != nil {
		return fmt.Errorf("make the file of the sessions: %w", err)
	}
	for _, one := range []struct {
		db    **sql.DB
		conns int
		more  string
	}{{&s.writer, 1, ""}, {&s.mover, 1, ""}, {&s.read, readers, "query_only(1)"}} {
		if *one.db, err = sql.Open("sqlite", s.name(one.more)); err != nil {
			return fmt.Errorf("open %s: %w", s.path, err)
		}
		(*one.db).SetMaxOpenConns(one.conns)
		(*one.db).SetMaxIdleConns(one.conns)
	}
	if s.write, err = s.writer.Conn(ctx); err != nil {
		return s.unusable(err)
	}
	if err := s.prepareTransactions(ctx); err != nil {
		return err
	}
	if err := s.migrate(ctx, unclean); err != nil {
		return err
	}
	return s.prepare(ctx)
}

// name gives the file's name with what each connection sets.
func (s *Store) name(more string) string {
	q := url.Values{"_txlock": {"immediate"}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyFor.Milliseconds()), "journal_mode(WAL)", "synchronous(NORMAL)",
		"wal_autocheckpoint(0)", fmt.Sprintf("journal_size_limit(%d)", logLimit),
	}}
	if more != "" {
		q.Add("_pragma", more)
	}
	return (&url.URL{Scheme: "file", Path: s.path, RawQuery: q.Encode()}).String()
}

// Run keeps the file: each second it moves what was written from the log into it; history that is old enough
// goes, and once a day a copy is made. It ends with the context or with the store, with nil, or with an error
// when another process has taken the state directory.
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

// Close ends [Store.Run], moves what is left of the log into the file, closes it and gives the state directory
// back. A second Close returns the same.
func (s *Store) Close() error { return s.close() }

func (s *Store) shut() error {
	close(s.stop)
	s.turn <- struct{}{}
	err := s.release()
	<-s.turn
	return err
}

// release closes what is open. The writer goes last: the last connection moves the log.
func (s *Store) release() error {
	var all error
	if s.write != nil {
		s.writing <- struct{}{}
		for _, stmt := range s.asks.all {
			all = errors.Join(all, stmt.Close())
		}
		all = errors.Join(all, s.write.Close())
		<-s.writing
	}
	for _, db := range []*sql.DB{s.read, s.mover, s.writer} {
		if db != nil {
			all = errors.Join(all, db.Close())
		}
	}
	s.dir.Close()
	if all != nil {
		return fmt.Errorf("close %s: %w", s.path, all)
	}
	return nil
}

// A transaction is what may be asked in the midst of one.
type transaction interface {
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row
}

// change runs a transaction. What it acknowledges is written. The caller's context bounds only how long a
// transaction before it is waited for: one that was begun is never left half way. A context that can end, and a
// [sql.Tx] always, would cost a goroutine for each statement.
func (s *Store) change(ctx context.Context, do func(context.Context, transaction) error) error {
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-ctx.Done():
		return s.fault(ctx.Err())
	}
	ctx = context.WithoutCancel(ctx)
	if _, err := s.asks.begin.ExecContext(ctx); err != nil {
		return s.refused(err)
	}
	written := false
	defer func() { // after a panic too, which may be recovered: the connection is the only one
		if !written {
			_, _ = s.asks.rollback.ExecContext(ctx) // nothing of it counts; SQLite may have done it already
		}
	}()
	err := do(ctx, s.write)
	if err == nil {
		s.dirty.Store(true)
		_, err = s.asks.commit.ExecContext(ctx)
	}
	written = err == nil
	return s.refused(err)
}

// changed runs one statement as a transaction, and reports whether it changed anything.
func (s *Store) changed(ctx context.Context, text string, args ...any) (bool, error) {
	var n int64
	err := s.change(ctx, func(ctx context.Context, tx transaction) (err error) {
		n, err = affected(tx.ExecContext(ctx, text, args...))
		return err
	})
	return n > 0 && err == nil, err
}

// affected counts the rows that a statement changed.
func affected(done sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

// each yields rows to be scanned, or the error that ended them.
func each(rows *sql.Rows, err error) iter.Seq2[*sql.Rows, error] {
	return func(yield func(*sql.Rows, error) bool) {
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = rows.Close() }() // its error comes with Err
		for rows.Next() {
			if !yield(rows, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// refused counts a change that the file did not take.
func (s *Store) refused(err error) error {
	err = s.fault(err)
	if err != nil && handoff.AsError(err).Code == handoff.CodeUnreachable {
		s.counts.refused.Add(1)
	}
	return err
}
