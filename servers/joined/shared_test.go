package joined

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"switchboard/handoff"
)

// TestSharedMachines: one of two instances of a service invites a machine, and the other one lets it in. Both know the
// machine, also by a new name, when its line goes to the first one, and when it is removed.
func TestSharedMachines(t *testing.T) {
	t.Parallel()
	store, key, owner := &memory{kept: map[string]Record{}}, newKey(t), handoff.Caller{Principal: "owner"}
	var fleets [2]*memory
	var all [2]*service
	for i := range all {
		fleets[i] = new(memory)
		all[i] = newInstance(t, store, fleets[i], key, true)
	}
	a, b := all[0], all[1]
	known := func(names ...string) {
		t.Helper()
		for _, f := range fleets {
			until(t, "instance to have the machines", func() bool { return slices.Equal(f.names(), names) })
		}
	}
	mini := newKey(t)
	v := Visit{Key: mini, Invitation: a.invite(t, "mini"), About: codex}
	door := b.open(t, v)
	serve(t, door)
	known("mini")
	b.says(t, "mini", "through this one")

	must(t, a.Rename(t.Context(), owner, "mini", "studio"))
	known("studio")
	must(t, door.Close())
	v.Invitation, v.Service, v.Name = nil, door.Service, "mini"
	door = a.open(t, v)
	serve(t, door)
	if door.Name != "studio" {
		t.Errorf("it is %q", door.Name)
	}
	until(t, "its line", func() bool { return a.counts.lines.Load() == 1 })
	a.says(t, "studio", "through that one")

	must(t, b.Remove(t.Context(), owner, "studio"))
	known()
	until(t, "its line to end", func() bool { return a.counts.lines.Load() == 0 })
}

// TestRemovedElsewhereStaysAway: a machine that another instance removes while this one changes it stays removed, and
// its line ends.
func TestRemovedElsewhereStaysAway(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *service, door *Door, key []byte) error{
		"a report": func(_ *service, door *Door, _ []byte) error {
			_ = door.Tell(About{}) // the line may end under it
			return nil
		},
		"a rename": func(s *service, _ *Door, _ []byte) error {
			if err := s.Rename(t.Context(), handoff.Caller{}, "mini", "studio"); handoff.CodeOf(err) != handoff.CodeTakenOver {
				t.Errorf("renamed: %v", err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, fleet, key := &memory{kept: map[string]Record{}}, new(memory), newKey(t)
			s := newInstance(t, store, fleet, newKey(t), true)
			door := s.open(t, Visit{Key: key, Invitation: s.invite(t, "mini"), About: codex})
			serve(t, door)
			until(t, "its line", func() bool { return s.counts.lines.Load() == 1 })
			own := key.Public().(ed25519.PublicKey)
			store.mu.Lock()
			store.putting = func() { _, _ = store.DropMachine(t.Context(), own) } // never fails
			store.mu.Unlock()
			must(t, change(s, door, own))
			until(t, "its line to end", func() bool { return s.counts.lines.Load() == 0 })
			until(t, "the fleet", func() bool { return len(fleet.names()) == 0 })
			if all, _ := store.Machines(t.Context()); len(all) > 0 {
				t.Errorf("the store has %+v", all)
			}
		})
	}
}

// TestSharedNameGetsFree: a machine of the store whose name is still taken here, because a change of the other machine
// is not read yet, is adopted once the name is free.
func TestSharedNameGetsFree(t *testing.T) {
	t.Parallel()
	store := &memory{kept: map[string]Record{}}
	fleet := new(memory)
	s := newInstance(t, store, fleet, newKey(t), true)
	put := func(key, name string, agents ...string) {
		t.Helper()
		about := About{}
		for _, a := range agents {
			about.Agents = append(about.Agents, Agent{Name: a, Kind: "codex"})
		}
		body, err := json.Marshal(details{Servers: map[string]string{"codex": "", "lab": "lab"}, About: about})
		must(t, err)
		_, err = store.ChangeMachine(t.Context(), store.kept[key], Record{Key: []byte(key), Name: name, Body: body})
		must(t, err)
	}
	read := func(want ...string) {
		t.Helper()
		for range 2 { // in one of them the machines may come in the wrong order
			must(t, s.afterReading(t.Context(), func() error { return nil }))
		}
		if got := fleet.names(); !slices.Equal(got, want) {
			t.Errorf("the fleet has %q, want %q", got, want)
		}
	}
	put("1", "mini", "codex", "lab")
	put("2", "studio", "codex")
	read("mini", "mini-lab", "studio")
	put("2", "mini-lab", "codex")
	read("mini", "mini-lab", "studio")
	put("1", "mini", "codex")
	read("mini", "mini-lab")
}

// TestUnreadIsNotRemoved: a machine is refused for good only by what the store says now. Where it does not answer, or
// the machine cannot be taken over from it, the machine comes again, and its agents go on.
func TestUnreadIsNotRemoved(t *testing.T) {
	t.Parallel()
	store, key := &memory{kept: map[string]Record{}}, newKey(t)
	own := key.Public().(ed25519.PublicKey)
	s := newInstance(t, store, new(memory), newKey(t), true)
	visit := Visit{URL: s.url, Key: key, Service: s.key.Public().(ed25519.PublicKey), About: codex}
	refused := func(as string, want Refusal) {
		t.Helper()
		visit.Name = as
		if _, err := visit.Open(t.Context()); !errors.Is(err, want) {
			t.Errorf("as %s: %v, want %v", as, err, want)
		}
	}
	stores := func(name string, unread error) {
		t.Helper()
		body, err := json.Marshal(details{Servers: map[string]string{"codex": ""}, About: codex})
		must(t, err)
		store.mu.Lock()
		defer store.mu.Unlock()
		store.unread = unread
		if delete(store.kept, string(own)); name != "" {
			store.kept[string(own)] = Record{Key: own, Name: name, Body: body}
		}
	}
	down := errors.New("the store is down")
	stores("mini", down)
	refused("mini", RefusedForNow)
	stores("bigpc", nil) // another server here has that name
	refused("bigpc", RefusedForNow)
	stores("", nil)
	refused("bigpc", RefusedKey)
	stores("mini", nil)
	must(t, s.afterReading(t.Context(), func() error { return nil }))
	stores("studio", down) // another instance has renamed it
	refused("studio", RefusedForNow)
	stores("mini", nil)
	refused("studio", RefusedName)
}
