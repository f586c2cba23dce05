package main

import (
	"net"
	"strings"
	"testing"
	"time"

	"switchboard/servers/codex"
	"switchboard/servers/serverstest"
	"switchboard/servers/simulator"
)

// TestConformance holds the Codex client, and with it the simulator, to what every kind of agent server
// promises.
func TestConformance(t *testing.T) {
	t.Parallel()
	const machine = "attic" // it has nothing on it
	serverstest.TestServer(t, func(t *testing.T) serverstest.Harness {
		world := simulator.NewWorld(simulator.Config{Script: conformanceScript})
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- world.Serve(t.Context(), machine, ln) }()
		t.Cleanup(func() { // the test's context has ended
			if err := <-served; err != nil {
				t.Errorf("serve: %v", err)
			}
		})
		return serverstest.Harness{
			Dial: codex.Dialer(codex.Config{Name: machine, URL: "ws://" + ln.Addr().String()}),
			Drop: func() { world.Drop(machine) },
			Starts: func() int {
				n := 0
				for _, s := range world.Starts(machine) {
					if !s.Steered {
						n++
					}
				}
				return n
			},
			Gone: "01a1fac5-6c65-7c13-9ff2-be9c54078f33",
			Dir:  "~/work",
		}
	})
}

// conformanceScript does what the prompts of the suite say.
func conformanceScript(p simulator.Prompt) []simulator.Step {
	say := func(text string) simulator.Say { return simulator.Say{Text: text, Every: time.Millisecond} }
	text, _, _ := strings.Cut(p.Text, " ü")
	switch text {
	case serverstest.PromptHello:
		return []simulator.Step{say(serverstest.TextHello)}
	case serverstest.PromptCommand:
		var lines []simulator.Line
		for line := range strings.Lines(serverstest.CommandOutput) {
			lines = append(lines, simulator.Line{Text: line, After: time.Millisecond})
		}
		return []simulator.Step{
			simulator.Run{Command: serverstest.Command, Lines: lines, Exit: serverstest.CommandExit}, say(serverstest.TextCommand),
		}
	case serverstest.PromptEdit:
		return []simulator.Step{
			simulator.Edit{Changes: []simulator.Change{{Path: serverstest.EditPath, Diff: "@@ -1 +1 @@\n-a\n+b\n"}}}, say(serverstest.TextEdit),
		}
	case serverstest.PromptAsk:
		return []simulator.Step{simulator.Ask{
			Command: serverstest.AskCommand, Accepted: []simulator.Step{say(serverstest.TextAccepted)}, Declined: []simulator.Step{say(serverstest.TextDeclined)},
		}}
	case serverstest.PromptWait:
		return []simulator.Step{say(serverstest.TextWaiting), simulator.Hang{}}
	case serverstest.PromptBack:
		return []simulator.Step{say(serverstest.TextBack)}
	case serverstest.PromptFail:
		return []simulator.Step{simulator.Fail{Message: serverstest.DetailFail}}
	}
	return nil
}
