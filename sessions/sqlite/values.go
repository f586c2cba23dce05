package sqlite

import (
	"context"
	"database/sql"
	"math"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

// values stores what belongs to no caller. A value that never ends has the greatest number as its end.
type values struct{ *file }

// Value implements [sessions.Values].
func (s values) Value(ctx context.Context, kind, name string) (sessions.Value, error) {
	all, err := s.all(ctx, kind, "name", name)
	if err != nil || len(all) == 0 {
		return sessions.Value{}, err
	}
	return all[0], nil
}

// Values implements [sessions.Values].
func (s values) Values(ctx context.Context, kind, group string) ([]sessions.Value, error) {
	return s.all(ctx, kind, "grp", group)
}

func (s values) all(ctx context.Context, kind, column, is string) ([]sessions.Value, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT name, grp, version, body, ends FROM vals WHERE kind = ? AND "+column+
		" = ? AND ends > ? ORDER BY name", kind, is, time.Now().UnixMilli())
	all, err := collect(rows, err, func(row *sql.Rows, v *sessions.Value) error {
		var ends int64
		err := row.Scan(&v.Name, &v.Group, &v.Version, &v.Body, &ends)
		if v.Kind = kind; ends != math.MaxInt64 {
			v.Ends = time.UnixMilli(ends).UTC()
		}
		return err
	})
	return all, s.fault(err)
}

// Change implements [sessions.Values].
func (s values) Change(ctx context.Context, c sessions.Change) (changed bool, err error) {
	if err := c.Check(); err != nil {
		return false, err
	}
	v, ends := c.Is, int64(math.MaxInt64)
	if !v.Ends.IsZero() {
		ends = v.Ends.UnixMilli()
	}
	now := time.Now().UnixMilli()
	err = s.change(ctx, func(ctx context.Context, tx transaction) error {
		var was string
		err := tx.QueryRowContext(ctx, "SELECT version FROM vals WHERE kind = ? AND name = ? AND ends > ?", v.Kind, v.Name,
			now).Scan(&was)
		if _, err := s.found(err); err != nil || was != c.Was {
			return err
		}
		changed = true
		if v.Body == nil {
			_, err = tx.ExecContext(ctx, "DELETE FROM vals WHERE kind = ? AND name = ?", v.Kind, v.Name)
			return err
		}
		if was == "" && c.Most > 0 {
			var n int
			if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM vals WHERE kind = ? AND grp = ? AND ends > ?", v.Kind,
				v.Group, now).Scan(&n); err != nil {
				return err
			}
			if n >= c.Most {
				return handoff.Fault(handoff.CodeLimited, "there are too many of them", v.Kind)
			}
		}
		_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO vals (kind, name, grp, version, body, ends) "+
			"VALUES (?, ?, ?, ?, ?, ?)", v.Kind, v.Name, v.Group, v.Version, v.Body, ends)
		return err
	})
	return changed && err == nil, err
}
