package redis

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff"
	"switchboard/sessions"
)

var valueScript = script("value")

// values stores what belongs to no caller. On a Cluster, all values of a kind are in one slot.
type values struct{ *engine }

// never is the end of a value that has none.
const never = "+inf"

// Value implements [sessions.Values].
func (s values) Value(ctx context.Context, kind, name string) (sessions.Value, error) {
	all, err := s.named(ctx, kind, name)
	if err != nil || len(all) == 0 {
		return sessions.Value{}, err
	}
	return all[0], nil
}

// Values implements [sessions.Values].
func (s values) Values(ctx context.Context, kind, group string) ([]sessions.Value, error) {
	names, err := s.client.ZRange(ctx, s.groupKey(kind, group), 0, -1).Result()
	if err != nil {
		return nil, s.fault(err)
	}
	slices.Sort(names)
	return s.named(ctx, kind, names...)
}

// named returns the values with these names that have not ended.
func (s values) named(ctx context.Context, kind string, names ...string) ([]sessions.Value, error) {
	rows := make([]*goredis.SliceCmd, len(names))
	_, err := s.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, name := range names {
			rows[i] = p.HMGet(ctx, s.valueKeys(kind)+name, "version", "group", "body", "ends")
		}
		return nil
	})
	if err != nil {
		return nil, s.fault(err)
	}
	all := make([]sessions.Value, 0, len(names))
	for i, row := range rows {
		v := sessions.Value{Kind: kind, Name: names[i]}
		var body, ends string
		switch {
		case row.Val()[0] == nil: // there is none
			continue
		case !replied(row.Val(), &v.Version, &v.Group, &body, &ends):
			return nil, unexpected(kind)
		}
		if v.Body = []byte(body); ends != never {
			ms, err := strconv.ParseInt(ends, 10, 64)
			if err != nil {
				return nil, unexpected(kind)
			}
			if v.Ends = time.UnixMilli(ms).UTC(); !v.Ends.After(time.Now()) {
				continue
			}
		}
		all = append(all, v)
	}
	return all, nil
}

// Change implements [sessions.Values].
func (s values) Change(ctx context.Context, c sessions.Change) (bool, error) {
	if err := c.Check(); err != nil {
		return false, err
	}
	v, ends := c.Is, never
	if !v.Ends.IsZero() {
		ends = strconv.FormatInt(max(v.Ends.UnixMilli(), 1), 10)
	}
	n, err := valueScript.Run(ctx, s.client, []string{s.valueKeys(v.Kind) + v.Name, s.groupKey(v.Kind, v.Group)}, c.Was,
		v.Version, v.Name, v.Group, v.Body, ends, time.Now().UnixMilli(), c.Most).Int()
	if n < 0 && err == nil {
		err = handoff.Fault(handoff.CodeLimited, "there are too many of them", v.Kind)
	}
	return n > 0 && err == nil, s.fault(err)
}

// valueKeys begins the key of each value of a kind; its name follows.
func (s values) valueKeys(kind string) string { return s.key("v:"+url.QueryEscape(kind), "value:") }

// groupKey holds the names of a group of values, sorted by when they end.
func (s values) groupKey(kind, group string) string {
	return s.key("v:"+url.QueryEscape(kind), "group:"+group)
}
