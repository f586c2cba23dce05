package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"modernc.org/sqlite" // and the driver
	lib "modernc.org/sqlite/lib"

	"switchboard/handoff"
	"switchboard/sessions"
)

const (
	busyFor  = 2 * time.Second // how long a file that another program locks is waited for
	readers  = 4               // connections that read; who comes later waits for one
	fileMode = 0o600
	logLimit = 16 << 20 // bytes that the file of the log keeps once it was moved
)

// A file is the open file of a store with its connections: what all subjects share.
type file struct {
	dir     *sessions.Dir // Set once
	path    string        // Set once; of the file
	log     *zap.Logger   // Set once
	write   *sql.Conn     // Set once; used by who holds the writer
	writers *sql.DB       // Set once; of write alone
	read    *sql.DB       // Set once; of who reads
	mover   *sql.DB       // Set once; one connection, used only by who holds the store's turn
	epoch   int64         // Set once: of this life; steps of an older one are refused

	begin, commit, rollback *sql.Stmt   // Set once; the writer's
	newest                  *sql.Stmt   // Set once; the writer's: the epoch of the life that has the file
	statements              []*sql.Stmt // Set once; to be closed: a connection does not close what was prepared on it

	counts counters
	dirty  atomic.Bool           // something was written since the log was last moved; anybody may set it
	stuck  atomic.Pointer[error] // why the log could not be moved at the last try; set by who holds the store's turn
	lost   atomic.Bool           // the lock is another's: nothing is started any more. Set by who holds the store's turn

	writer chan struct{} // capacity 1; a token in it is a transaction
	stop   chan struct{} // closed by Close
}

// counters count what a store did since it was opened; anybody may add.
type counters struct {
	refused    atomic.Uint64 // changes that the file did not take: a full disk, another program's lock
	badEntries atomic.Uint64 // entries that could not be read and were left out
	copies     atomic.Uint64 // copies of the file that were made
}

// open opens the connections and sees to it that the file is whole and has its tables.
func (f *file) open(ctx context.Context) error {
	unclean := false
	if about, err := os.Stat(f.path + "-wal"); err == nil {
		unclean = about.Size() > 0 // who closes the file removes it
	}
	// So that it has its mode before anything is in it.
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
	}{{&f.writers, 1, ""}, {&f.mover, 1, ""}, {&f.read, readers, "query_only(1)"}} {
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
	return f.prepare(ctx, f.write, map[**sql.Stmt]string{&f.newest: "SELECT epoch FROM life"})
}

// A preparer is a connection, or several.
type preparer interface {
	PrepareContext(ctx context.Context, text string) (*sql.Stmt, error)
}

// prepare prepares statements on a connection.
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

// release closes what is open. The writer goes last: the last connection moves the log.
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
	for _, db := range []*sql.DB{f.read, f.mover, f.writers} {
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

// A transaction runs statements of one.
type transaction interface {
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row
}

// change runs a transaction. What it acknowledges is written. The caller's context bounds only how long a
// transaction before it is waited for: one that was begun is never left half way. A context that can end, and a
// [sql.Tx] always, would cost a goroutine for each statement.
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
	defer func() { // after a panic too, which may be recovered: the connection is the only one
		if !written {
			_, _ = f.rollback.ExecContext(ctx) // nothing of it counts; SQLite may have done it already
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

// changeFenced is change of what belongs to a caller: after another life has opened the file it is refused.
func (f *file) changeFenced(ctx context.Context, do func(context.Context, transaction) error) error {
	return f.change(ctx, func(ctx context.Context, tx transaction) error {
		if err := f.fenced(ctx); err != nil {
			return err
		}
		return do(ctx, tx)
	})
}

// refused counts a change that the file did not take.
func (f *file) refused(err error) error {
	err = f.fault(err)
	if err != nil && handoff.AsError(err).Code == handoff.CodeUnreachable {
		f.counts.refused.Add(1)
	}
	return err
}

// changed runs one statement as a transaction, and reports whether it changed anything.
func (f *file) changed(ctx context.Context, text string, args ...any) (bool, error) {
	var n int64
	err := f.change(ctx, func(ctx context.Context, tx transaction) (err error) {
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

// collect reads rows, each by scan.
func collect[T any](rows *sql.Rows, err error, scan func(row *sql.Rows, one *T) error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // its error comes with Err
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

// found reports whether a row that was scanned was there.
func (f *file) found(err error) (bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, f.fault(err)
}

// A digest is a SHA-256 in a column.
type digest struct{ sum *[sha256.Size]byte }

// Scan implements [sql.Scanner].
func (d digest) Scan(value any) error {
	sum, ok := value.([]byte)
	if !ok || copy(d.sum[:], sum) != sha256.Size {
		return fmt.Errorf("%T is no SHA-256", value)
	}
	return nil
}

// A nanos is a time in a column, in Unix nanoseconds.
type nanos struct{ at *time.Time }

// Scan implements [sql.Scanner].
func (n nanos) Scan(value any) error {
	ns, ok := value.(int64)
	if !ok {
		return fmt.Errorf("%T is no time", value)
	}
	*n.at = time.Unix(0, ns).UTC()
	return nil
}

// fenced refuses what a life writes after another one has opened the file.
func (f *file) fenced(ctx context.Context) error {
	var newest int64
	if err := f.newest.QueryRowContext(ctx).Scan(&newest); err != nil {
		return err
	}
	if newest != f.epoch {
		return f.taken()
	}
	return nil
}

// taken is the error of a life that another one has followed.
func (f *file) taken() error {
	return handoff.Fault(handoff.CodeShutdown, "", "another Switchboard has taken over "+f.dir.Path)
}

// passing are the errors that may go away by themselves: somebody has locked the file, or the disk is full, gone
// or read-only.
var passing = []int{
	lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_READONLY, lib.SQLITE_INTERRUPT, lib.SQLITE_IOERR, lib.SQLITE_FULL,
	lib.SQLITE_CANTOPEN, lib.SQLITE_NOMEM,
}

// isOne reports whether an error of SQLite is one of these, whatever its details.
func isOne(err error, codes []int) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && slices.Contains(codes, e.Code()&0xFF)
}

// fault gives an error of the file as one of the vocabulary. What may go away by itself is unreachable: who
// has to write something tries again.
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
		return handoff.Fault(handoff.CodeUnreachable, f.path, err.Error())
	}
	return handoff.Fault(handoff.CodeInternal, "", f.path+": "+err.Error())
}
