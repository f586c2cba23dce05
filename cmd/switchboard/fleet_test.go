package main

import (
	"context"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/codex"
	machines "switchboard/servers/simulator"
)

// A wiredFleet is a fleet of Codex clients over the simulated machines.
type wiredFleet struct {
	*servers.Fleet
	world   *machines.World
	changed chan struct{}
}

func newWiredFleet(t *testing.T) *wiredFleet {
	t.Helper()
	f := &wiredFleet{world: machines.NewWorld(machines.Config{Speed: 50}), changed: make(chan struct{}, 100)}
	var specs []servers.Spec
	for _, m := range f.world.Machines() {
		spec := servers.Spec{IsThread: codex.Kind().IsThread, Name: m.Name, Aliases: m.Aliases, Kind: "codex", Dir: m.Dir, Projects: m.Projects}
		at := nobodyThere
		if !m.Down {
			l := loopback(t)
			at = "ws://" + l.Addr().String()
			background(t, func(ctx context.Context) error { return f.world.Serve(ctx, m.Name, l) })
		}
		spec.Dial = codex.Dialer(codex.Config{Name: m.Name, Way: byURL(at)})
		specs = append(specs, spec)
	}
	var err error
	if f.Fleet, err = servers.New(servers.Config{Specs: specs, Changed: func() { f.changed <- struct{}{} }}); err != nil {
		t.Fatal(err)
	}
	background(t, f.Run)
	return f
}

// settle waits until every server is up, but for the one that is down on purpose.
func (f *wiredFleet) settle(t *testing.T) {
	t.Helper()
	for {
		wrong := ""
		for _, s := range f.Servers(t.Context(), handoff.Grant{}) {
			if (s.Health == handoff.HealthUp) == (s.Name == "attic") || s.Health == handoff.HealthConnecting {
				wrong = s.Name + " is " + string(s.Health)
			}
		}
		if wrong == "" {
			return
		}
		select {
		case <-f.changed:
		case <-time.After(patience):
			t.Fatal(wrong)
		}
	}
}

// TestFleetOverTheWire: what a fleet promises, with the Codex client and simulated machines under it.
func TestFleetOverTheWire(t *testing.T) {
	t.Parallel()
	fleet := newWiredFleet(t)
	fleet.settle(t)
	list, err := fleet.Sessions(t.Context(), handoff.Grant{}, handoff.SessionQuery{})
	if err != nil || len(list.Items) != 4 || list.Items[0].Label != "auth refactor" || list.Items[0].Age != "12 minutes ago" || list.Items[0].Branch != "auth-refactor" {
		t.Fatalf("%+v, %v", list, err)
	}
	if len(list.Errors) != 1 || list.Errors[0].Server != "attic" {
		t.Errorf("%+v", list.Errors)
	}
	target, err := fleet.Resolve(t.Context(), handoff.Grant{}, handoff.Target{Server: "the desktop", Thread: "auth"})
	if err != nil || target.Thread != list.Items[0].ID {
		t.Fatalf("%+v, %v", target, err)
	}

	fleet.world.Drop("bigpc")
	attached, err := fleet.Attach(t.Context(), target) // over whatever connection there is by then
	if err != nil || attached.Target != target || attached.Title != "Auth refactor" {
		t.Fatalf("%+v, %v", attached, err)
	}
	fleet.settle(t)
	if attached, err = fleet.Attach(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	id, err := attached.Agent.Start(t.Context(), handoff.Turn{ID: "t1", Input: handoff.TextInput("run the tests")})
	must(t, err)
	for u, err := range attached.Agent.Follow(t.Context(), id) {
		must(t, err)
		if end, ok := u.(handoff.TurnEnded); ok && end.Status != handoff.TurnCompleted {
			t.Errorf("%+v", end)
		}
	}
	must(t, attached.Agent.Close())
	text, err := fleet.Read(t.Context(), handoff.Grant{}, target, 3)
	if err != nil || len(text.Lines) != 3 || text.Lines[0].Text != "run the tests" || text.Lines[2].Role != "agent" {
		t.Errorf("%+v, %v", text, err)
	}
	if _, err := fleet.Create(t.Context(), handoff.Target{Server: "attic"}); handoff.AsError(err).Code != handoff.CodeUnreachable {
		t.Errorf("attic: %v", err)
	}
}
