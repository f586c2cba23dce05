package redis

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff"
	"switchboard/sessions"
)

var (
	loginScript  = script("login")
	loginsScript = script("logins")
	spendScript  = script("spend")
	secretScript = script("secret")
)

// credentials stores logins, client secrets and the sums of what callers spent.
type credentials struct{ *engine }

// PutLogin implements [sessions.Logins].
func (s credentials) PutLogin(ctx context.Context, l sessions.Login) error {
	sum := hex.EncodeToString(l.Sum[:])
	keys := []string{s.loginsKey(l.Principal), s.loginKeys() + sum}
	return s.fault(loginScript.Run(ctx, s.client, keys, l.ID, sum, handoff.Encode(l), s.loginKeys(),
		max(l.Ends.UnixMilli(), 1)).Err())
}

// UseLogin implements [sessions.Logins].
func (s credentials) UseLogin(ctx context.Context, l sessions.Login, at time.Time) error {
	l.Used = at
	err := s.client.SetArgs(ctx, s.loginKeys()+hex.EncodeToString(l.Sum[:]), handoff.Encode(l),
		goredis.SetArgs{Mode: "XX", KeepTTL: true}).Err()
	if errors.Is(err, goredis.Nil) { // it ended
		return nil
	}
	return s.fault(err)
}

// Login implements [sessions.Logins].
func (s credentials) Login(ctx context.Context, sum [sha256.Size]byte) (sessions.Login, bool, error) {
	l, ok, err := bySum[sessions.Login](ctx, s.engine, s.loginKeys(), sum)
	return l, ok && l.Ends.After(time.Now()), err
}

// Logins implements [sessions.Logins].
func (s credentials) Logins(ctx context.Context, principal string) ([]sessions.Login, error) {
	rows, err := loginsScript.Run(ctx, s.client, []string{s.loginsKey(principal)}, s.loginKeys(), "").StringSlice()
	if err != nil {
		return nil, s.fault(err)
	}
	all := parse[sessions.Login](s.engine, s.loginKeys(), rows...)
	sessions.SortLogins(all)
	return all, nil
}

// DropLogin implements [sessions.Logins].
func (s credentials) DropLogin(ctx context.Context, principal, id string) (bool, error) {
	if id == "" {
		return false, nil
	}
	n, err := loginsScript.Run(ctx, s.client, []string{s.loginsKey(principal)}, s.loginKeys(), id).Int()
	return n > 0, s.fault(err)
}

// Spend implements [sessions.Logins].
func (s credentials) Spend(ctx context.Context, name, day string, amount int64) (int64, error) {
	key := s.key(url.QueryEscape(name), "spent:"+url.QueryEscape(day))
	sum, err := spendScript.Run(ctx, s.client, []string{key}, amount, sessions.SpentFor.Milliseconds()).Int64()
	return sum, s.fault(err)
}

// loginsKey holds the ids of a principal's logins with the sums of their tokens.
func (s credentials) loginsKey(principal string) string {
	return s.principalKey(principal, "logins")
}

// loginKeys begins the key of each login; the sum of its token follows.
func (s credentials) loginKeys() string { return s.together + ":login:" }

// PutSecret stores a client secret. It stores nothing and returns false while the principal has [sessions.MaxSecrets]
// that have not ended.
func (s credentials) PutSecret(ctx context.Context, secret sessions.Secret) (bool, error) {
	sum := hex.EncodeToString(secret.Sum[:])
	keys := []string{s.principalKey(secret.Principal, "secrets"), s.secretKeys() + sum}
	n, err := secretScript.Run(ctx, s.client, keys, sum, handoff.Encode(secret), max(secret.Ends.UnixMilli(), 1),
		time.Now().UnixMilli(), sessions.MaxSecrets).Int()
	return n > 0, s.fault(err)
}

// Secret returns the client secret whose text has a sum; false when there is none or it has ended.
func (s credentials) Secret(ctx context.Context, sum [sha256.Size]byte) (sessions.Secret, bool, error) {
	secret, ok, err := bySum[sessions.Secret](ctx, s.engine, s.secretKeys(), sum)
	return secret, ok && secret.Ends.After(time.Now()), err
}

// bySum reads the value under a key that ends in the sum of a text.
func bySum[T any](ctx context.Context, e *engine, keyPrefix string, sum [sha256.Size]byte) (T, bool, error) {
	text, err := e.client.Get(ctx, keyPrefix+hex.EncodeToString(sum[:])).Result()
	return parseOne[T](e, keyPrefix, text, err)
}

// secretKeys begins the key of each secret; the sum of its text follows.
func (s credentials) secretKeys() string { return s.together + ":secret:" }
