package sqlite

import (
	"context"
	"math"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

// documents stores the documents of fronts.
type documents struct{ *file }

// PutDocument implements [sessions.Documents].
func (s documents) PutDocument(ctx context.Context, d sessions.Document) error {
	owner, err := sessions.CallerName(d.Owner)
	if err == nil {
		err = d.Check()
	}
	if err != nil {
		return err
	}
	return s.changeFenced(ctx, func(ctx context.Context, tx transaction) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO documents (owner, id, ends, body) VALUES (?, ?, ?, ?) "+
			"ON CONFLICT (owner, id) DO UPDATE SET ends = excluded.ends, body = excluded.body", owner, d.ID,
			d.Ends.UnixMilli(), d.Body); err != nil {
			return err
		}
		soon := time.Now().Add(sessions.Brief).UnixMilli()
		const excess = "DELETE FROM documents WHERE rowid IN (SELECT rowid FROM documents WHERE owner = ? " +
			"AND ends BETWEEN ? AND ? ORDER BY ends DESC, rowid DESC LIMIT -1 OFFSET ?)"
		if _, err := tx.ExecContext(ctx, excess, owner, math.MinInt64, soon, sessions.MaxDocuments); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, excess, owner, soon+1, math.MaxInt64, sessions.MaxDocuments)
		return err
	})
}

// Document implements [sessions.Documents].
func (s documents) Document(ctx context.Context, owner handoff.Caller, id string) (sessions.Document, bool, error) {
	name, err := sessions.CallerName(owner)
	if err != nil {
		return sessions.Document{}, false, err
	}
	d := sessions.Document{Owner: owner, ID: id}
	found, err := s.found(s.read.QueryRowContext(ctx, "SELECT body, ends FROM documents WHERE owner = ? AND id = ? "+
		"AND ends > ?", name, id, time.Now().UnixMilli()).Scan(&d.Body, millis{&d.Ends}))
	return d, found, err
}

// DropDocument implements [sessions.Documents].
func (s documents) DropDocument(ctx context.Context, owner handoff.Caller, id string) (bool, error) {
	name, err := sessions.CallerName(owner)
	if err != nil {
		return false, err
	}
	var n int64
	err = s.changeFenced(ctx, func(ctx context.Context, tx transaction) (err error) {
		n, err = affected(tx.ExecContext(ctx, "DELETE FROM documents WHERE owner = ? AND id = ?", name, id))
		return err
	})
	return n > 0 && err == nil, err
}
