package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"time"

	"switchboard/sessions"
)

// credentials stores logins, client secrets and the sums of what callers spent.
type credentials struct{ *file }

const loginColumns = "principal, id, sum, key, host, device, made, used, ends"

// PutLogin implements [sessions.Logins].
func (s credentials) PutLogin(ctx context.Context, l sessions.Login) error {
	_, err := s.changed(ctx, "INSERT OR REPLACE INTO logins ("+loginColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		l.Principal, l.ID, l.Sum[:], l.Key[:], l.Host, l.Device, l.Made.UnixNano(), l.Used.UnixNano(), l.Ends.UnixNano())
	return err
}

// UseLogin implements [sessions.Logins].
func (s credentials) UseLogin(ctx context.Context, l sessions.Login, at time.Time) error {
	_, err := s.changed(ctx, "UPDATE logins SET used = ? WHERE sum = ?", at.UnixNano(), l.Sum[:])
	return err
}

// Login implements [sessions.Logins].
func (s credentials) Login(ctx context.Context, sum [sha256.Size]byte) (sessions.Login, bool, error) {
	all, err := s.logins(ctx, "sum = ?", sum[:])
	if err != nil || len(all) == 0 {
		return sessions.Login{}, false, err
	}
	return all[0], true, nil
}

// Logins implements [sessions.Logins].
func (s credentials) Logins(ctx context.Context, principal string) ([]sessions.Login, error) {
	all, err := s.logins(ctx, "principal = ?", principal)
	sessions.SortLogins(all)
	return all, err
}

// logins returns the logins for which a condition with one argument holds and that have not ended.
func (s credentials) logins(ctx context.Context, where string, arg any) ([]sessions.Login, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT "+loginColumns+" FROM logins WHERE ends > ? AND "+where,
		time.Now().UnixNano(), arg)
	all, err := collect(rows, err, func(row *sql.Rows, l *sessions.Login) error {
		return row.Scan(&l.Principal, &l.ID, digest{&l.Sum}, digest{&l.Key}, &l.Host, &l.Device, nanos{&l.Made},
			nanos{&l.Used}, nanos{&l.Ends})
	})
	return all, s.fault(err)
}

// DropLogin implements [sessions.Logins].
func (s credentials) DropLogin(ctx context.Context, principal, id string) (bool, error) {
	return s.changed(ctx, "DELETE FROM logins WHERE principal = ? AND id = ?", principal, id)
}

// Spend implements [sessions.Logins].
func (s credentials) Spend(ctx context.Context, name, day string, amount int64) (int64, error) {
	var total int64
	err := s.change(ctx, func(ctx context.Context, tx transaction) error {
		return tx.QueryRowContext(ctx, "INSERT INTO spent (name, day, total, changed) VALUES (?, ?, ?, ?) "+
			"ON CONFLICT (name, day) DO UPDATE SET total = total + excluded.total, changed = excluded.changed RETURNING total",
			name, day, amount, time.Now().UnixMilli()).Scan(&total)
	})
	return total, err
}

// PutSecret stores a client secret. It stores nothing and returns false while the principal has [sessions.MaxSecrets]
// that have not ended.
func (s credentials) PutSecret(ctx context.Context, secret sessions.Secret) (bool, error) {
	return s.changed(ctx, "INSERT INTO secrets (sum, principal, key, login, user, session, ends) SELECT ?, ?, ?, ?, ?, ?, ? "+
		"WHERE (SELECT count(*) FROM secrets WHERE principal = ? AND ends > ?) < ?",
		secret.Sum[:], secret.Principal, secret.Key[:], secret.Login[:], secret.User, secret.Session, secret.Ends.UnixNano(),
		secret.Principal, time.Now().UnixNano(), sessions.MaxSecrets)
}

// Secret returns the client secret whose text has a sum; false when there is none or it has ended.
func (s credentials) Secret(ctx context.Context, sum [sha256.Size]byte) (sessions.Secret, bool, error) {
	var secret sessions.Secret
	found, err := s.found(s.read.QueryRowContext(ctx, "SELECT sum, principal, key, login, user, session, ends FROM secrets "+
		"WHERE sum = ? AND ends > ?", sum[:], time.Now().UnixNano()).Scan(digest{&secret.Sum}, &secret.Principal,
		digest{&secret.Key}, digest{&secret.Login}, &secret.User, &secret.Session, nanos{&secret.Ends}))
	return secret, found, err
}
