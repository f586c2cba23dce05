package redis

import (
	"cmp"
	"context"
	"encoding/hex"
	"slices"

	"switchboard/handoff"
	"switchboard/sessions"
)

// machines stores the machines that joined, in one hash by public key.
type machines struct{ *engine }

// PutMachine implements [sessions.Machines].
func (s machines) PutMachine(ctx context.Context, m sessions.Machine) error {
	if err := m.Check(); err != nil {
		return err
	}
	return s.fault(s.client.HSet(ctx, s.machinesKey(), hex.EncodeToString(m.Key), handoff.Encode(m)).Err())
}

// Machines implements [sessions.Machines].
func (s machines) Machines(ctx context.Context) ([]sessions.Machine, error) {
	rows, err := s.client.HVals(ctx, s.machinesKey()).Result()
	if err != nil {
		return nil, s.fault(err)
	}
	all := slices.DeleteFunc(parse[sessions.Machine](s.engine, s.machinesKey(), rows...), func(m sessions.Machine) bool {
		if m.Check() == nil {
			return false
		}
		s.badEntry(s.machinesKey())
		return true
	})
	slices.SortFunc(all, func(a, b sessions.Machine) int {
		return cmp.Or(a.Joined.Compare(b.Joined), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// DropMachine implements [sessions.Machines].
func (s machines) DropMachine(ctx context.Context, key []byte) (bool, error) {
	n, err := s.client.HDel(ctx, s.machinesKey(), hex.EncodeToString(key)).Result()
	return n > 0, s.fault(err)
}

func (s machines) machinesKey() string { return s.prefix + ":machines" }
