package redis

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"slices"

	"switchboard/handoff"
	"switchboard/sessions"
)

var machineScript = script("machine")

// machines stores the machines that joined, in one hash by public key.
type machines struct{ *engine }

// ChangeMachine implements [sessions.Machines].
func (s machines) ChangeMachine(ctx context.Context, was, is sessions.Machine) (bool, error) {
	if err := is.Check(); err != nil {
		return false, err
	}
	n, err := machineScript.Run(ctx, s.client, []string{s.machinesKey()}, hex.EncodeToString(is.Key), handoff.Encode(is),
		was.Name, base64.StdEncoding.EncodeToString(was.Body)).Int() // as encoding/json writes bytes
	return n > 0, s.fault(err)
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
