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

// A roster is which servers the fleet has: those of the configuration, those of machines that joined, and while there
// is neither, simulated ones. It is changed by one at a time, in [joined.Machines]: by a machine that comes or goes, or
// by settings that were read again.
type roster struct {
	kinds    []servers.Kind                 // Set once
	lines    *joined.Lines                  // Set once: of machines that joined
	log      *zap.Logger                    // Set once
	stand    func() ([]servers.Spec, error) // Set once: makes the simulated ones at its first call
	busy     func(server string) bool       // Set once: reports whether work is under way there
	machines *joined.Machines               // Set once, before anything runs
	fleet    *servers.Fleet                 // Set once, before anything runs

	mu         sync.Mutex
	configured []servers.Spec  // Guarded by mu: as the configuration has them
	marks      map[string]mark // Guarded by mu: of the real ones that the fleet has, by name
	simulated  []string        // Guarded by mu: those that stand in; nil: a real one is there
	made       []string        // Guarded by mu: fixed ones that there are, or were
}

// A mark is a sum of what is said of a server, and of what it is told when it is connected to so that it lets us in.
type mark [sha256.Size]byte

func (r *roster) markOf(spec servers.Spec) mark {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%t\n", spec.Entry, spec.Show != nil)
	if read := spec.Credential.Read; read != nil && !r.fixed(spec) {
		text, err := read()
		fmt.Fprintln(sum, text, err)
	}
	return mark(sum.Sum(nil))
}

// fixed reports whether a server cannot be made anew.
func (r *roster) fixed(spec servers.Spec) bool {
	kind, _ := kindNamed(r.kinds, spec.Kind)
	return kind.Fixed
}

// first returns the servers that the fleet begins with, of those that are configured. A machine that joined and has
// the name of another server is left out, and logged.
func (r *roster) first(ctx context.Context, configured []servers.Spec) ([]servers.Spec, error) {
	var all []servers.Spec
	err := r.machines.Settle(ctx, func(joined []joined.Server) error {
		described, wrong := r.describe(configured, joined)
		for _, err := range wrong {
			r.log.Warn("a machine is left out", zap.Error(err))
		}
		r.configured, r.marks = configured, map[string]mark{}
		for _, spec := range described {
			r.marks[spec.Name] = r.markOf(spec)
		}
		var err error
		if all, err = r.complete(described); err != nil || len(all) > 0 {
			return err
		}
		if all, err = r.stand(); err == nil {
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

// describe returns the servers of a configuration and of the machines that joined, and what is wrong: each a
// [servers.SpecError]. An entry whose machine cannot have it stands alone.
func (r *roster) describe(configured []servers.Spec, all []joined.Server) (described []servers.Spec, wrong []error) {
	bad := func(server string, err error) {
		wrong = append(wrong, servers.SpecError{Server: server, Why: handoff.AsError(err).Subject})
	}
	for _, c := range configured {
		if i := slices.IndexFunc(all, func(j joined.Server) bool { return j.Name == c.Name }); i >= 0 {
			spec, err := r.ofMachine(all[i], configured)
			if err == nil {
				c = spec // its settings and its machine together
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

// complete makes servers that are described ones that can be dialled.
func (r *roster) complete(described []servers.Spec) ([]servers.Spec, error) {
	all := slices.Clone(described)
	for i, spec := range all {
		kind, ok := kindNamed(r.kinds, spec.Kind)
		if !ok {
			return nil, servers.SpecError{Server: spec.Name, Why: fmt.Sprintf("there is no kind %q", spec.Kind)}
		}
		all[i].IsThread = kind.IsThread
		if spec.Dial != nil { // it is simulated
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

// spec describes the server of an agent of a machine that joined. It is [joined.Config.Spec].
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

// Change implements [joined.Fleet]. Where a machine goes that has an entry, that waits for it again.
func (r *roster) Change(drop []string, put []servers.Spec) error {
	r.mu.Lock()
	marks, waits := maps.Clone(r.marks), slices.Clone(r.configured)
	r.mu.Unlock()
	waits, err := r.complete(slices.DeleteFunc(waits, func(c servers.Spec) bool {
		return !slices.Contains(drop, c.Name) || slices.Contains(namesOf(put), c.Name)
	}))
	if err != nil {
		return err
	}
	put = slices.Concat(put, waits)
	for _, name := range drop {
		delete(marks, name)
	}
	for _, spec := range put {
		marks[spec.Name] = r.markOf(spec)
	}
	return r.replace(drop, put, marks)
}

// replace changes the fleet. marks are of the real servers that there are then.
func (r *roster) replace(drop []string, put []servers.Spec, marks map[string]mark) error {
	r.mu.Lock()
	simulated := r.simulated
	r.mu.Unlock()
	switch {
	case len(marks) > 0:
		drop, simulated = slices.Concat(drop, simulated), nil // a real one may have the name of one of them
	case simulated == nil:
		specs, err := r.stand()
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
	r.marks, r.simulated = marks, simulated
	return nil
}

// Retry implements [joined.Fleet].
func (r *roster) Retry(server string) { r.fleet.Retry(server) }

// settle puts the servers of another configuration into the place of those that there are, beside those of machines
// that joined, or none of them: then each error is a [servers.SpecError]. It returns what has changed, in words, and
// the settings that wait for the next start.
func (r *roster) settle(configured []servers.Spec, all []joined.Server) (did, restart []string, err error) {
	described, wrong := r.describe(configured, all)
	r.mu.Lock()
	was, made := maps.Clone(r.marks), slices.Clone(r.made)
	r.mu.Unlock()
	marks := map[string]mark{}
	var put []servers.Spec
	for _, spec := range described {
		is := r.markOf(spec)
		before, there := was[spec.Name]
		switch {
		case there && before == is:
		case slices.Contains(made, spec.Name):
			restart = append(restart, "servers: "+spec.Name)
			if !there {
				continue
			}
			is = before // it is as it was
		case there:
			put, did = append(put, spec), append(did, spec.Name+" is changed")
		default:
			put, did = append(put, spec), append(did, spec.Name+" is added")
		}
		marks[spec.Name] = is
	}
	var drop []string
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if _, stays := marks[name]; !stays {
			drop, did = append(drop, name), append(did, name+" is removed")
		}
	}
	var ends []string // with them the work there
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
		if err := r.replace(drop, put, marks); err != nil {
			return nil, nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.configured, r.marks = configured, marks
	return did, restart, nil
}
