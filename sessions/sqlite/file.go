package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"modernc.org/sqlite" // also the driver
	lib "modernc.org/sqlite/lib"

	"switchboard/handoff"
	"switchboard/sessions"
)

const (
	busyFor  = 2 * time.Second // how long we wait while another program locks the file
	readers  = 4               // connections for reads; further reads wait for one
	fileMode = 0o600
	logLimit = 16 << 20 // bytes of the WAL file that stay after a checkpoint
)

// A file is the open database file of a store with its connections. All subjects of the store share it.
type file struct {
	dir          *sessions.Dir // Set once
	path         string        // Set once; path of the database file
	log          *zap.Logger   // Set once
	write        *sql.Conn     // Set once; used by the holder of the writer token
	writers      *sql.DB       // Set once; the pool of write
	read         *sql.DB       // Set once; the connections for reads
	checkpointer *sql.DB       // Set once; one connection for checkpoints and copies; used by who has the upkeep token
	epoch        int64         // Set once; of this life of the service; older lives are refused

	begin, commit, rollback *sql.Stmt   // Set once; on the connection write
	newestEpoch             *sql.Stmt   // Set once; on the connection write: the epoch of the newest life
	statements              []*sql.Stmt // Set once; all prepared statements: a connection does not close its own

	counts        counters
	dirty         atomic.Bool           // something was written since the last checkpoint; any goroutine may set it
	checkpointErr atomic.Pointer[error] // why the last checkpoint failed; set by the holder of the upkeep token
	lockLost      atomic.Bool           // another process may have the lock: no turn is started. Set by upkeep

	writer chan struct{} // capacity 1; a token in it is the right to write
	stop   chan struct{} // closed by Close
}

// counters count since the store was opened; any goroutine may add.
type counters struct {
	refused    atomic.Uint64 // changes that failed: a full disk, another program's lock
	badEntries atomic.Uint64 // unreadable entries that were left out
	copies     atomic.Uint64 // daily copies of the file
}

// open opens the connections, checks the file and makes its tables.
func (f *file) open(ctx context.Context) error {
	unclean := false
	if about, err := os.Stat(f.path + "-wal"); err == nil {
		unclean = about.Size() > 0 // a clean close removes it
	}
	// The file gets its mode before it has any content.
	made, err := f.dir.Root().OpenFile(fileName, os.O_RDWR|os.O_CREATE, fileMode)
	if err == nil {
		err = errors.Join(made.Chmod(fileMode), made.Close())
	}
	if err != nil {
		return fmt.Errorf("make the file of the sessions: %w", err)
	}
	for _, one := range []struct {
		db    **sql.DB
		conns int
		more  string
	}{{&f.writers, 1, ""}, {&f.checkpointer, 1, ""}, {&f.read, readers, "query_only(1)"}} {
		q := url.Values{"_txlock": {"immediate"}, "_pragma": {
			fmt.Sprintf("busy_timeout(%d)", busyFor.Milliseconds()), "journal_mode(WAL)", "synchronous(NORMAL)",
			"wal_autocheckpoint(0)", fmt.Sprintf("journal_size_limit(%d)", logLimit),
		}}
		if one.more != "" {
			q.Add("_pragma", one.more)
		}
		name := url.URL{Scheme: "file", Path: f.path, RawQuery: q.Encode()}
		if *one.db, err = sql.Open("sqlite", name.String()); err != nil {
			return fmt.Errorf("open %s: %w", f.path, err)
		}
		(*one.db).SetMaxOpenConns(one.conns)
		(*one.db).SetMaxIdleConns(one.conns)
	}
	if f.write, err = f.writers.Conn(ctx); err != nil {
		return f.unusable(err)
	}
	if err := f.prepare(ctx, f.write, map[**sql.Stmt]string{
		&f.begin: "BEGIN IMMEDIATE", &f.commit: "COMMIT", &f.rollback: "ROLLBACK",
	}); err != nil {
		return err
	}
	if err := f.migrate(ctx, unclean); err != nil {
		return err
	}
	return f.prepare(ctx, f.write, map[**sql.Stmt]string{&f.newestEpoch: "SELECT epoch FROM life"})
}

// A preparer is a connection or a pool.
type preparer interface {
	PrepareContext(ctx context.Context, text string) (*sql.Stmt, error)
}

// prepare prepares statements, by where each goes.
func (f *file) prepare(ctx context.Context, on preparer, all map[**sql.Stmt]string) error {
	for into, text := range all {
		stmt, err := on.PrepareContext(ctx, text)
		if err != nil {
			return f.unusable(err)
		}
		*into, f.statements = stmt, append(f.statements, stmt)
	}
	return nil
}

// release closes everything that is open. The pool of write is closed last: SQLite checkpoints at the last close.
func (f *file) release() error {
	var all error
	if f.write != nil {
		f.writer <- struct{}{}
		for _, stmt := range f.statements {
			all = errors.Join(all, stmt.Close())
		}
		all = errors.Join(all, f.write.Close())
		<-f.writer
	}
	for _, db := range []*sql.DB{f.read, f.checkpointer, f.writers} {
		if db != nil {
			all = errors.Join(all, db.Close())
		}
	}
	f.dir.Close()
	if all != nil {
		return fmt.Errorf("close %s: %w", f.path, all)
	}
	return nil
}

// A transaction runs statements within one transaction.
type transaction interface {
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row
}

// change runs a transaction. When it returns nil, the changes are in the log. ctx bounds only the wait for earlier
// transactions: a transaction that has begun is never cut short. It uses its own statements to begin and commit, and a
// context without an end, since a [sql.Tx] or a context that can end costs a goroutine for each statement.
func (f *file) change(ctx context.Context, do func(context.Context, transaction) error) error {
	select {
	case f.writer <- struct{}{}:
		defer func() { <-f.writer }()
	case <-ctx.Done():
		return f.fault(ctx.Err())
	}
	ctx = context.WithoutCancel(ctx)
	if _, err := f.begin.ExecContext(ctx); err != nil {
		return f.refused(err)
	}
	written := false
	defer func() { // also after a panic, which may be recovered: there is only this connection
		if !written {
			_, _ = f.rollback.ExecContext(ctx) // SQLite may have done it already
		}
	}()
	err := do(ctx, f.write)
	if err == nil {
		f.dirty.Store(true)
		_, err = f.commit.ExecContext(ctx)
	}
	written = err == nil
	return f.refused(err)
}

// changeFenced is change for data of a caller: it fails after another life has opened the file.
func (f *file) changeFenced(ctx context.Context, do func(context.Context, transaction) error) error {
	return f.change(ctx, func(ctx context.Context, tx transaction) error {
		if err := f.fenced(ctx); err != nil {
			return err
		}
		return do(ctx, tx)
	})
}

// refused translates the error of a change, and counts it if it is temporary.
func (f *file) refused(err error) error {
	err = f.fault(err)
	if err != nil && handoff.AsError(err).Code == handoff.CodeUnreachable {
		f.counts.refused.Add(1)
	}
	return err
}

// affected returns how many rows a statement changed.
func affected(done sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

// badEntry counts and logs a value or document that cannot be read. It is left out: one bad entry must not hide the
// others.
func (f *file) badEntry(name string) {
	f.counts.badEntries.Add(1)
	f.log.Warn("unreadable entry of the store left out", zap.String("name", name))
}

// collect reads all rows with scan.
func collect[T any](rows *sql.Rows, err error, scan func(row *sql.Rows, one *T) error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // its error also comes from Err
	all := []T{}
	for rows.Next() {
		var one T
		if err := scan(rows, &one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// found translates the error of scanning one row: false if there was none.
func (f *file) found(err error) (bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, f.fault(err)
}

// A millis scans a time from a column in Unix milliseconds; 0 is the zero time.
type millis struct{ at *time.Time }

// Scan implements [sql.Scanner].
func (m millis) Scan(value any) error {
	ms, ok := value.(int64)
	if ok && ms != 0 {
		*m.at = time.UnixMilli(ms).UTC()
	}
	if !ok {
		return fmt.Errorf("%T is no time", value)
	}
	return nil
}

// fenced returns an error after another life has opened the file.
func (f *file) fenced(ctx context.Context) error {
	var newest int64
	if err := f.newestEpoch.QueryRowContext(ctx).Scan(&newest); err != nil {
		return err
	}
	if newest != f.epoch {
		return f.taken()
	}
	return nil
}

// taken is the error of a life after another one has opened the file.
func (f *file) taken() error {
	return handoff.Fault(handoff.CodeShutdown, "", "another Switchboard has taken over "+f.dir.Path)
}

// passing are the codes of errors that may pass by themselves: another program has locked the file, or the disk is
// full, gone or read-only.
var passing = []int{
	lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_READONLY, lib.SQLITE_INTERRUPT, lib.SQLITE_IOERR, lib.SQLITE_FULL,
	lib.SQLITE_CANTOPEN, lib.SQLITE_NOMEM,
}

// isOne reports whether an error of SQLite has one of these primary codes.
func isOne(err error, codes []int) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && slices.Contains(codes, e.Code()&0xFF)
}

// whyOf returns why the file cannot be used, given an error that may pass.
func whyOf(err error) string {
	switch {
	case isOne(err, []int{lib.SQLITE_FULL}):
		return handoff.WhyStoreFull
	case isOne(err, []int{lib.SQLITE_BUSY, lib.SQLITE_LOCKED}):
		return handoff.WhyStoreLocked
	case isOne(err, passing):
		return handoff.WhyStoreClosed
	}
	return handoff.WhyStoreAway // its time was over before the file was asked
}

// fault translates an error to a handoff.Error. Errors that may pass get code unreachable, so that writers try again.
func (f *file) fault(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*handoff.Error](err); ok {
		return e
	}
	select {
	case <-f.stop:
		return handoff.Fault(handoff.CodeShutdown, "", "the store is closed")
	default:
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, sql.ErrConnDone) ||
		isOne(err, passing) {
		return handoff.StoreFault(f.path, whyOf(err), err.Error())
	}
	return handoff.Fault(handoff.CodeInternal, "", f.path+": "+err.Error())
}
