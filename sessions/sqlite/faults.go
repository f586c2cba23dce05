package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"switchboard/handoff"
)

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
func (s *Store) fault(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*handoff.Error](err); ok {
		return e
	}
	switch {
	case s.closed():
		return handoff.Fault(handoff.CodeShutdown, "", "the store is closed")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), isOne(err, passing):
		return handoff.Fault(handoff.CodeUnreachable, s.path, err.Error())
	case errors.Is(err, sql.ErrConnDone):
		return handoff.Fault(handoff.CodeUnreachable, s.path, err.Error())
	default:
		return handoff.Fault(handoff.CodeInternal, "", s.path+": "+err.Error())
	}
}

func (s *Store) closed() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}
