package redis

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

var (
	loginScript  = script("login")
	loginsScript = script("logins")
	spendScript  = script("spend")
	secretScript = script("secret")
)

// credentials keeps logins, client secrets and the minutes of calls.
type credentials struct{ *engine }

// PutLogin keeps a login, in the place of one of the same principal with the same id.
func (s credentials) PutLogin(ctx context.Context, l sessions.Login) error {
	sum := hex.EncodeToString(l.Sum[:])
	keys := []string{s.loginsKey(l.Principal), s.loginKeys() + sum}
	return s.fault(loginScript.Run(ctx, s.client, keys, l.ID, sum, handoff.Encode(l), s.loginKeys(),
		max(l.Ends.UnixMilli(), 1)).Err())
}

// Login finds a login by the sum of its token; one that has ended is none.
func (s credentials) Login(ctx context.Context, sum [sha256.Size]byte) (sessions.Login, bool, error) {
	l, ok, err := bySum[sessions.Login](ctx, s.engine, s.loginKeys(), sum)
	return l, ok && l.Ends.After(time.Now()), err
}

// Logins returns a principal's logins, the one that was used last first.
func (s credentials) Logins(ctx context.Context, principal string) ([]sessions.Login, error) {
	rows, err := loginsScript.Run(ctx, s.client, []string{s.loginsKey(principal)}, s.loginKeys(), "").StringSlice()
	if err != nil {
		return nil, s.fault(err)
	}
	all := parse[sessions.Login](s.engine, s.loginKeys(), rows...)
	sessions.SortLogins(all)
	return all, nil
}

// DropLogin ends a login of a principal; false when there is none with the id.
func (s credentials) DropLogin(ctx context.Context, principal, id string) (bool, error) {
	if id == "" {
		return false, nil
	}
	n, err := loginsScript.Run(ctx, s.client, []string{s.loginsKey(principal)}, s.loginKeys(), id).Int()
	return n > 0, s.fault(err)
}

// Spend adds an amount to a name's day, "2026-11-22", and returns the day's sum. It is kept two days.
func (s credentials) Spend(ctx context.Context, name, day string, amount int64) (int64, error) {
	key := s.key(url.QueryEscape(name), "spent:"+url.QueryEscape(day))
	sum, err := spendScript.Run(ctx, s.client, []string{key}, amount, sessions.SpentFor.Milliseconds()).Int64()
	return sum, s.fault(err)
}

// The keys: a principal's logins by id, and each login by the sum of its token.
func (s credentials) loginsKey(principal string) string {
	return s.principalKey(principal, "logins")
}
func (s credentials) loginKeys() string { return s.together + ":login:" }

// PutSecret keeps a client secret. It is false, and nothing is kept, while the principal has
// [sessions.MaxSecrets] that have not ended.
func (s credentials) PutSecret(ctx context.Context, secret sessions.Secret) (bool, error) {
	sum := hex.EncodeToString(secret.Sum[:])
	keys := []string{s.principalKey(secret.Principal, "secrets"), s.secretKeys() + sum}
	n, err := secretScript.Run(ctx, s.client, keys, sum, handoff.Encode(secret), max(secret.Ends.UnixMilli(), 1),
		time.Now().UnixMilli(), sessions.MaxSecrets).Int()
	return n > 0, s.fault(err)
}

// Secret finds a client secret by the sum of its text; one that has ended is none.
func (s credentials) Secret(ctx context.Context, sum [sha256.Size]byte) (sessions.Secret, bool, error) {
	secret, ok, err := bySum[sessions.Secret](ctx, s.engine, s.secretKeys(), sum)
	return secret, ok && secret.Ends.After(time.Now()), err
}

// bySum reads what is kept by the sum of a text, under keys that begin so.
func bySum[T any](ctx context.Context, e *engine, keys string, sum [sha256.Size]byte) (T, bool, error) {
	text, err := e.client.Get(ctx, keys+hex.EncodeToString(sum[:])).Result()
	return parseOne[T](e, keys, text, err)
}

// secretKeys begins the key of each secret; its sum follows.
func (s credentials) secretKeys() string { return s.together + ":secret:" }
