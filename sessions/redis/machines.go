package redis

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"slices"

	"switchboard/handoff"
	"switchboard/sessions"
)

// machines keeps those that joined, in one hash by key.
type machines struct{ *engine }

// PutMachine implements [sessions.Machines].
func (s machines) PutMachine(ctx context.Context, m sessions.Machine) error {
	if err := m.Check(); err != nil {
		return err
	}
	data, err := json.Marshal(m)
	if err != nil {
		return handoff.Fault(handoff.CodeInternal, "", "encode a machine: "+err.Error())
	}
	return s.fault(s.client.HSet(ctx, s.machinesKey(), hex.EncodeToString(m.Key), data).Err())
}

// Machines implements [sessions.Machines].
func (s machines) Machines(ctx context.Context) ([]sessions.Machine, error) {
	rows, err := s.client.HGetAll(ctx, s.machinesKey()).Result()
	if err != nil {
		return nil, s.fault(err)
	}
	all := make([]sessions.Machine, 0, len(rows))
	for _, row := range rows {
		var m sessions.Machine
		if json.Unmarshal([]byte(row), &m) != nil || m.Check() != nil {
			s.badEntry(s.machinesKey())
			continue
		}
		all = append(all, m)
	}
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
