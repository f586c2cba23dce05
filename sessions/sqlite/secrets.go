package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"time"

	"switchboard/sessions"
)

// PutSecret keeps a client secret. It is false, and nothing is kept, while the principal has
// [sessions.MaxSecrets] that have not ended.
func (s *Store) PutSecret(ctx context.Context, secret sessions.Secret) (kept bool, err error) {
	return s.changed(ctx, "INSERT INTO secrets (sum, principal, key, user, session, ends) SELECT ?, ?, ?, ?, ?, ? "+
		"WHERE (SELECT count(*) FROM secrets WHERE principal = ? AND ends > ?) < ?",
		secret.Sum[:], secret.Principal, secret.Key[:], secret.User, secret.Session, secret.Ends.UnixNano(),
		secret.Principal, time.Now().UnixNano(), sessions.MaxSecrets)
}

// Secret finds a client secret by the sum of its text; one that has ended is none.
func (s *Store) Secret(ctx context.Context, sum [sha256.Size]byte) (sessions.Secret, bool, error) {
	secret := sessions.Secret{Sum: sum}
	var key []byte
	var ends int64
	err := s.read.QueryRowContext(ctx, "SELECT principal, key, user, session, ends FROM secrets WHERE sum = ? AND ends > ?", sum[:], time.Now().UnixNano()).
		Scan(&secret.Principal, &key, &secret.User, &secret.Session, &ends)
	if errors.Is(err, sql.ErrNoRows) {
		return sessions.Secret{}, false, nil
	}
	if err != nil {
		return sessions.Secret{}, false, s.fault(err)
	}
	copy(secret.Key[:], key)
	secret.Ends = time.Unix(0, ends).UTC()
	return secret, true, nil
}
