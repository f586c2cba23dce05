package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/joined"
	"switchboard/sessions"
)

// machinesKey is the file in the state directory with the private key of this service, by which machines that joined
// recognise it. Instances that share a Redis have one key, in a record there: anyone who can read that Redis can pose
// as the service to its machines.
const machinesKey = "machines.pem"

// Kinds and names of records in the store: the key that all instances share, and the invitations, each under the
// SHA-256 of its secret.
const (
	machinesKeyKind, machinesKeyName = "machines key", "ed25519"
	invitedKind                      = "invitations"
)

// machineStore keeps the machines that joined in a store. A shared store that no longer has the instances' key has lost
// its data. The machineStore then writes its own copy back, because otherwise every machine would be refused, and
// leave.
type machineStore struct {
	in interface { // Set once
		sessions.Machines
		sessions.Records
	}
	shared bool // Set once

	// A copy of what the store has. Owned by the caller that reads and changes machines, one at a time.
	known map[string]sessions.Machine // by public key
	key   []sessions.Record
}

// ChangeMachine implements [joined.Store].
func (s *machineStore) ChangeMachine(ctx context.Context, was, is joined.Record) (bool, error) {
	done, err := s.in.ChangeMachine(ctx, sessions.Machine(was), sessions.Machine(is))
	if done && s.shared {
		s.known[string(is.Key)] = sessions.Machine(is)
	}
	return done, err
}

// Machines implements [joined.Store].
func (s *machineStore) Machines(ctx context.Context) ([]joined.Record, error) {
	if s.shared {
		if err := s.restore(ctx); err != nil {
			return nil, err
		}
	}
	found, err := s.in.Machines(ctx)
	if err != nil {
		return nil, err
	}
	s.known = map[string]sessions.Machine{}
	var all []joined.Record
	for _, m := range found {
		s.known[string(m.Key)] = m
		all = append(all, joined.Record(m))
	}
	return all, nil
}

// restore writes the machines and the key back to a store that has lost them. The key comes last: it shows other
// instances that the machines are complete.
func (s *machineStore) restore(ctx context.Context) error {
	kept, err := s.in.Records(ctx, machinesKeyKind)
	if err != nil {
		return err
	}
	if len(kept) > 0 || len(s.key) == 0 {
		s.key = kept
		return nil
	}
	for _, m := range s.known {
		if _, err := s.in.ChangeMachine(ctx, sessions.Machine{}, m); err != nil { // another instance may have
			return err
		}
	}
	_, err = s.in.KeepRecord(ctx, s.key[0])
	return err
}

// DropMachine implements [joined.Store].
func (s *machineStore) DropMachine(ctx context.Context, key []byte) (bool, error) {
	was, err := s.in.DropMachine(ctx, key)
	if err == nil {
		delete(s.known, string(key))
	}
	return was, err
}

// invitations keeps invitations in a store. There are at most [joined.MaxInvitations]; one that is used is deleted.
type invitations struct{ in sessions.Records }

// PutInvitation implements [joined.Invitations].
func (s invitations) PutInvitation(ctx context.Context, i joined.Invited) error {
	all, err := s.in.Records(ctx, invitedKind)
	if err != nil {
		return err
	}
	var waiting []joined.Invited
	for _, r := range all {
		if i, err := invitedOf(r); err == nil && time.Now().Before(i.Until) {
			waiting = append(waiting, i)
		} else if _, err := s.in.DropRecord(ctx, invitedKind, r.Name); err != nil {
			return err
		}
	}
	slices.SortFunc(waiting, func(a, b joined.Invited) int { return a.Until.Compare(b.Until) })
	for _, old := range waiting[:max(len(waiting)-joined.MaxInvitations+1, 0)] {
		if _, err := s.in.DropRecord(ctx, invitedKind, hex.EncodeToString(old.Sum[:])); err != nil {
			return err
		}
	}
	return s.in.PutRecord(ctx, sessions.Record{Kind: invitedKind, Name: hex.EncodeToString(i.Sum[:]),
		Body: []byte(handoff.Encode(i))})
}

// Invitation implements [joined.Invitations].
func (s invitations) Invitation(ctx context.Context, sum [sha256.Size]byte) (joined.Invited, bool, error) {
	name := hex.EncodeToString(sum[:])
	all, err := s.in.Records(ctx, invitedKind)
	at := slices.IndexFunc(all, func(r sessions.Record) bool { return r.Name == name })
	if err != nil || at < 0 {
		return joined.Invited{}, false, err
	}
	i, err := invitedOf(all[at])
	return i, err == nil, err
}

// SpendInvitation implements [joined.Invitations].
func (s invitations) SpendInvitation(ctx context.Context, sum [sha256.Size]byte) (bool, error) {
	return s.in.DropRecord(ctx, invitedKind, hex.EncodeToString(sum[:]))
}

func invitedOf(r sessions.Record) (i joined.Invited, err error) { return i, json.Unmarshal(r.Body, &i) }

// machinesKey returns the private key of this service. The first of several instances shares the key that it had before
// there were others.
func (s *service) machinesKey(ctx context.Context, p plan) (ed25519.PrivateKey, error) {
	path := filepath.Join(p.StateDir, machinesKey)
	if !p.Peers.set() {
		return joined.LoadKey(path)
	}
	own, err := os.ReadFile(path)
	text := own
	if errors.Is(err, fs.ErrNotExist) {
		kept, err := s.store.Records(ctx, machinesKeyKind)
		if err != nil {
			return nil, err
		}
		all, err := s.store.Machines(ctx)
		if err != nil {
			return nil, err
		}
		if len(kept) == 0 && len(all) > 0 {
			return nil, errors.New("machines joined a Switchboard that remembers in this Redis, and know it by its own key: " +
				"start that one with peers first, or copy its " + machinesKey + " into the state directory " + p.StateDir)
		}
		if _, text, err = joined.NewKey(); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	one, err := s.store.KeepRecord(ctx, sessions.Record{Kind: machinesKeyKind, Name: machinesKeyName, Body: text})
	if err != nil {
		return nil, err
	}
	if own != nil && !bytes.Equal(own, one.Body) {
		s.log.Warn("machines that know this Switchboard by its own key have to join again: all instances have that of "+
			"another", zap.String("file", path))
	}
	return joined.ParseKey(one.Body)
}

// makeFleet opens the machines that joined, and makes the roster of all servers with its fleet.
func (s *service) makeFleet(ctx context.Context) error {
	p := s.plan
	key, err := s.machinesKey(ctx, p)
	if err != nil {
		return fmt.Errorf("the key that machines know this Switchboard by: %w", err)
	}
	lines := cmp.Or(p.Lines, new(joined.Lines))
	if p.Peers.set() {
		lines.Instance = rand.Text()
	}
	simulate := func() ([]servers.Spec, error) { return s.simulators.fleet(p, s.agents) }
	r := &roster{kinds: kinds(s.agents, lines), lines: lines, log: s.log, simulate: simulate, busy: s.working}
	if r.machines, err = joined.Open(ctx, joined.Config{
		Key: key, Store: &machineStore{in: s.store, shared: p.Peers.set()}, Invited: invitations{s.store},
		Shared: p.Peers.set(), Fleet: r, Auditor: s.audit, Log: s.log.Named("machines"), Spec: r.spec,
	}, lines); err != nil {
		return err
	}
	if s.specs, err = r.first(ctx, p.Servers); err != nil {
		return err
	}
	r.fleet, err = servers.New(servers.Config{
		Specs: s.specs, Changed: s.serversChanged, Hidden: s.owners.Hidden, ByAPI: s.madeByAPI,
		Log: s.log.Named("servers"),
	})
	s.roster, s.fleet = r, r.fleet
	return err
}

// machineSpec returns the settings of the server of an agent of a machine that joined: those of the configured server
// with this name, if that is one that waits for a machine to join, or else settings made of what the machine says. Any
// other configured server with this name is an error.
func machineSpec(of joined.Server, configured []servers.Spec, kinds []servers.Kind) (servers.Spec, error) {
	spec := servers.Spec{Name: of.Name, Kind: cmp.Or(of.Agent.Kind, kinds[0].Name)} // one that is invited has not said
	if i := slices.IndexFunc(configured, func(c servers.Spec) bool { return c.Name == of.Name }); i >= 0 {
		spec = configured[i]
		switch {
		case !spec.Joined:
			return spec, handoff.Malformed("name", "the name "+of.Name+" is taken: a server that is configured has it")
		case of.Agent.Kind != "" && spec.Kind != of.Agent.Kind:
			return spec, handoff.Malformed("name",
				fmt.Sprintf("%s is configured as kind %s, and its machine brings %s", of.Name, spec.Kind, of.Agent.Kind))
		}
	}
	kind, ok := kindNamed(kinds, spec.Kind)
	if !ok || kind.Joined == nil {
		return spec, fmt.Errorf("%s: no machine brings agents of kind %s", of.Name, spec.Kind)
	}
	spec.Aliases = slices.Concat(spec.Aliases, of.Aliases)
	spec.Own = kind.Joined(spec.Own, servers.Arrived{Dir: of.Agent.Dir, Mode: of.Agent.Mode, Ceiling: of.Ceiling})
	spec.Own.Describe(&spec)
	return spec, nil
}
