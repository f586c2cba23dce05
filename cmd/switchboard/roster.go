package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

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

	mu         sync.Mutex
	configured []servers.Spec         // Guarded by mu: those of the configuration
	versions   map[string]specVersion // Guarded by mu: of the real servers in the fleet, by name
	simulated  []string               // Guarded by mu: names of the simulated servers; nil: there are real ones
	made       []string               // Guarded by mu: names of servers of fixed kinds that were ever in the fleet
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
	bad := func(server string, err error) {
		wrong = append(wrong, servers.SpecError{Server: server, Why: handoff.AsError(err).Subject})
	}
	for _, c := range configured {
		if i := slices.IndexFunc(all, func(j joined.Server) bool { return j.Name == c.Name }); i >= 0 {
			spec, err := r.ofMachine(all[i], configured)
			if err == nil {
				c = spec // the settings of the configuration, reached through the machine
			} else {
				bad(c.Name, err)
			}
		}
		described = append(described, c)
	}
	for _, j := range all {
		if slices.ContainsFunc(configured, func(c servers.Spec) bool { return c.Name == j.Name }) {
			continue
		}
		if spec, err := r.ofMachine(j, configured); err == nil {
			described = append(described, spec)
		} else {
			bad(j.Name, err)
		}
	}
	return described, wrong
}

func (r *roster) ofMachine(of joined.Server, configured []servers.Spec) (servers.Spec, error) {
	spec, err := machineSpec(of, configured, r.lines)
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
			r.mu.Lock()
			r.made = append(r.made, spec.Name)
			r.mu.Unlock()
		}
	}
	return all, nil
}

// spec returns the server of an agent of a machine that joined. It is [joined.Config.Spec].
func (r *roster) spec(of joined.Server) (servers.Spec, error) {
	r.mu.Lock()
	configured := r.configured
	r.mu.Unlock()
	spec, err := r.ofMachine(of, configured)
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
	r.mu.Lock()
	simulated := r.simulated
	r.mu.Unlock()
	return r.fleet.Check(slices.Concat(drop, simulated), put)
}

// Change implements [joined.Fleet]. If a machine leaves whose server is configured, the configured server stays, and
// waits for the machine to join again.
func (r *roster) Change(drop []string, put []servers.Spec) error {
	r.mu.Lock()
	versions, waiting := maps.Clone(r.versions), slices.Clone(r.configured)
	r.mu.Unlock()
	waiting, err := r.complete(slices.DeleteFunc(waiting, func(c servers.Spec) bool {
		return !slices.Contains(drop, c.Name) || slices.Contains(namesOf(put), c.Name)
	}))
	if err != nil {
		return err
	}
	put = slices.Concat(put, waiting)
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
	r.mu.Lock()
	simulated := r.simulated
	r.mu.Unlock()
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
	r.mu.Lock()
	defer r.mu.Unlock()
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
	r.mu.Lock()
	was, made := maps.Clone(r.versions), slices.Clone(r.made)
	r.mu.Unlock()
	versions := map[string]specVersion{}
	var put []servers.Spec
	for _, spec := range described {
		is := r.versionOf(spec)
		before, there := was[spec.Name]
		switch {
		case there && before == is:
		case slices.Contains(made, spec.Name):
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
	r.mu.Lock()
	defer r.mu.Unlock()
	r.configured, r.versions = configured, versions
	return did, restart, nil
}
