package redis

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff"
	"switchboard/sessions"
)

var (
	//go:embed secret.lua
	secretSource string

	secretScript = goredis.NewScript(secretSource)
)

// PutSecret keeps a client secret. It is false, and nothing is kept, while the principal has
// [sessions.MaxSecrets] that have not ended.
func (s *Store) PutSecret(ctx context.Context, secret sessions.Secret) (bool, error) {
	data, err := json.Marshal(secret)
	if err != nil {
		return false, handoff.Fault(handoff.CodeInternal, "", "encode a secret: "+err.Error())
	}
	sum := hex.EncodeToString(secret.Sum[:])
	keys := []string{s.prefix + ":{" + url.QueryEscape(secret.Principal) + "}:secrets", s.secretKeys() + sum}
	n, err := secretScript.Run(ctx, s.client, keys, sum, data, max(secret.Ends.UnixMilli(), 1), time.Now().UnixMilli(), sessions.MaxSecrets).Int()
	return n > 0, s.fault(err)
}

// Secret finds a client secret by the sum of its text; one that has ended is none.
func (s *Store) Secret(ctx context.Context, sum [sha256.Size]byte) (sessions.Secret, bool, error) {
	secret, ok, err := entryOf[sessions.Secret](ctx, s, s.secretKeys(), sum)
	return secret, ok && secret.Ends.After(time.Now()), err
}

// entryOf reads what is kept by the sum of a text, under keys that begin so.
func entryOf[T any](ctx context.Context, s *Store, keys string, sum [sha256.Size]byte) (entry T, ok bool, err error) {
	data, err := s.client.Get(ctx, keys+hex.EncodeToString(sum[:])).Result()
	if errors.Is(err, goredis.Nil) {
		return entry, false, nil
	}
	if err != nil {
		return entry, false, s.fault(err)
	}
	entry, ok = parsed[T](s, keys, data)
	return entry, ok, nil
}

// parsed reads an entry under keys that begin so; one bad entry must not hide the others.
func parsed[T any](s *Store, keys, data string) (entry T, ok bool) {
	if err := json.Unmarshal([]byte(data), &entry); err != nil {
		s.badEntry(keys)
		return *new(T), false
	}
	return entry, true
}

// secretKeys begins the key of each secret; its sum follows.
func (s *Store) secretKeys() string { return s.prefix + ":secret:" }
