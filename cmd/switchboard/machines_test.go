package main

import (
	"crypto/ed25519"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/acp"
	"switchboard/servers/codex"
	"switchboard/servers/joined"
	"switchboard/sessions"
	"switchboard/sessions/sqlite"
)

// TestMachineSpec: a machine that joined has the settings of a configured server that waits for it, and never takes the
// name of another configured server.
func TestMachineSpec(t *testing.T) {
	t.Parallel()
	lines := new(joined.Lines)
	configured := []servers.Spec{
		{Name: "mini", Kind: codex.Name, Joined: true, Own: &codex.Config{Cwd: "/src", Way: &joined.Way{Joined: true}}},
		{Name: "mini-studio", Kind: codex.Name, Own: &codex.Config{}}, // by its address
		{Name: "helper", Kind: "responses"},
		{Name: "claude", Kind: acp.Name, Joined: true, Own: &acp.Config{Cwd: "/src", Way: &joined.Way{Joined: true}}},
	}
	for name, ok := range map[string]bool{"mini": true, "new": true, "mini-studio": false, "helper": false, "claude": true} {
		spec, err := machineSpec(joined.Server{Name: name}, configured, kinds(nil, lines)) // as it is invited
		if ok != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && handoff.AsError(err).Code != handoff.CodeMalformed {
			t.Errorf("%s: the machine is not told what is wrong: %v", name, err)
		}
		if name == "mini" && spec.Dir != "/src" {
			t.Errorf("mini is without the settings of its entry: %+v", spec)
		}
	}
}

// TestMachineSpecUnderItsOwner: what the machine's owner allows holds, also for a configured server.
func TestMachineSpecUnderItsOwner(t *testing.T) {
	t.Parallel()
	lines := new(joined.Lines)
	configured := []servers.Spec{{Name: "mini", Kind: codex.Name, Joined: true,
		Own: &codex.Config{Ceiling: "workspace-write", Sandbox: "workspace-write", Way: &joined.Way{Joined: true}}}}
	for _, name := range []string{"mini", "new"} {
		of := joined.Server{Name: name, Agent: joined.Agent{Name: "x", Kind: codex.Name}, Ceiling: "read-only"}
		spec, err := machineSpec(of, configured, kinds(nil, lines))
		must(t, err)
		own := spec.Own.(*codex.Config)
		if own.Ceiling != "read-only" || own.Sandbox != "" || spec.About.Ceiling != "read-only" {
			t.Errorf("%s: %+v, %+v", name, own, spec.About)
		}
	}
	if own := configured[0].Own.(*codex.Config); own.Ceiling != "workspace-write" || own.Sandbox != "workspace-write" {
		t.Errorf("the configuration has changed: %+v", own)
	}
}

// TestInvitations: an invitation is used once, even by two machines at the same moment. Expired invitations are
// deleted, and the oldest if there are too many.
func TestInvitations(t *testing.T) {
	t.Parallel()
	store, err := sqlite.Open(t.Context(), sqlite.Config{Dir: t.TempDir()})
	must(t, err)
	defer func() { must(t, store.Close()) }()
	in, now := invitations{store}, time.Now()
	one := func(n byte, until time.Duration) joined.Invited {
		return joined.Invited{Sum: [32]byte{n}, Name: fmt.Sprint("m", n), Until: now.Add(until).UTC().Round(0)}
	}
	spend := func(n byte) bool {
		t.Helper()
		var each sync.WaitGroup
		var got atomic.Int64
		for range 2 {
			each.Go(func() {
				i, there, err := in.Invitation(t.Context(), [32]byte{n})
				if err != nil || there && i.Name != fmt.Sprint("m", n) {
					t.Errorf("invitation %d: %v %v", n, i, err)
				}
				found, err := in.SpendInvitation(t.Context(), [32]byte{n})
				if found && got.Add(1) > 1 || err != nil {
					t.Errorf("spending %d: %v %v", n, found, err)
				}
			})
		}
		each.Wait()
		return got.Load() == 1
	}
	must(t, in.PutInvitation(t.Context(), one(200, -time.Second)))
	for n := range byte(joined.MaxInvitations + 1) {
		must(t, in.PutInvitation(t.Context(), one(n, time.Duration(n+1)*time.Minute)))
	}
	for n, want := range map[byte]bool{0: false, 1: true, joined.MaxInvitations: true, 200: false, 201: false} {
		if got := spend(n); got != want {
			t.Errorf("invitation %d was spent: %v", n, got)
		}
	}
	if spend(1) {
		t.Error("an invitation was spent twice")
	}
}

// TestMachinesKey: all instances have one key, that of the first instance that had one. An instance makes no new key
// while machines in the store know another one.
func TestMachinesKey(t *testing.T) {
	t.Parallel()
	store, err := sqlite.Open(t.Context(), sqlite.Config{Dir: t.TempDir()})
	must(t, err)
	s := &service{log: zap.NewNop(), store: store}
	defer s.close()
	key := func(dir string) (ed25519.PrivateKey, error) {
		return s.machinesKey(t.Context(), plan{StateDir: dir, settings: settings{Peers: peerSettings{Listen: "127.0.0.1:0"}}})
	}
	_, err = store.ChangeMachine(t.Context(), sessions.Machine{},
		sessions.Machine{Key: make([]byte, 32), Name: "mini", Joined: time.Now()})
	must(t, err)
	if _, err := key(t.TempDir()); err == nil || !strings.Contains(err.Error(), machinesKey) {
		t.Errorf("a key that mini does not know: %v", err)
	}
	first := t.TempDir()
	own, err := joined.LoadKey(filepath.Join(first, machinesKey))
	must(t, err)
	another := t.TempDir()
	_, err = joined.LoadKey(filepath.Join(another, machinesKey))
	must(t, err)
	for name, dir := range map[string]string{"its own": first, "none": t.TempDir(), "another": another} {
		if name != "its own" {
			_, err := key(first) // which is there first
			must(t, err)
		}
		if got, err := key(dir); err != nil || !got.Equal(own) {
			t.Errorf("an instance that had %s: another key, %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(first, machinesKey)); err != nil {
		t.Error("the first has no key any more for when it is alone again")
	}
}

// TestEmptiedStoreOfMachines: if the shared store has lost its data, the first instance that reads the machines writes
// back those that it knows, and not those that were removed.
func TestEmptiedStoreOfMachines(t *testing.T) {
	t.Parallel()
	store, err := sqlite.Open(t.Context(), sqlite.Config{Dir: t.TempDir()})
	must(t, err)
	defer func() { must(t, store.Close()) }()
	key := sessions.Record{Kind: machinesKeyKind, Name: machinesKeyName, Body: []byte("the key")}
	must(t, store.PutRecord(t.Context(), key))
	a, b := &machineStore{in: store, shared: true}, &machineStore{in: store, shared: true}
	machines := func(in *machineStore) (names []string) {
		all, err := in.Machines(t.Context())
		must(t, err)
		for _, m := range all {
			names = append(names, m.Name)
		}
		return names
	}
	mini := joined.Record{Key: make([]byte, 32), Name: "mini", Joined: time.Now(), Body: []byte("{}")}
	machines(a)
	_, err = a.ChangeMachine(t.Context(), joined.Record{}, mini)
	must(t, err)
	want := []string{"mini"}
	for range 2 { // by who put it, and by who read it
		if got := machines(b); !slices.Equal(got, want) {
			t.Fatalf("there are %v", got)
		}
		_, err = store.DropMachine(t.Context(), mini.Key)
		must(t, err)
		_, err = store.DropRecord(t.Context(), machinesKeyKind, machinesKeyName)
		must(t, err)
		if got := machines(a); !slices.Equal(got, want) {
			t.Errorf("after it came back empty there are %v", got)
		}
		if kept, err := store.Records(t.Context(), machinesKeyKind); err != nil || len(kept) != 1 || string(kept[0].Body) != "the key" {
			t.Errorf("the key is %v, %v", kept, err)
		}
		a, b = b, a
	}
	_, err = a.DropMachine(t.Context(), mini.Key)
	must(t, err)
	if got := machines(b); len(got) > 0 {
		t.Errorf("after it was removed there are %v", got)
	}
}
