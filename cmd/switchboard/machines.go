package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/acp"
	"switchboard/servers/codex"
	"switchboard/servers/joined"
	"switchboard/servers/responses"
	"switchboard/sessions"
)

// machinesKey is the file in the state directory with the key that machines know this service by.
const machinesKey = "machines.pem"

// machineStore keeps the machines that joined in a store.
type machineStore struct{ in sessions.Machines }

// PutMachine implements [joined.Store].
func (s machineStore) PutMachine(ctx context.Context, r joined.Record) error {
	return s.in.PutMachine(ctx, sessions.Machine(r))
}

// Machines implements [joined.Store].
func (s machineStore) Machines(ctx context.Context) ([]joined.Record, error) {
	var all []joined.Record
	found, err := s.in.Machines(ctx)
	for _, m := range found {
		all = append(all, joined.Record(m))
	}
	return all, err
}

// DropMachine implements [joined.Store].
func (s machineStore) DropMachine(ctx context.Context, key []byte) (bool, error) {
	return s.in.DropMachine(ctx, key)
}

// roster opens the machines that joined, and what is known of servers with them.
func (s *service) roster(
	ctx context.Context, p plan, agents *responses.Agents, stand *standIns, busy func(string) bool,
) (*roster, error) {
	key, err := joined.LoadKey(filepath.Join(p.StateDir, machinesKey))
	if err != nil {
		return nil, fmt.Errorf("the key that machines know this Switchboard by: %w", err)
	}
	lines := cmp.Or(p.Lines, new(joined.Lines))
	r := &roster{kinds: kinds(agents, lines), lines: lines, log: s.log, stand: stand.servers, busy: busy}
	r.machines, err = joined.Open(ctx, joined.Config{
		Key: key, Store: machineStore{s.store}, Fleet: r, Auditor: s.audit, Log: s.log.Named("machines"), Spec: r.spec,
	}, lines)
	return r, err
}

// machineSpec describes the server of an agent of a machine that joined: as an entry of its name says that waits for
// it, else as the machine tells. The name of any other entry is taken.
func machineSpec(of joined.Server, configured []servers.Spec, lines *joined.Lines) (servers.Spec, error) {
	i := slices.IndexFunc(configured, func(c servers.Spec) bool { return c.Name == of.Name })
	if i >= 0 {
		spec := configured[i]
		if !waits(spec) {
			return spec, handoff.Malformed("name", "the name "+of.Name+" is taken: a server that is configured has it")
		}
		if spec.Kind != of.Agent.Kind {
			return spec, handoff.Malformed("name",
				fmt.Sprintf("%s is configured as kind %s, and its machine brings %s", of.Name, spec.Kind, of.Agent.Kind))
		}
		spec.Aliases = slices.Concat(spec.Aliases, of.Aliases)
		return spec, nil
	}
	spec := servers.Spec{Name: of.Name, Kind: of.Agent.Kind, Aliases: of.Aliases}
	way := &joined.Way{Joined: true, Lines: lines, Plain: spec.Kind == acp.Name}
	switch spec.Kind {
	case codex.Name:
		spec.Own = &codex.Config{Cwd: of.Agent.Dir, Ceiling: of.Ceiling, Way: way}
	case acp.Name:
		spec.Own = &acp.Config{Cwd: of.Agent.Dir, Mode: of.Agent.Mode, Way: way}
	default:
		return spec, fmt.Errorf("%s: no machine brings agents of kind %s", of.Name, spec.Kind)
	}
	spec.Own.Describe(&spec)
	return spec, nil
}

// waits reports whether an entry waits for an agent of a machine that joins.
func waits(spec servers.Spec) bool {
	var way servers.Way
	switch own := spec.Own.(type) {
	case *codex.Config:
		way = own.Way
	case *acp.Config:
		way = own.Way
	}
	_, is := way.(*joined.Way)
	return is
}

// joining is what the page and the verbs do with machines that join.
type joining struct{ machines *joined.Machines }

// Invite implements [web.Joining].
func (j joining) Invite(ctx context.Context, by handoff.Caller, name string) (code string, err error) {
	i, err := j.machines.Invite(ctx, by, name)
	if err != nil {
		return "", err
	}
	return i.String(), nil
}

// Remove implements [web.Joining].
func (j joining) Remove(ctx context.Context, by handoff.Caller, name string) error {
	return j.machines.Remove(ctx, by, name)
}

// Rename implements [web.Joining].
func (j joining) Rename(ctx context.Context, by handoff.Caller, name, to string) error {
	return j.machines.Rename(ctx, by, name, to)
}
