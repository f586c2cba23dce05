package redis

import (
	"context"
	"crypto/sha256"
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
	appScript     = script("app")
	appDropScript = script("app_drop")
)

// apps keeps programs that people let act for them.
type apps struct{ *engine }

// PutApp implements [sessions.Apps].
func (s apps) PutApp(ctx context.Context, a sessions.App) (bool, error) { return s.put(ctx, a, "") }

// ChangeApp implements [sessions.Apps].
func (s apps) ChangeApp(ctx context.Context, a sessions.App, from [sha256.Size]byte) (bool, error) {
	return s.put(ctx, a, hex.EncodeToString(from[:]))
}

func (s apps) put(ctx context.Context, a sessions.App, from string) (bool, error) {
	n, err := appScript.Run(ctx, s.client, s.appKeys(a.Principal, a.ID), a.ID, handoff.Encode(a),
		max(a.Ends.UnixMilli(), 1), time.Now().UnixMilli(), sessions.MaxApps, hex.EncodeToString(a.Next[:]), from).Int()
	return n > 0, s.fault(err)
}

// App implements [sessions.Apps].
func (s apps) App(ctx context.Context, id string) (a sessions.App, ok bool, err error) {
	key := s.appKey(id)
	data, err := s.client.HGet(ctx, key, "body").Result()
	if errors.Is(err, goredis.Nil) {
		return sessions.App{}, false, nil
	}
	if err != nil {
		return sessions.App{}, false, s.fault(err)
	}
	if json.Unmarshal([]byte(data), &a) != nil {
		s.badEntry(key)
		return sessions.App{}, false, nil
	}
	return a, a.Ends.After(time.Now()), nil
}

// Apps implements [sessions.Apps].
func (s apps) Apps(ctx context.Context, principal string) ([]sessions.App, error) {
	ids, err := s.client.ZRange(ctx, s.principalKey(principal, "apps"), 0, -1).Result()
	if err != nil {
		return nil, s.fault(err)
	}
	all := make([]sessions.App, 0, len(ids))
	for _, id := range ids { // at most MaxApps
		a, ok, err := s.App(ctx, id)
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, a)
		}
	}
	sessions.SortApps(all)
	return all, nil
}

// DropApp implements [sessions.Apps].
func (s apps) DropApp(ctx context.Context, principal, id string) (bool, error) {
	n, err := appDropScript.Run(ctx, s.client, s.appKeys(principal, id), id).Int()
	return n > 0, s.fault(err)
}

// appKeys are the keys of a principal's apps, by when they end, and of one of them.
func (s apps) appKeys(principal, id string) []string {
	return []string{s.principalKey(principal, "apps"), s.appKey(id)}
}
func (s apps) appKey(id string) string { return s.together + ":app:" + url.QueryEscape(id) }
