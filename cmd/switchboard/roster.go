package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/joined"
)

// A roster decides which servers the fleet has: those of the configuration, those of machines that joined, and while
// there are none of these, simulated ones. [joined.Machines] makes all changes one at a time: when a machine comes or
// goes, and when the settings are read again.
type roster struct {
	kinds    []servers.Kind                 // Set once
	lines    *joined.Lines                  // Set once: of machines that joined
	log      *zap.Logger                    // Set once
	simulate func() ([]servers.Spec, error) // Set once: returns the simulated servers, made at the first call
	busy     func(server string) bool       // Set once: reports whether work is under way on a server
	machines *joined.Machines               // Set once, before anything runs
	fleet    *servers.Fleet                 // Set once, before anything runs

	// Owned by the change that [joined.Machines] makes now.

	configured []servers.Spec         // those of the configuration
	versions   map[string]specVersion // of the real servers in the fleet, by name
	simulated  []string               // names of the simulated servers; nil: there are real ones
	made       []string               // names of servers of fixed kinds that were ever made
}

// A specVersion is a hash of a server's settings and credential: it differs when the server has to be connected anew.
type specVersion [sha256.Size]byte

func (r *roster) versionOf(spec servers.Spec) specVersion {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%t\n", spec.Entry, spec.Show != nil)
	if read := spec.Credential.Read; read != nil && !r.fixed(spec) {
		text, err := read()
		fmt.Fprintln(sum, text, err)
	}
	return specVersion(sum.Sum(nil))
}

// fixed reports whether a server is of a kind that can be made only once in a process.
func (r *roster) fixed(spec servers.Spec) bool {
	kind, _ := kindNamed(r.kinds, spec.Kind)
	return kind.Fixed
}

// first returns the servers that the fleet starts with. A machine that joined and has the name of another server is
// left out, and logged.
func (r *roster) first(ctx context.Context, configured []servers.Spec) ([]servers.Spec, error) {
	var all []servers.Spec
	err := r.machines.Settle(ctx, func(joined []joined.Server) error {
		described, wrong := r.describe(configured, joined)
		for _, err := range wrong {
			r.log.Warn("a machine is left out", zap.Error(err))
		}
		r.configured, r.versions = configured, map[string]specVersion{}
		for _, spec := range described {
			r.versions[spec.Name] = r.versionOf(spec)
		}
		var err error
		if all, err = r.complete(described); err != nil || len(all) > 0 {
			return err
		}
		if all, err = r.simulate(); err == nil {
			r.simulated = namesOf(all)
			all, err = r.complete(all)
		}
		return err
	})
	return all, err
}

func namesOf(specs []servers.Spec) (names []string) {
	for _, s := range specs {
		names = append(names, s.Name)
	}
	return names
}

// describe returns the servers of a configuration and of the machines that joined. Each error in wrong is a
// [servers.SpecError]; a configured server that cannot be merged with its machine stays as configured.
func (r *roster) describe(configured []servers.Spec, all []joined.Server) (described []servers.Spec, wrong []error) {
	described = slices.Clone(configured)
	for _, j := range all {
		spec, err := r.ofMachine(j, configured)
		at := slices.IndexFunc(configured, func(c servers.Spec) bool { return c.Name == j.Name })
		switch {
		case err != nil:
			wrong = append(wrong, servers.SpecError{Server: j.Name, Why: handoff.AsError(err).Subject})
		case at >= 0:
			described[at] = spec // the settings of the configuration, reached through the machine
		default:
			described = append(described, spec)
		}
	}
	return described, wrong
}

func (r *roster) ofMachine(of joined.Server, configured []servers.Spec) (servers.Spec, error) {
	spec, err := machineSpec(of, configured, r.kinds)
	spec.Show = func(m *handoff.Machine) { r.machines.Show(of.Name, m) }
	return spec, err
}

// complete adds to servers what the fleet needs to connect to them.
func (r *roster) complete(described []servers.Spec) ([]servers.Spec, error) {
	all := slices.Clone(described)
	for i, spec := range all {
		kind, ok := kindNamed(r.kinds, spec.Kind)
		if !ok {
			return nil, servers.SpecError{Server: spec.Name, Why: fmt.Sprintf("there is no kind %q", spec.Kind)}
		}
		all[i].IsThread = kind.IsThread
		if spec.Dial != nil { // a simulated server
			continue
		}
		all[i].Dial, all[i].Metrics = kind.Dial(spec, r.log)
		if kind.Fixed {
			r.made = append(r.made, spec.Name)
		}
	}
	return all, nil
}

// spec returns the server of an agent of a machine that joined. It is [joined.Config.Spec].
func (r *roster) spec(of joined.Server) (servers.Spec, error) {
	spec, err := r.ofMachine(of, r.configured)
	if err != nil {
		return spec, err
	}
	all, err := r.complete([]servers.Spec{spec})
	if err != nil {
		return spec, err
	}
	return all[0], nil
}

// Check implements [joined.Fleet].
func (r *roster) Check(drop []string, put []servers.Spec) error {
	return r.fleet.Check(slices.Concat(drop, r.simulated), put)
}

// Change implements [joined.Fleet]. If a machine leaves whose server is configured, the configured server stays, and
// waits for the machine to join again.
func (r *roster) Change(drop []string, put []servers.Spec) error {
	waiting, err := r.complete(slices.DeleteFunc(slices.Clone(r.configured), func(c servers.Spec) bool {
		return !slices.Contains(drop, c.Name) || slices.Contains(namesOf(put), c.Name)
	}))
	if err != nil {
		return err
	}
	put = slices.Concat(put, waiting)
	versions := maps.Clone(r.versions)
	for _, name := range drop {
		delete(versions, name)
	}
	for _, spec := range put {
		versions[spec.Name] = r.versionOf(spec)
	}
	return r.replace(drop, put, versions)
}

// replace changes the fleet, and adds or removes the simulated servers as needed. versions are those of the real
// servers after the change.
func (r *roster) replace(drop []string, put []servers.Spec, versions map[string]specVersion) error {
	simulated := r.simulated
	switch {
	case len(versions) > 0:
		drop, simulated = slices.Concat(drop, simulated), nil // put may have a server of the same name
	case simulated == nil:
		specs, err := r.simulate()
		if err == nil {
			specs, err = r.complete(specs)
		}
		if err != nil {
			return err
		}
		put, simulated = slices.Concat(put, specs), namesOf(specs)
	}
	if err := r.fleet.Change(drop, put); err != nil {
		return err
	}
	r.versions, r.simulated = versions, simulated
	return nil
}

// Retry implements [joined.Fleet].
func (r *roster) Retry(server string) { r.fleet.Retry(server) }

// settle replaces the configured servers by those of another configuration; those of machines that joined stay. If any
// server is wrong, it changes nothing and returns a [servers.SpecError] for each. did describes the changes for people;
// restart lists the settings that need a restart.
func (r *roster) settle(configured []servers.Spec, all []joined.Server) (did, restart []string, err error) {
	described, wrong := r.describe(configured, all)
	was, versions := r.versions, map[string]specVersion{}
	var put []servers.Spec
	for _, spec := range described {
		is := r.versionOf(spec)
		before, there := was[spec.Name]
		switch {
		case there && before == is:
		case slices.Contains(r.made, spec.Name):
			restart = append(restart, "servers: "+spec.Name)
			if !there {
				continue
			}
			is = before // the server stays as it was
		case there:
			put, did = append(put, spec), append(did, spec.Name+" is changed")
		default:
			put, did = append(put, spec), append(did, spec.Name+" is added")
		}
		versions[spec.Name] = is
	}
	var drop []string
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if _, stays := versions[name]; !stays {
			drop, did = append(drop, name), append(did, name+" is removed")
		}
	}
	var ends []string // servers whose work would end with the change
	for _, name := range slices.Concat(drop, namesOf(put)) {
		if _, there := was[name]; there && r.fleet.Registered(name).EndsWithUs {
			ends = append(ends, name)
		}
	}
	if len(ends) > 0 {
		defer r.fleet.Hold(ends)()
	}
	for _, name := range ends {
		if r.busy(name) {
			wrong = append(wrong, servers.SpecError{Server: name,
				Why: "work is under way there, and its program would end with this change: wait for it, or stop it"})
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, nil, err
	}
	if put, err = r.complete(put); err != nil {
		return nil, nil, err
	}
	if len(drop)+len(put) > 0 {
		if err := r.replace(drop, put, versions); err != nil {
			return nil, nil, err
		}
	}
	r.configured, r.versions = configured, versions
	return did, restart, nil
}
