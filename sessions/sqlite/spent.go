package sqlite

import (
	"context"
	"time"
)

// spent stores the sums of what callers spent.
type spent struct{ *file }

// Spend implements [sessions.Logins]. The amount of a call is a row beside the sum.
func (s spent) Spend(ctx context.Context, name, day, call string, soFar int64) (int64, error) {
	var total int64
	err := s.change(ctx, func(ctx context.Context, tx transaction) error {
		add := func(name string, amount int64) error {
			return tx.QueryRowContext(ctx, "INSERT INTO spent (name, day, total, changed) VALUES (?, ?, ?, ?) "+
				"ON CONFLICT (name, day) DO UPDATE SET total = total + excluded.total, changed = excluded.changed "+
				"RETURNING total", name, day, amount, time.Now().UnixMilli()).Scan(&total)
		}
		if soFar == 0 {
			return add(name, 0)
		}
		ofCall := "call " + call + " of " + name
		if err := add(ofCall, 0); err != nil {
			return err
		}
		more := max(soFar-total, 0)
		if err := add(ofCall, more); err != nil {
			return err
		}
		return add(name, more)
	})
	return total, err
}
