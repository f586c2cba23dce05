package sqlite

import (
	"context"
	"database/sql"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/sessions"
)

// stickies stores the sticky threads of callers.
type stickies struct{ *file }

// List returns the sticky threads of a caller, newest first.
func (s stickies) List(ctx context.Context, c handoff.Caller) ([]handoff.Sticky, error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return nil, err
	}
	type fieldValue struct{ field, value string }
	rows, err := s.read.QueryContext(ctx, "SELECT field, value FROM stickies WHERE caller = ? AND changed > ?", name,
		time.Now().Add(-sessions.StickyFor).UnixMilli())
	kept, err := collect(rows, err, func(row *sql.Rows, f *fieldValue) error { return row.Scan(&f.field, &f.value) })
	if err != nil {
		return nil, s.fault(err)
	}
	all := []handoff.Sticky{}
	for _, f := range kept {
		sticky, ok := sessions.DecodeSticky(f.field, f.value)
		if !ok { // one bad entry must not hide the others
			s.counts.badEntries.Add(1)
			s.log.Warn("unreadable sticky thread left out", zap.String("caller", name), zap.String("field", f.field))
			continue
		}
		all = append(all, sticky)
	}
	sessions.SortStickies(all)
	return all, nil
}

// Set stores the sticky thread of its server and project. It renews the life of all stickies of the caller.
func (s stickies) Set(ctx context.Context, c handoff.Caller, sticky handoff.Sticky) error {
	name, err := sessions.CallerName(c)
	if err != nil {
		return err
	}
	field, value, err := sessions.EncodeSticky(sticky)
	if err != nil {
		return err
	}
	return s.changeFenced(ctx, func(ctx context.Context, tx transaction) error {
		now := time.Now().UnixMilli()
		if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO stickies (caller, field, value, changed) VALUES (?, "+
			"?, ?, ?)",
			name, field, value, now); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "UPDATE stickies SET changed = ? WHERE caller = ?", now, name)
		return err
	})
}

// Clear forgets the sticky thread of exactly this server and project, if there is one. The target's thread is ignored.
func (s stickies) Clear(ctx context.Context, c handoff.Caller, t handoff.Target) error {
	name, err := sessions.CallerName(c)
	if err != nil {
		return err
	}
	return s.changeFenced(ctx, func(ctx context.Context, tx transaction) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM stickies WHERE caller = ? AND field = ?", name, sessions.StickyField(t))
		return err
	})
}
