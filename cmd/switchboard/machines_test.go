package main

import (
	"testing"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/codex"
	"switchboard/servers/joined"
)

// TestMachineSpec: a machine that joined has the settings of the entry that says so, and never the place of a server
// that is reached in another way.
func TestMachineSpec(t *testing.T) {
	t.Parallel()
	lines := new(joined.Lines)
	configured := []servers.Spec{
		{Name: "mini", Kind: codex.Name, Dir: "/src", Own: &codex.Config{Way: &joined.Way{Joined: true}}},
		{Name: "mini-studio", Kind: codex.Name, Own: &codex.Config{}}, // by its address
		{Name: "helper", Kind: "responses"},
	}
	for name, ok := range map[string]bool{"mini": true, "new": true, "mini-studio": false, "helper": false} {
		spec, err := machineSpec(joined.Server{Name: name, Agent: joined.Agent{Name: "codex", Kind: codex.Name}}, configured, lines)
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
