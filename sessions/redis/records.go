package redis

import (
	"cmp"
	"context"
	"slices"

	"switchboard/handoff"
	"switchboard/sessions"
)

var (
	recordScript     = script("record")
	recordDropScript = script("record_drop")
)

// records stores the records of the installation: a hash for each kind.
type records struct{ *engine }

// PutRecord implements [sessions.Records].
func (s records) PutRecord(ctx context.Context, r sessions.Record) error {
	_, err := s.putRecord(ctx, r, 0)
	return err
}

// KeepRecord implements [sessions.Records].
func (s records) KeepRecord(ctx context.Context, r sessions.Record) (sessions.Record, error) {
	return s.putRecord(ctx, r, 1)
}

func (s records) putRecord(ctx context.Context, r sessions.Record, keep int) (sessions.Record, error) {
	if err := r.Check(); err != nil {
		return r, err
	}
	reply, err := recordScript.Run(ctx, s.client, []string{s.recordsKey(r.Kind)}, r.Name, r.Body, keep,
		sessions.MaxRecords).StringSlice()
	if err != nil {
		return r, s.fault(err)
	}
	if len(reply) == 0 {
		return r, handoff.Fault(handoff.CodeLimited, "there are too many of them", r.Kind)
	}
	r.Body = []byte(reply[0])
	return r, nil
}

// Records implements [sessions.Records].
func (s records) Records(ctx context.Context, kind string) ([]sessions.Record, error) {
	found, err := s.client.HGetAll(ctx, s.recordsKey(kind)).Result()
	if err != nil {
		return nil, s.fault(err)
	}
	all := make([]sessions.Record, 0, len(found))
	for name, body := range found {
		all = append(all, sessions.Record{Kind: kind, Name: name, Body: []byte(body)})
	}
	slices.SortFunc(all, func(a, b sessions.Record) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// DropRecordAs implements [sessions.Records].
func (s records) DropRecordAs(ctx context.Context, was sessions.Record) (bool, error) {
	n, err := recordDropScript.Run(ctx, s.client, []string{s.recordsKey(was.Kind)}, was.Name, was.Body).Int()
	return n > 0, s.fault(err)
}

// DropRecord implements [sessions.Records].
func (s records) DropRecord(ctx context.Context, kind, name string) (bool, error) {
	n, err := s.client.HDel(ctx, s.recordsKey(kind), name).Result()
	return n > 0, s.fault(err)
}

func (s records) recordsKey(kind string) string { return s.prefix + ":records:" + kind }
