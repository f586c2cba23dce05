package sqlite

import (
	"context"
	"time"
)

// spent stores the sums of what callers spent.
type spent struct{ *file }

// Spend implements [sessions.Logins].
func (s spent) Spend(ctx context.Context, name, day string, amount int64) (int64, error) {
	var total int64
	err := s.change(ctx, func(ctx context.Context, tx transaction) error {
		return tx.QueryRowContext(ctx, "INSERT INTO spent (name, day, total, changed) VALUES (?, ?, ?, ?) "+
			"ON CONFLICT (name, day) DO UPDATE SET total = total + excluded.total, changed = excluded.changed RETURNING total",
			name, day, amount, time.Now().UnixMilli()).Scan(&total)
	})
	return total, err
}
