package sqlite

import (
	"context"
	"crypto/sha256"
	"time"

	"switchboard/sessions"
)

// codes stores the codes with which pages log in.
type codes struct{ *file }

// PutCode implements [sessions.Codes].
func (s codes) PutCode(ctx context.Context, c sessions.Code) error {
	return s.change(ctx, func(ctx context.Context, tx transaction) error {
		if err := dropEndedCodes(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO codes (sum, principal, key, login, ends) VALUES (?, ?, ?, ?, ?)",
			c.Sum[:], c.Principal, c.Key[:], c.Login[:], c.Ends.UnixNano()); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "DELETE FROM codes WHERE id IN (SELECT id FROM codes WHERE principal = ? AND key = ? "+
			"ORDER BY ends DESC, id DESC LIMIT -1 OFFSET ?)", c.Principal, c.Key[:], sessions.MaxCodes)
		return err
	})
}

// SpendCode implements [sessions.Codes].
func (s codes) SpendCode(ctx context.Context, sum [sha256.Size]byte) (c sessions.Code, found bool, err error) {
	err = s.change(ctx, func(ctx context.Context, tx transaction) error {
		err := dropEndedCodes(ctx, tx)
		if err == nil {
			found, err = s.found(tx.QueryRowContext(ctx, "DELETE FROM codes WHERE sum = ? "+
				"RETURNING sum, principal, key, login, ends", sum[:]).
				Scan(digest{&c.Sum}, &c.Principal, digest{&c.Key}, digest{&c.Login}, nanos{&c.Ends}))
		}
		return err
	})
	return c, found && err == nil, err
}

// dropEndedCodes drops the codes that have ended.
func dropEndedCodes(ctx context.Context, tx transaction) error {
	_, err := tx.ExecContext(ctx, "DELETE FROM codes WHERE ends <= ?", time.Now().UnixNano())
	return err
}
