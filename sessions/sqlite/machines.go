package sqlite

import (
	"context"
	"database/sql"

	"switchboard/sessions"
)

// machines stores the machines that joined.
type machines struct{ *file }

// PutMachine implements [sessions.Machines].
func (s machines) PutMachine(ctx context.Context, m sessions.Machine) error {
	if err := m.Check(); err != nil {
		return err
	}
	_, err := s.changed(ctx, "INSERT OR REPLACE INTO machines (key, name, joined, body) VALUES (?, ?, ?, ?)", m.Key,
		m.Name, m.Joined.UnixMilli(), m.Body)
	return err
}

// Machines implements [sessions.Machines].
func (s machines) Machines(ctx context.Context) ([]sessions.Machine, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT key, name, joined, body FROM machines ORDER BY joined, name")
	all, err := collect(rows, err, func(row *sql.Rows, m *sessions.Machine) error {
		return row.Scan(&m.Key, &m.Name, millis{&m.Joined}, &m.Body)
	})
	return all, s.fault(err)
}

// DropMachine implements [sessions.Machines].
func (s machines) DropMachine(ctx context.Context, key []byte) (bool, error) {
	return s.changed(ctx, "DELETE FROM machines WHERE key = ?", key)
}
