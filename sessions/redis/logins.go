package redis

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff"
	"switchboard/sessions"
)

var (
	//go:embed login.lua
	loginSource string
	//go:embed logins.lua
	loginsSource string
	//go:embed spend.lua
	spendSource string

	loginScript  = goredis.NewScript(loginSource)
	loginsScript = goredis.NewScript(loginsSource)
	spendScript  = goredis.NewScript(spendSource)
)

// PutLogin keeps a login, in the place of one of the same principal with the same id.
func (s *Store) PutLogin(ctx context.Context, l sessions.Login) error {
	data, err := json.Marshal(l)
	if err != nil {
		return handoff.Fault(handoff.CodeInternal, "", "encode a login: "+err.Error())
	}
	sum := hex.EncodeToString(l.Sum[:])
	keys := []string{s.loginsKey(l.Principal), s.loginKeys() + sum}
	return s.fault(loginScript.Run(ctx, s.client, keys, l.ID, sum, data, s.loginKeys(), max(l.Ends.UnixMilli(), 1)).Err())
}

// Login finds a login by the sum of its token; one that has ended is none.
func (s *Store) Login(ctx context.Context, sum [sha256.Size]byte) (sessions.Login, bool, error) {
	l, ok, err := entryOf[sessions.Login](ctx, s, s.loginKeys(), sum)
	return l, ok && l.Ends.After(time.Now()), err
}

// Logins returns a principal's logins, the one that was used last first.
func (s *Store) Logins(ctx context.Context, principal string) ([]sessions.Login, error) {
	rows, err := loginsScript.Run(ctx, s.client, []string{s.loginsKey(principal)}, s.loginKeys(), "").StringSlice()
	if err != nil {
		return nil, s.fault(err)
	}
	all := make([]sessions.Login, 0, len(rows))
	for _, row := range rows {
		if l, ok := parsed[sessions.Login](s, s.loginKeys(), row); ok {
			all = append(all, l)
		}
	}
	sessions.SortLogins(all)
	return all, nil
}

// DropLogin ends a login of a principal; false when there is none with the id.
func (s *Store) DropLogin(ctx context.Context, principal, id string) (bool, error) {
	if id == "" {
		return false, nil
	}
	n, err := loginsScript.Run(ctx, s.client, []string{s.loginsKey(principal)}, s.loginKeys(), id).Int()
	return n > 0, s.fault(err)
}

// Spend adds a time in calls to a name's day, "2026-11-22", and returns the day's sum. It is kept two days.
func (s *Store) Spend(ctx context.Context, name, day string, d time.Duration) (time.Duration, error) {
	key := s.prefix + ":{" + url.QueryEscape(name) + "}:spent:" + url.QueryEscape(day)
	sum, err := spendScript.Run(ctx, s.client, []string{key}, int64(d), sessions.SpentFor.Milliseconds()).Int64()
	return time.Duration(sum), s.fault(err)
}

// The keys: a principal's logins by id, and each login by the sum of its token.
func (s *Store) loginsKey(principal string) string {
	return s.prefix + ":{" + url.QueryEscape(principal) + "}:logins"
}
func (s *Store) loginKeys() string { return s.prefix + ":login:" }
