package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

// entryColumns are the columns of an entry, in the order of [entryRow.into].
const entryColumns = "id, past, key, principal, user, owner, args, status, inherited, attempt, call, client, server, project, " +
	"thread, watermark, turn, prompt, title, why, outcome, code, spoken, accepted, ended, tests, unkept"

// statements are prepared once. Those that change something are the writer's.
type statements struct {
	begin, commit, rollback                    *sql.Stmt
	newest                                     *sql.Stmt // the life that has the file
	find, insert, update, body, words, unheard *sql.Stmt
	request, sent, owned                       *sql.Stmt
	open, openAll                              *sql.Stmt

	all []*sql.Stmt // to be closed: a connection does not close what was prepared on it
}

// A preparer is a connection, or several.
type preparer interface {
	PrepareContext(ctx context.Context, text string) (*sql.Stmt, error)
}

// A question is one of the statements.
type question struct {
	into **sql.Stmt
	on   preparer
	text string
}

// prepareTransactions prepares what needs no tables.
func (s *Store) prepareTransactions(ctx context.Context) error {
	return s.prepareAll(ctx, []question{
		{&s.asks.begin, s.write, "BEGIN IMMEDIATE"}, {&s.asks.commit, s.write, "COMMIT"}, {&s.asks.rollback, s.write, "ROLLBACK"},
	})
}

func (s *Store) prepare(ctx context.Context) error {
	names := strings.Split(entryColumns, ", ")[1:] // the id is SQLite's
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(names)), ", ")
	return s.prepareAll(ctx, []question{
		{&s.asks.newest, s.write, "SELECT epoch FROM life"},
		{&s.asks.find, s.write, "SELECT " + entryColumns + " FROM entries WHERE caller = ? AND key = ? AND EXISTS (SELECT 1 FROM life WHERE epoch = ?)"},
		// Where the life is not the newest, past would be NULL, which is refused like an entry that is there.
		{&s.asks.insert, s.write, "INSERT OR IGNORE INTO entries (" + strings.Join(names, ", ") + ", caller) VALUES " +
			"((SELECT ? FROM life WHERE epoch = ?)" + marks[1:] + ", ?)"},
		{&s.asks.update, s.write, "UPDATE entries SET " + strings.Join(names, " = ?, ") + " = ? WHERE id = ?"},
		{&s.asks.body, s.write, "INSERT INTO bodies (id, prompt, text, did) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO UPDATE SET " +
			"prompt = iif(?2 = '', prompt, ?2), text = iif(?3 = '', text, ?3), did = iif(?4 = '', did, ?4)"},
		{&s.asks.request, s.write, "INSERT INTO requests (id, request) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET request = ?2"},
		{&s.asks.sent, s.write, "DELETE FROM requests WHERE id = ?"},
		{&s.asks.owned, s.write, "INSERT OR IGNORE INTO owned (server, thread, principal, user) VALUES (?, ?, ?, ?)"},
		{&s.asks.words, s.write, "INSERT INTO history_words (rowid, words) VALUES (?, ?)"},
		{&s.asks.unheard, s.write, "SELECT " + entryColumns + " FROM entries WHERE caller = ? AND past = 0 AND status = 'completed' " +
			"ORDER BY ended DESC, key DESC LIMIT -1 OFFSET ?"},
		{&s.asks.open, s.read, "SELECT " + entryColumns + " FROM entries WHERE caller = ? AND past = 0 ORDER BY accepted, key"},
		{&s.asks.openAll, s.read, "SELECT " + entryColumns + " FROM entries WHERE past = 0 ORDER BY accepted, key"},
	})
}

func (s *Store) prepareAll(ctx context.Context, all []question) error {
	for _, one := range all {
		stmt, err := one.on.PrepareContext(ctx, one.text)
		if err != nil {
			return s.unusable(err)
		}
		*one.into, s.asks.all = stmt, append(s.asks.all, stmt)
	}
	return nil
}

// An entryRow is an entry with its place.
type entryRow struct {
	id   int64 // 0: it is not there
	past int64 // when it became history, in Unix milliseconds; 0: it waits
	ledger.Entry
}

// into gives where the columns of an entry go; times are done by the caller.
func (r *entryRow) into(accepted, ended *int64) []any {
	e := &r.Entry
	return []any{
		&r.id, &r.past, &e.Key, &e.Caller.Principal, &e.Caller.User, &e.Owner, &e.Args, (*string)(&e.Status), &e.Inherited, &e.Attempt,
		&e.CallID, &e.ClientID, &e.Target.Server, &e.Target.Project, &e.Target.Thread, (*string)(&e.Watermark), (*string)(&e.Turn),
		&e.Prompt, &e.Title, &e.Why, (*string)(&e.Outcome), (*string)(&e.Code), &e.Spoken, accepted, ended,
		(*string)(&e.Tests), &e.Unkept,
	}
}

// values are the columns of an entry without its id.
func (r *entryRow) values() []any {
	ended := int64(0)
	if !r.Ended.IsZero() {
		ended = r.Ended.UnixMilli()
	}
	e := r.Entry
	return []any{
		r.past, e.Key, e.Caller.Principal, e.Caller.User, e.Owner, e.Args, string(e.Status), e.Inherited, e.Attempt,
		e.CallID, e.ClientID, e.Target.Server, e.Target.Project, e.Target.Thread, string(e.Watermark), string(e.Turn),
		e.Prompt, e.Title, e.Why, string(e.Outcome), string(e.Code), e.Spoken, e.Accepted.UnixMilli(), ended,
		string(e.Tests), e.Unkept,
	}
}

// scanEntry reads one row.
func scanEntry(row interface{ Scan(into ...any) error }) (entryRow, error) {
	var r entryRow
	var accepted, ended int64
	if err := row.Scan(r.into(&accepted, &ended)...); err != nil {
		return entryRow{}, err
	}
	r.Accepted = time.UnixMilli(accepted).UTC()
	if ended != 0 {
		r.Ended = time.UnixMilli(ended).UTC()
	}
	return r, nil
}

// scanEntries reads all rows.
func scanEntries(found *sql.Rows, err error) ([]entryRow, error) {
	var all []entryRow
	for row, err := range each(found, err) {
		if err != nil {
			return nil, err
		}
		r, err := scanEntry(row)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// Advance writes one step of the ledger in one transaction; see [ledger.Ledger].
func (s *Store) Advance(ctx context.Context, step ledger.Step) (ledger.Entry, error) {
	step, err := step.Check()
	if err != nil {
		return ledger.Entry{}, err
	}
	name, err := sessions.CallerName(step.Caller)
	if err != nil {
		return ledger.Entry{}, err
	}
	if step.To == handoff.StatusDispatching && s.lost.Load() { // another may have a file of its own in the same place
		return ledger.Entry{}, s.taken()
	}
	var after ledger.Entry
	var verdict error // of the table, with the entry as it was
	err = s.change(ctx, func(ctx context.Context, _ transaction) error {
		if made, err := s.made(ctx, name, step); made.Status != "" || err != nil {
			after = made
			return err
		}
		row, err := scanEntry(s.asks.find.QueryRowContext(ctx, name, step.Key, s.epoch))
		if errors.Is(err, sql.ErrNoRows) { // or this life is not the newest
			err = s.fenced(ctx)
		}
		if err != nil {
			return err
		}
		before := row.Entry
		if after, verdict = before.Apply(step); verdict != nil || after == before {
			return nil
		}
		if before.Anew(step) {
			if err := s.wipe(ctx, row.id); err != nil {
				return err
			}
			row.past = 0
		}
		row.Entry = after
		return s.put(ctx, name, row, step)
	})
	if err != nil {
		return ledger.Entry{}, err
	}
	return after, verdict
}

// made makes the entry of the first step of a handoff, which a start waits for: one statement finds that there was none
// and that this life may write. The zero entry means that it did not.
func (s *Store) made(ctx context.Context, name string, step ledger.Step) (ledger.Entry, error) {
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

// fenced refuses what a life writes after another one has opened the file.
func (s *Store) fenced(ctx context.Context) error {
	var newest int64
	if err := s.asks.newest.QueryRowContext(ctx).Scan(&newest); err != nil {
		return err
	}
	if newest != s.epoch {
		return s.taken()
	}
	return nil
}

func (s *Store) taken() error {
	return handoff.Fault(handoff.CodeShutdown, "", "another Switchboard has taken over "+s.dir.Path)
}

// put writes an entry after a step.
func (s *Store) put(ctx context.Context, name string, row entryRow, step ledger.Step) error {
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
		if _, err := s.asks.sent.ExecContext(ctx, row.id); err != nil {
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

// wipe forgets what is kept beside an entry that is made anew.
func (s *Store) wipe(ctx context.Context, id int64) error {
	for _, forget := range []string{"DELETE FROM history_words WHERE rowid = ?", "DELETE FROM bodies WHERE id = ?", "DELETE FROM requests WHERE id = ?"} {
		if _, err := s.write.ExecContext(ctx, forget, id); err != nil {
			return err
		}
	}
	return nil
}

// putBody writes what a step has beside the entry: the whole words, of which a text that is "" leaves what is kept,
// and for whom a thread was made.
func (s *Store) putBody(ctx context.Context, id int64, step ledger.Step) error {
	b := step.Body
	if b.Prompt != "" || b.Text != "" || b.Did != "" {
		if _, err := s.asks.body.ExecContext(ctx, id, b.Prompt, b.Text, b.Did); err != nil {
			return err
		}
	}
	if b.Request != "" {
		if _, err := s.asks.request.ExecContext(ctx, id, b.Request); err != nil {
			return err
		}
	}
	if !step.Makes() {
		return nil
	}
	t, c := step.Set.Target, step.Caller
	_, err := s.asks.owned.ExecContext(ctx, t.Server, t.Thread, c.Principal, c.User)
	return err
}

// errNotMade says that a row is there already, or that this life is not the newest.
var errNotMade = errors.New("an entry was not made")

// store writes the row itself, and gives a new one its id, or [errNotMade].
func (s *Store) store(ctx context.Context, name string, row *entryRow) error {
	values := row.values()
	if row.id != 0 {
		_, err := s.asks.update.ExecContext(ctx, append(values, row.id)...)
		return err
	}
	done, err := s.asks.insert.ExecContext(ctx, append(slices.Insert(values, 1, any(s.epoch)), name)...)
	switch n, err := affected(done, err); {
	case err != nil:
		return err
	case n == 0:
		return errNotMade
	}
	row.id, err = done.LastInsertId()
	return err
}

// index lets an entry that became history be found.
func (s *Store) index(ctx context.Context, row entryRow) error {
	if row.Unkept {
		return nil
	}
	_, err := s.asks.words.ExecContext(ctx, row.id, strings.Join(sessions.EntryWords(row.Entry), " "))
	return err
}

// passOldest makes history of the outcomes that are more than may wait for the caller.
func (s *Store) passOldest(ctx context.Context, name string, c handoff.Caller, at time.Time) error {
	old, err := scanEntries(s.asks.unheard.QueryContext(ctx, name, ledger.Waits(c)))
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

// Open returns a caller's entries that are not delivered, oldest first.
func (s *Store) Open(ctx context.Context, c handoff.Caller) ([]ledger.Entry, error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return nil, err
	}
	return s.entries(scanEntries(s.asks.open.QueryContext(ctx, name)))
}

// OpenAll returns the entries of every caller that are not delivered, oldest first.
func (s *Store) OpenAll(ctx context.Context) ([]ledger.Entry, error) {
	return s.entries(scanEntries(s.asks.openAll.QueryContext(ctx)))
}

// entries leaves out what is none of ours: one bad entry must not hide the others.
func (s *Store) entries(rows []entryRow, err error) ([]ledger.Entry, error) {
	if err != nil {
		return nil, s.fault(err)
	}
	all := make([]ledger.Entry, 0, len(rows))
	for _, r := range rows {
		if r.Key == "" || r.Owner == "" || r.Caller.Principal == "" || r.Status == "" {
			s.counts.badEntries.Add(1)
			s.log.Warn("unreadable entry of the ledger", zap.Int64("id", r.id))
			continue
		}
		all = append(all, r.Entry)
	}
	return all, nil
}
