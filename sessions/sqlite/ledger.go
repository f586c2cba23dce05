package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

// handoffs stores the ledger and the history.
type handoffs struct {
	*file
	stmts statements // Set once
}

// entryColumns are the columns of an entry, in the order of [entryRow.places].
var entryColumns = "id, past, " + strings.Join(sessions.EntryNames, ", ")

// statements are the prepared statements. Those that write, and find, are on the connection write.
type statements struct {
	find, insert, update, body, words, unheard *sql.Stmt
	request, sent, owned                       *sql.Stmt
	open, openAll                              *sql.Stmt
}

func (s *handoffs) prepareAll(ctx context.Context) error {
	names := "past, " + strings.Join(sessions.EntryNames, ", ")
	marks := strings.Repeat(", ?", len(sessions.EntryNames))
	const body = "INSERT INTO bodies (id, prompt, text, did) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO UPDATE SET " +
		"prompt = iif(?2 = '', prompt, ?2), text = iif(?3 = '', text, ?3), did = iif(?4 = '', did, ?4)"
	one := "SELECT " + entryColumns + " FROM entries WHERE "
	err := s.prepare(ctx, s.write, map[**sql.Stmt]string{
		&s.stmts.find: one + "caller = ? AND key = ? AND EXISTS (SELECT 1 FROM life WHERE epoch = ?)",
		// If this life is not the newest, past would be NULL; the row is then ignored like a duplicate.
		&s.stmts.insert: "INSERT OR IGNORE INTO entries (" + names + ", caller) VALUES " +
			"((SELECT ? FROM life WHERE epoch = ?)" + marks + ", ?)",
		&s.stmts.update:  "UPDATE entries SET " + strings.ReplaceAll(names, ",", " = ?,") + " = ? WHERE id = ?",
		&s.stmts.body:    body,
		&s.stmts.request: "INSERT INTO requests (id, request) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET request = ?2",
		&s.stmts.sent:    "DELETE FROM requests WHERE id = ?",
		&s.stmts.owned:   "INSERT OR IGNORE INTO owned (server, thread, principal, user) VALUES (?, ?, ?, ?)",
		&s.stmts.words:   "INSERT INTO history_words (rowid, words) VALUES (?, ?)",
		&s.stmts.unheard: one + "caller = ? AND past = 0 AND status = 'completed' " +
			"ORDER BY ended DESC, key DESC LIMIT -1 OFFSET ?",
	})
	if err != nil {
		return err
	}
	return s.prepare(ctx, s.read, map[**sql.Stmt]string{
		&s.stmts.open:    one + "caller = ? AND past = 0 ORDER BY accepted, key",
		&s.stmts.openAll: one + "past = 0 ORDER BY accepted, key",
	})
}

// besideEntries are the deletions from the tables beside entries. A condition on the id of the entry follows.
var besideEntries = []string{
	"DELETE FROM history_words WHERE rowid ", "DELETE FROM bodies WHERE id ", "DELETE FROM requests WHERE id ",
}

// An entryRow is an entry with the columns that only the table has.
type entryRow struct {
	id   int64 // 0 for a row that is not stored yet
	past int64 // when it became history, in Unix milliseconds; 0 before
	ledger.Entry
}

// places returns pointers to the columns of an entry, in the order of [entryColumns].
func (r *entryRow) places() []any {
	// There is capacity for the further arguments of a statement.
	all := append(make([]any, 0, len(sessions.EntryNames)+4), &r.id, &r.past)
	all = sessions.EntryFields(all, &r.Entry)
	for i, place := range all {
		if at, ok := place.(*time.Time); ok {
			all[i] = millis{at}
		}
	}
	return all
}

// A millis scans a time from a column in Unix milliseconds; 0 is the zero time.
type millis struct{ at *time.Time }

// Scan implements [sql.Scanner].
func (m millis) Scan(value any) error {
	ms, ok := value.(int64)
	if ok && ms != 0 {
		*m.at = sessions.EntryTime(ms)
	}
	if !ok {
		return fmt.Errorf("%T is no time", value)
	}
	return nil
}

// values returns the columns of an entry without its id. They are plain values, so that database/sql needs no
// reflection.
func (r *entryRow) values() []any {
	all := r.places()[1:]
	for i, place := range all {
		switch place := place.(type) {
		case *string:
			all[i] = *place
		case *bool:
			all[i] = *place
		case *int:
			all[i] = *place
		case *int64:
			all[i] = *place
		case millis:
			all[i] = int64(0)
			if !place.at.IsZero() {
				all[i] = place.at.UnixMilli()
			}
		}
	}
	return all
}

// scanEntry reads one row.
func scanEntry(row *sql.Row) (entryRow, error) {
	var r entryRow
	return r, row.Scan(r.places()...)
}

// scanEntries reads all rows.
func scanEntries(rows *sql.Rows, err error) ([]entryRow, error) {
	return collect(rows, err, func(row *sql.Rows, r *entryRow) error { return row.Scan(r.places()...) })
}

// Advance writes one step of the ledger in one transaction; see [ledger.Ledger].
func (s *handoffs) Advance(ctx context.Context, step ledger.Step) (ledger.Entry, error) {
	step, err := step.Check()
	if err != nil {
		return ledger.Entry{}, err
	}
	name, err := sessions.CallerName(step.Caller)
	if err != nil {
		return ledger.Entry{}, err
	}
	if step.To == handoff.StatusDispatching && s.lockLost.Load() { // another process may have a new file at the same path
		return ledger.Entry{}, s.taken()
	}
	var after ledger.Entry
	var refusal error // why the table refuses the step; after is the entry as it was
	err = s.change(ctx, func(ctx context.Context, tx transaction) error {
		if first, err := s.insertFirst(ctx, name, step); first.Status != "" || err != nil {
			after = first
			return err
		}
		row, err := scanEntry(s.stmts.find.QueryRowContext(ctx, name, step.Key, s.epoch))
		if errors.Is(err, sql.ErrNoRows) { // no entry, or this life is not the newest
			err = s.fenced(ctx)
		}
		if err != nil {
			return err
		}
		before := row.Entry
		if after, refusal = before.Apply(step); refusal != nil || after == before {
			return nil
		}
		if before.Anew(step) {
			for _, beside := range besideEntries {
				if _, err := tx.ExecContext(ctx, beside+"= ?", row.id); err != nil {
					return err
				}
			}
			row.past = 0
		}
		row.Entry = after
		return s.put(ctx, name, row, step)
	})
	if err != nil {
		return ledger.Entry{}, err
	}
	return after, refusal
}

// insertFirst inserts the entry of the first step of a handoff, for which a start waits. One statement checks that
// there is no entry and that this life is the newest, and inserts. It returns the zero entry if it inserted none.
func (s *handoffs) insertFirst(ctx context.Context, name string, step ledger.Step) (ledger.Entry, error) {
	e, err := ledger.Entry{}.Apply(step)
	if err != nil || step.To != handoff.StatusAccepted && step.To != handoff.StatusDispatching {
		return ledger.Entry{}, nil
	}
	row := entryRow{Entry: e}
	if err := s.store(ctx, name, &row); err != nil {
		if errors.Is(err, errNotMade) {
			err = nil
		}
		return ledger.Entry{}, err
	}
	return e, s.putBody(ctx, row.id, step)
}

// put writes an entry after a step.
func (s *handoffs) put(ctx context.Context, name string, row entryRow, step ledger.Step) error {
	was := row.past
	if step.To == handoff.StatusDelivered {
		row.past = step.At.UnixMilli()
	}
	if err := s.store(ctx, name, &row); err != nil {
		return err
	}
	if err := s.putBody(ctx, row.id, step); err != nil {
		return err
	}
	if !step.Keeps() {
		if _, err := s.stmts.sent.ExecContext(ctx, row.id); err != nil {
			return err
		}
	}
	if row.past != 0 && was == 0 {
		return s.index(ctx, row)
	}
	if step.To == handoff.StatusCompleted {
		return s.passOldest(ctx, name, step.Caller, step.At)
	}
	return nil
}

// putBody writes what a step stores beside the entry: its whole texts, where an empty text keeps the stored one, and
// for which caller a thread was made.
func (s *handoffs) putBody(ctx context.Context, id int64, step ledger.Step) error {
	b := step.Body
	if b.Prompt != "" || b.Text != "" || b.Did != "" {
		if _, err := s.stmts.body.ExecContext(ctx, id, b.Prompt, b.Text, b.Did); err != nil {
			return err
		}
	}
	if b.Request != "" {
		if _, err := s.stmts.request.ExecContext(ctx, id, b.Request); err != nil {
			return err
		}
	}
	if !step.Makes() {
		return nil
	}
	t, c := step.Set.Target, step.Caller
	_, err := s.stmts.owned.ExecContext(ctx, t.Server, t.Thread, c.Principal, c.User)
	return err
}

// errNotMade means that the entry is there already, or that this life is not the newest.
var errNotMade = errors.New("an entry was not made")

// store writes the row of an entry. It sets the id of a new row, or returns [errNotMade].
func (s *handoffs) store(ctx context.Context, name string, row *entryRow) error {
	values := row.values()
	if row.id != 0 {
		_, err := s.stmts.update.ExecContext(ctx, append(values, row.id)...)
		return err
	}
	done, err := s.stmts.insert.ExecContext(ctx, append(slices.Insert(values, 1, any(s.epoch)), name)...)
	switch n, err := affected(done, err); {
	case err != nil:
		return err
	case n == 0:
		return errNotMade
	}
	row.id, err = done.LastInsertId()
	return err
}

// index adds an entry that became history to the search index.
func (s *handoffs) index(ctx context.Context, row entryRow) error {
	if row.Unkept {
		return nil
	}
	_, err := s.stmts.words.ExecContext(ctx, row.id, strings.Join(sessions.EntryWords(row.Entry), " "))
	return err
}

// passOldest moves the oldest unheard outcomes of a caller to the history, beyond the number that may wait.
func (s *handoffs) passOldest(ctx context.Context, name string, c handoff.Caller, at time.Time) error {
	old, err := scanEntries(s.stmts.unheard.QueryContext(ctx, name, ledger.Waits(c)))
	if err != nil {
		return err
	}
	for _, row := range old {
		row.past, row.Entry = at.UnixMilli(), row.History()
		if err := errors.Join(s.store(ctx, name, &row), s.index(ctx, row)); err != nil {
			return err
		}
	}
	return nil
}

// Open returns a caller's undelivered entries, oldest first.
func (s *handoffs) Open(ctx context.Context, c handoff.Caller) ([]ledger.Entry, error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return nil, err
	}
	return s.entries(scanEntries(s.stmts.open.QueryContext(ctx, name)))
}

// OpenAll returns the undelivered entries of every caller, oldest first.
func (s *handoffs) OpenAll(ctx context.Context) ([]ledger.Entry, error) {
	return s.entries(scanEntries(s.stmts.openAll.QueryContext(ctx)))
}

// entries returns the entries of rows. It leaves out invalid ones: one bad entry must not hide the others.
func (s *handoffs) entries(rows []entryRow, err error) ([]ledger.Entry, error) {
	if err != nil {
		return nil, s.fault(err)
	}
	all := make([]ledger.Entry, 0, len(rows))
	for _, r := range rows {
		if !sessions.GoodEntry(r.Entry) {
			s.counts.badEntries.Add(1)
			s.log.Warn("unreadable entry of the ledger", zap.Int64("id", r.id))
			continue
		}
		all = append(all, r.Entry)
	}
	return all, nil
}
