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
	appScript     = script("app")
	appDropScript = script("app_drop")
)

// apps stores the programs that people let act for them.
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
func (s apps) App(ctx context.Context, id string) (sessions.App, bool, error) {
	key := s.appKey(id)
	text, err := s.client.HGet(ctx, key, "body").Result()
	a, ok, err := parseOne[sessions.App](s.engine, key, text, err)
	return a, ok && a.Ends.After(time.Now()), err
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

// appKeys returns the keys of a principal's list of apps, sorted by when they end, and of one app.
func (s apps) appKeys(principal, id string) []string {
	return []string{s.principalKey(principal, "apps"), s.appKey(id)}
}
func (s apps) appKey(id string) string { return s.together + ":app:" + url.QueryEscape(id) }
