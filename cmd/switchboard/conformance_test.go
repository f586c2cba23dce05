package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"switchboard/servers/codex"
	"switchboard/servers/serverstest"
	"switchboard/servers/simulator"
	"switchboard/sessions/sessionstest"
)

// TestConformance holds the Codex client, and with it the simulator, to what every kind of agent server
// promises.
func TestConformance(t *testing.T) {
	t.Parallel()
	serverstest.TestServer(t, func(t *testing.T) serverstest.Harness {
		m := newMachine(t)
		return serverstest.Harness{
			Dial: codex.Dialer(
				codex.Config{Name: m.name, Way: byURL("ws://" + m.address), Reconcile: 100 * time.Millisecond},
			),
			Drop:    func() { m.world.Drop(m.name) },
			Release: func() { m.world.Release(m.name) },
			Restart: func() { m.kill(); m.serve() },
			LoseStart: func(runs bool) {
				fault := simulator.StartLost
				if runs {
					fault = simulator.StartCut
				}
				m.world.SetFaults(m.name, simulator.Faults{Start: fault, StartOnce: true})
			},
			SlowStart: func() { m.world.SetFaults(m.name, simulator.Faults{Start: simulator.StartSlow}) },
			Unload:    func() { m.world.Unload(m.name) },
			Hold: func() {
				m.world.Unload(m.name)
				m.world.SetFaults(m.name, simulator.Faults{InUse: true})
			},
			Lie:     func(d time.Duration) { m.world.SetFaults(m.name, simulator.Faults{FalseInterrupt: d}) },
			Permits: true,
			Starts: func() int {
				n := 0
				for _, s := range m.world.Starts(m.name) {
					if s.Turn != "" && !s.Steered {
						n++
					}
				}
				return n
			},
			Gone: "01a1fac5-6c65-7c13-9ff2-be9c54078f33",
			Dir:  "~/work",
			Lacks: map[string]string{
				"a turn that its thread does not hold is given up": "a simulated machine says of such a turn that it has forgotten it",
			},
		}
	})
}

// A simulatedMachine is served, and can be killed and served again.
type simulatedMachine struct {
	t       *testing.T
	world   *simulator.World
	name    string
	address string
	kill    func() // ends it, once
}

// newMachine serves a machine with nothing on it whose agent knows the prompts of the suite.
func newMachine(t *testing.T) *simulatedMachine {
	m := &simulatedMachine{t: t, world: simulator.NewWorld(simulator.Config{Script: conformanceScript}), name: "attic"}
	m.serve()
	return m
}

func (m *simulatedMachine) serve() {
	m.t.Helper()
	if m.address == "" {
		m.address = fmt.Sprintf("127.0.0.1:%d", sessionstest.FreePort(m.t))
	}
	ln, err := net.Listen("tcp", m.address)
	must(m.t, err)
	m.kill = background(m.t, func(ctx context.Context) error { return m.world.Serve(ctx, m.name, ln) })
}

// conformanceScript does what the prompts of the suite say.
func conformanceScript(p simulator.Prompt) []simulator.Step {
	say := func(text string) simulator.Say { return simulator.Say{Text: text, Every: time.Millisecond} }
	command := simulator.Run{
		Command: serverstest.Command,
		Lines:   linesOf(serverstest.CommandOutput),
		Exit:    serverstest.CommandExit,
	}
	text, _, _ := strings.Cut(p.Text, " ü")
	switch text {
	case serverstest.PromptHello:
		return []simulator.Step{say(serverstest.TextHello)}
	case serverstest.PromptCommand:
		return []simulator.Step{command, say(serverstest.TextCommand)}
	case serverstest.PromptBoth:
		other := simulator.Run{Command: serverstest.OtherCommand, Lines: linesOf(serverstest.OtherOutput)}
		return []simulator.Step{simulator.Both{command, other}, say(serverstest.TextBoth)}
	case serverstest.PromptEdit:
		return []simulator.Step{
			simulator.Edit{
				Changes: []simulator.Change{{Path: serverstest.EditPath, Diff: "@@ -1 +1 @@\n-a\n+b\n"}},
			}, say(serverstest.TextEdit),
		}
	case serverstest.PromptAsk:
		return []simulator.Step{simulator.Ask{
			Command: serverstest.AskCommand, Accepted: []simulator.Step{say(serverstest.TextAccepted)}, Declined: []simulator.Step{say(serverstest.TextDeclined)},
		}}
	case serverstest.PromptInput:
		return []simulator.Step{simulator.Input{
			Queries: []simulator.Query{{Text: serverstest.InputQuestion, Options: serverstest.InputOptions}},
			Answered: func(answers []string) []simulator.Step {
				return []simulator.Step{say(serverstest.TextInput + answers[0])}
			},
		}}
	case serverstest.PromptPermit:
		return []simulator.Step{simulator.Permit{
			Network: true, Granted: []simulator.Step{say(serverstest.TextAccepted)}, Refused: []simulator.Step{say(serverstest.TextDeclined)},
		}}
	case serverstest.PromptWait:
		return []simulator.Step{say(serverstest.TextWaiting), simulator.Hang{}, say(serverstest.TextBack)}
	case serverstest.PromptMind:
		return []simulator.Step{simulator.Hang{}, say(serverstest.TextMinded)}
	case serverstest.PromptFail:
		return []simulator.Step{simulator.Fail{Message: serverstest.DetailFail}}
	}
	return nil
}

// linesOf prints a line a millisecond.
func linesOf(output string) []simulator.Line {
	var all []simulator.Line
	for line := range strings.Lines(output) {
		all = append(all, simulator.Line{Text: line, After: time.Millisecond})
	}
	return all
}
