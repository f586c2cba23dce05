package sqlite

import (
	"context"
	"database/sql"

	"switchboard/sessions"
)

// machines stores the machines that joined.
type machines struct{ *file }

// ChangeMachine implements [sessions.Machines].
func (s machines) ChangeMachine(ctx context.Context, was, is sessions.Machine) (bool, error) {
	if err := is.Check(); err != nil {
		return false, err
	}
	if was.Key == nil {
		return s.changed(ctx, "INSERT INTO machines (key, name, joined, body) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
			is.Key, is.Name, is.Joined.UnixMilli(), is.Body)
	}
	return s.changed(ctx, "UPDATE machines SET name = ?, body = ? WHERE key = ? AND name = ? AND body IS ?", is.Name,
		is.Body, is.Key, was.Name, was.Body)
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
