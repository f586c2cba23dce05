package sqlite

import (
	"context"
	"database/sql"
	"math"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

// callers stores what is remembered of callers; see [sessions.Callers] and [sessions.Pages].
type callers struct {
	*file
	stmts statements // Set once
}

// statements are the prepared statements. Those that write are on the connection write.
type statements struct {
	is, renew, put, drop, text, untext, over, past, words *sql.Stmt
	state                                                 *sql.Stmt
}

func (s *callers) prepareAll(ctx context.Context) error {
	err := s.prepare(ctx, s.write, map[**sql.Stmt]string{
		&s.stmts.is: "SELECT epoch, coalesce((SELECT version FROM callers WHERE name = ? AND ends > ?), '') FROM life",
		&s.stmts.renew: "INSERT INTO callers (name, version, ends) VALUES (?, ?, ?) " +
			"ON CONFLICT (name) DO UPDATE SET version = excluded.version, ends = excluded.ends",
		&s.stmts.put: "INSERT INTO docs (caller, name, body) VALUES (?, ?, ?) " +
			"ON CONFLICT (caller, name) DO UPDATE SET body = excluded.body",
		&s.stmts.drop: "DELETE FROM docs WHERE caller = ? AND name = ?",
		&s.stmts.text: "INSERT INTO texts (caller, key, part, text) VALUES (?, ?, ?, ?) " +
			"ON CONFLICT (caller, key, part) DO UPDATE SET text = excluded.text",
		&s.stmts.untext: "DELETE FROM texts WHERE caller = ? AND key = ? AND part = ?",
		&s.stmts.over:   "SELECT EXISTS (SELECT 1 FROM past WHERE caller = ? AND key = ?)",
		&s.stmts.past: "INSERT INTO past (caller, key, at, unkept, row) VALUES (?, ?, ?, ?, ?) ON CONFLICT (caller, key) " +
			"DO UPDATE SET at = excluded.at, unkept = excluded.unkept, row = excluded.row RETURNING id",
		&s.stmts.words: "INSERT OR REPLACE INTO history_words (rowid, words) VALUES (?, ?)",
	})
	if err != nil {
		return err
	}
	return s.prepare(ctx, s.read, map[**sql.Stmt]string{
		&s.stmts.state: "SELECT c.version, coalesce(d.name, ''), coalesce(d.body, '') FROM callers c " +
			"LEFT JOIN docs d ON d.caller = c.name WHERE c.name = ? AND c.ends > ?",
	})
}

// State implements [sessions.Callers].
func (s *callers) State(ctx context.Context, c handoff.Caller) (ledger.State, error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return ledger.State{}, err
	}
	state := ledger.State{Documents: map[string]string{}}
	rows, err := s.stmts.state.QueryContext(ctx, name, time.Now().UnixMilli())
	_, err = collect(rows, err, func(row *sql.Rows, _ *struct{}) error {
		var doc, body string
		err := row.Scan(&state.Version, &doc, &body)
		if doc != "" {
			state.Documents[doc] = body
		}
		return err
	})
	return state, s.fault(err)
}

// Commit implements [sessions.Callers].
func (s *callers) Commit(ctx context.Context, c handoff.Caller, b ledger.Batch) (done ledger.Committed, err error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return 0, err
	}
	if b.Promise && s.lockLost.Load() { // another process may have a new file at the same path
		return 0, s.taken()
	}
	err = s.change(ctx, func(ctx context.Context, tx transaction) error {
		if done, err = s.decide(ctx, name, b); done != ledger.Written || err != nil {
			return err
		}
		return s.content(ctx, tx, name, b)
	})
	return done, err
}

// decide reports what is to become of a batch. It changes nothing.
func (s *callers) decide(ctx context.Context, name string, b ledger.Batch) (ledger.Committed, error) {
	var epoch int64
	var version string
	err := s.stmts.is.QueryRowContext(ctx, name, time.Now().UnixMilli()).Scan(&epoch, &version)
	switch {
	case err != nil:
		return 0, err
	case epoch != s.epoch:
		return 0, s.taken()
	case version != b.Was:
		return ledger.Outdated, nil
	}
	for _, c := range b.Changed {
		var over bool
		if c.Free {
			err = s.stmts.over.QueryRowContext(ctx, name, c.Key).Scan(&over)
		}
		if over || err != nil {
			return ledger.NotFree, err
		}
	}
	return ledger.Written, nil
}

// content writes the content of a batch.
func (s *callers) content(ctx context.Context, tx transaction, name string, b ledger.Batch) error {
	ends := int64(math.MaxInt64)
	if b.For > 0 {
		ends = time.Now().Add(b.For).UnixMilli()
	}
	if _, err := s.stmts.renew.ExecContext(ctx, name, b.Now, ends); err != nil {
		return err
	}
	if b.Was == "" { // documents that are there were kept for a time, which is over
		if _, err := tx.ExecContext(ctx, "DELETE FROM docs WHERE caller = ?", name); err != nil {
			return err
		}
	}
	for doc, body := range b.Put {
		if _, err := s.stmts.put.ExecContext(ctx, name, doc, body); err != nil {
			return err
		}
	}
	for _, doc := range b.Drop {
		if _, err := s.stmts.drop.ExecContext(ctx, name, doc); err != nil {
			return err
		}
	}
	for _, c := range b.Changed {
		if err := s.changed(ctx, tx, name, c); err != nil {
			return err
		}
	}
	if len(b.Put) > 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, "DELETE FROM callers WHERE name = ?1 AND NOT EXISTS (SELECT 1 FROM docs "+
		"WHERE caller = ?1)", name)
	return err
}

// changed writes what is kept of a handoff beside its document.
func (s *callers) changed(ctx context.Context, tx transaction, name string, c ledger.Changed) error {
	if c.Clear {
		for _, forget := range []string{"DELETE FROM history_words WHERE rowid IN (SELECT id FROM past WHERE caller = ? " +
			"AND key = ?)", "DELETE FROM past WHERE caller = ? AND key = ?", "DELETE FROM texts WHERE caller = ? AND key = ?"} {
			if _, err := tx.ExecContext(ctx, forget, name, c.Key); err != nil {
				return err
			}
		}
	}
	for part, text := range c.Texts {
		var err error
		if text == "" {
			_, err = s.stmts.untext.ExecContext(ctx, name, c.Key, part)
		} else {
			_, err = s.stmts.text.ExecContext(ctx, name, c.Key, part, text)
		}
		if err != nil {
			return err
		}
	}
	if p := c.Past; p != nil {
		var id int64
		if err := s.stmts.past.QueryRowContext(ctx, name, p.Key, p.At, p.Unkept, p.Row).Scan(&id); err != nil {
			return err
		}
		if _, err := s.stmts.words.ExecContext(ctx, id, strings.Join(p.Words, " ")); err != nil {
			return err
		}
	}
	if o := c.Owned; o != (ledger.Owned{}) {
		if _, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO owned (server, thread, principal, user) "+
			"VALUES (?, ?, ?, ?)", o.Server, o.Thread, o.Caller.Principal, o.Caller.User); err != nil {
			return err
		}
	}
	return nil
}

// Waiting implements [sessions.Callers].
func (s *callers) Waiting(ctx context.Context, prefix string) (all []handoff.Caller, err error) {
	rows, err := s.read.QueryContext(ctx, "SELECT DISTINCT caller FROM docs JOIN callers c ON c.name = caller "+
		"WHERE docs.name >= ? AND docs.name < ? AND ends > ?", prefix, prefix+"\U0010ffff", time.Now().UnixMilli())
	_, err = collect(rows, err, func(row *sql.Rows, name *string) error {
		err := row.Scan(name)
		if c, ok := sessions.NamedCaller(*name); ok {
			all = append(all, c)
		} else if err == nil {
			s.badEntry(*name)
		}
		return err
	})
	return all, s.fault(err)
}

// Past implements [sessions.Pages].
func (s *callers) Past(ctx context.Context, c handoff.Caller, key string) (ledger.Past, bool, error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return ledger.Past{}, false, err
	}
	p := ledger.Past{Key: key}
	found, err := s.found(s.read.QueryRowContext(ctx, "SELECT at, row, unkept FROM past WHERE caller = ? AND key = ?",
		name, key).Scan(&p.At, &p.Row, &p.Unkept))
	return p, found, err
}

// Page implements [sessions.Pages].
func (s *callers) Page(
	ctx context.Context, c handoff.Caller, q sessions.PageQuery,
) (all []ledger.Past, next string, err error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return nil, "", err
	}
	from, ok, err := sessions.ParseMark(q.Before)
	if err != nil {
		return nil, "", err
	}
	if !ok {
		from.At = math.MaxInt64
	}
	text := "SELECT key, at, row FROM past WHERE caller = ? AND unkept = 0 AND (at, key) < (?, ?)"
	args := []any{name, from.At, from.Key}
	if match := matching(q.Words); match != "" {
		text += " AND id IN (SELECT rowid FROM history_words WHERE history_words MATCH ?)"
		args = append(args, match)
	}
	rows, err := s.read.QueryContext(ctx, text+" ORDER BY at DESC, key DESC LIMIT ?", append(args, q.Limit+1)...)
	all, err = collect(rows, err, func(row *sql.Rows, p *ledger.Past) error { return row.Scan(&p.Key, &p.At, &p.Row) })
	if len(all) > q.Limit {
		all = all[:q.Limit]
		next = sessions.Mark{At: all[q.Limit-1].At, Key: all[q.Limit-1].Key}.String()
	}
	return all, next, s.fault(err)
}

// Texts implements [sessions.Pages].
func (s *callers) Texts(ctx context.Context, c handoff.Caller, keys ...string) (map[string]map[string]string, error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return nil, err
	}
	all := map[string]map[string]string{}
	rows, err := s.read.QueryContext(ctx, "SELECT key, part, text FROM texts WHERE caller = ? AND key IN (SELECT value "+
		"FROM json_each(?))", name, handoff.Encode(keys))
	_, err = collect(rows, err, func(row *sql.Rows, _ *struct{}) error {
		var key, part, text string
		err := row.Scan(&key, &part, &text)
		if all[key] == nil {
			all[key] = map[string]string{}
		}
		all[key][part] = text
		return err
	})
	return all, s.fault(err)
}

// matching returns the FTS5 query for words of which each begins a word of the text; "" for no words.
func matching(words []string) string {
	var b strings.Builder
	for _, word := range words {
		b.WriteString(`"` + word + `"* `) // words have no quotation marks
	}
	return b.String()
}

// Owned returns for which callers threads were made; see [ledger.Owners].
func (s *callers) Owned(ctx context.Context) ([]ledger.Owned, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT server, thread, principal, user FROM owned ORDER BY id")
	all, err := collect(rows, err, func(row *sql.Rows, o *ledger.Owned) error {
		return row.Scan(&o.Server, &o.Thread, &o.Caller.Principal, &o.Caller.User)
	})
	return all, s.fault(err)
}
