package sqlite

import (
	"context"
	"database/sql"

	"switchboard/handoff"
	"switchboard/sessions"
)

// records stores the records of the installation.
type records struct{ *file }

// PutRecord implements [sessions.Records].
func (s records) PutRecord(ctx context.Context, r sessions.Record) error {
	_, err := s.putRecord(ctx, r, "DO UPDATE SET body = excluded.body")
	return err
}

// KeepRecord implements [sessions.Records].
func (s records) KeepRecord(ctx context.Context, r sessions.Record) (sessions.Record, error) {
	return s.putRecord(ctx, r, "DO UPDATE SET body = body")
}

// putRecord makes a record; onConflict says what happens if there is one already.
func (s records) putRecord(ctx context.Context, r sessions.Record, onConflict string) (sessions.Record, error) {
	if err := r.Check(); err != nil {
		return r, err
	}
	if r.Body == nil {
		r.Body = []byte{}
	}
	err := s.change(ctx, func(ctx context.Context, tx transaction) error {
		kept, err := s.found(tx.QueryRowContext(ctx, "INSERT INTO records (kind, name, body) SELECT ?1, ?2, ?3 WHERE "+
			"(SELECT count(*) FROM records WHERE kind = ?1 AND name <> ?2) < ?4 ON CONFLICT (kind, name) "+onConflict+
			" RETURNING body", r.Kind, r.Name, r.Body, sessions.MaxRecords).Scan(&r.Body))
		if err == nil && !kept {
			err = handoff.Fault(handoff.CodeLimited, "there are too many of them", r.Kind)
		}
		return err
	})
	return r, err
}

// Records implements [sessions.Records].
func (s records) Records(ctx context.Context, kind string) ([]sessions.Record, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT name, body FROM records WHERE kind = ? ORDER BY name", kind)
	all, err := collect(rows, err, func(row *sql.Rows, r *sessions.Record) error {
		r.Kind = kind
		return row.Scan(&r.Name, &r.Body)
	})
	return all, s.fault(err)
}

// DropRecordAs implements [sessions.Records].
func (s records) DropRecordAs(ctx context.Context, was sessions.Record) (bool, error) {
	return s.changed(ctx, "DELETE FROM records WHERE kind = ? AND name = ? AND body = ?", was.Kind, was.Name, was.Body)
}

// DropRecord implements [sessions.Records].
func (s records) DropRecord(ctx context.Context, kind, name string) (bool, error) {
	return s.changed(ctx, "DELETE FROM records WHERE kind = ? AND name = ?", kind, name)
}
