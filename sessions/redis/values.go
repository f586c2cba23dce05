package redis

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

var (
	valueScript  = script("value")
	valuesScript = script("values")
)

// values stores what belongs to no caller. On a Cluster, all values of a kind are in one slot.
type values struct{ *engine }

// never is the end of a value that has none.
const never = "+inf"

// Value implements [sessions.Values].
func (s values) Value(ctx context.Context, kind, name string) (sessions.Value, error) {
	all, err := s.client.HMGet(ctx, s.valueKeys(kind)+name, "version", "group", "body", "ends").Result()
	if err != nil {
		return sessions.Value{}, s.fault(err)
	}
	if all[0] == nil {
		return sessions.Value{}, nil
	}
	v, ok := asValue(kind, append([]any{name}, all...))
	if !ok {
		return v, unexpected(kind)
	}
	return v, nil
}

// Values implements [sessions.Values].
func (s values) Values(ctx context.Context, kind, group string) ([]sessions.Value, error) {
	rows, err := valuesScript.Run(ctx, s.client, []string{s.groupKey(kind, group)}, s.valueKeys(kind)).Slice()
	if err != nil {
		return nil, s.fault(err)
	}
	all := make([]sessions.Value, 0, len(rows))
	for _, row := range rows {
		fields, _ := row.([]any)
		v, ok := asValue(kind, fields)
		if !ok {
			return nil, unexpected(kind)
		}
		if v.There() {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b sessions.Value) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// asValue returns the value of a reply. One that has ended by our clock has no version.
func asValue(kind string, fields []any) (sessions.Value, bool) {
	v := sessions.Value{Kind: kind}
	var body, ends string
	if !replied(fields, &v.Name, &v.Version, &v.Group, &body, &ends) {
		return v, false
	}
	v.Body = []byte(body)
	if ends == never {
		return v, true
	}
	ms, err := strconv.ParseInt(ends, 10, 64)
	if v.Ends = time.UnixMilli(ms).UTC(); !v.Ends.After(time.Now()) {
		v.Version = ""
	}
	return v, err == nil
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
