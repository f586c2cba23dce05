package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

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

// joiningFleet is the fleet as machines that join see it: the first of them takes the place of the simulated ones.
type joiningFleet struct {
	fleet *servers.Fleet // Set once, by begin

	mu        sync.Mutex
	simulated []string // Guarded by mu: servers that stand in while there is no real one
}

// begin gives it the fleet, which has these servers.
func (f *joiningFleet) begin(fleet *servers.Fleet, specs []servers.Spec) {
	f.fleet = fleet
	for _, s := range specs {
		if s.Simulated {
			f.simulated = append(f.simulated, s.Name)
		}
	}
}

func (f *joiningFleet) standIns(put []servers.Spec) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(put) == 0 {
		return nil
	}
	return f.simulated
}

// Check implements [joined.Fleet].
func (f *joiningFleet) Check(drop []string, put []servers.Spec) error {
	return f.fleet.Check(slices.Concat(drop, f.standIns(put)), put)
}

// Change implements [joined.Fleet].
func (f *joiningFleet) Change(drop []string, put []servers.Spec) error {
	if err := f.fleet.Change(slices.Concat(drop, f.standIns(put)), put); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(put) > 0 {
		f.simulated = nil // a real one may have the name of one of them
	}
	return nil
}

// Retry implements [joined.Fleet].
func (f *joiningFleet) Retry(server string) { f.fleet.Retry(server) }

// joined opens the machines that joined, and adds their agents to the servers of a plan.
func (s *service) joined(
	ctx context.Context, p *plan, agents *responses.Agents, fleet joined.Fleet,
) (*joined.Machines, error) {
	key, err := joined.LoadKey(filepath.Join(p.StateDir, machinesKey))
	if err != nil {
		return nil, fmt.Errorf("the key that machines know this Switchboard by: %w", err)
	}
	if p.Lines == nil {
		p.Lines = new(joined.Lines)
	}
	configured := slices.Clone(p.Servers)
	all := kinds(agents, p.Lines)
	var machines *joined.Machines
	machines, err = joined.Open(ctx, joined.Config{
		Key: key, Store: machineStore{s.store}, Fleet: fleet, Auditor: s.audit, Log: s.log.Named("machines"),
		Spec: func(of joined.Server) (servers.Spec, error) {
			kind, ok := kindNamed(all, of.Agent.Kind)
			if !ok {
				return servers.Spec{}, fmt.Errorf("%s: there is no kind %q", of.Name, of.Agent.Kind)
			}
			spec, err := machineSpec(of, configured, p.Lines)
			if err != nil {
				return servers.Spec{}, err
			}
			spec.IsThread, spec.Show = kind.IsThread, func(m *handoff.Machine) { machines.Show(of.Name, m) }
			spec.Dial, spec.Metrics = kind.Dial(spec, s.log)
			return spec, nil
		},
	}, p.Lines)
	if err != nil {
		return nil, err
	}
	for _, spec := range machines.Specs() {
		i := slices.IndexFunc(p.Servers, func(known servers.Spec) bool { return known.Name == spec.Name })
		if i >= 0 {
			p.Servers[i] = spec // its settings and its machine together
		} else {
			p.Servers = append(p.Servers, spec)
		}
	}
	return machines, nil
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
