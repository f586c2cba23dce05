package sqlite

import (
	"context"
	"time"

	"switchboard/sessions"
)

// machines keeps those that joined.
type machines struct{ *file }

// PutMachine implements [sessions.Machines].
func (s machines) PutMachine(ctx context.Context, m sessions.Machine) error {
	if err := m.Check(); err != nil {
		return err
	}
	return s.change(ctx, func(ctx context.Context, tx transaction) error {
		_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO machines (key, name, joined, body) VALUES (?, ?, ?, ?)", m.Key,
			m.Name, m.Joined.UnixMilli(), m.Body)
		return err
	})
}

// Machines implements [sessions.Machines].
func (s machines) Machines(ctx context.Context) ([]sessions.Machine, error) {
	all := []sessions.Machine{}
	for row, err := range each(s.read.QueryContext(ctx, "SELECT key, name, joined, body FROM machines "+
		"ORDER BY joined, name")) {
		var m sessions.Machine
		var joined int64
		if err == nil {
			err = row.Scan(&m.Key, &m.Name, &joined, &m.Body)
		}
		if err != nil {
			return nil, s.fault(err)
		}
		m.Joined = time.UnixMilli(joined).UTC()
		all = append(all, m)
	}
	return all, nil
}

// DropMachine implements [sessions.Machines].
func (s machines) DropMachine(ctx context.Context, key []byte) (bool, error) {
	return s.changed(ctx, "DELETE FROM machines WHERE key = ?", key)
}
