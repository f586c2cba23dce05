package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"

	"switchboard/realtime/rtc"
	"switchboard/realtime/simulator"
	"switchboard/servers/codex"
	machines "switchboard/servers/simulator"
)

type simulateVerb struct {
	Port  int     `placeholder:"N" help:"The first port; each simulator has the next one. Else any that are free."`
	Speed float64 `default:"1" placeholder:"X" help:"How many times faster than usual they are."`
}

// Help shows examples.
func (simulateVerb) Help() string {
	return examples("switchboard simulate --port 4500",
		"switchboard simulate > sim.yaml &   # then: switchboard --config sim.yaml") +
		"\n\nWhat it prints is a configuration with which Switchboard uses them: a Realtime server, and machines that " +
		"are Codex app-servers."
}

// run runs the simulated voice and machines alone until ctx ends, and prints where they are.
func (v simulateVerb) run(ctx context.Context, stdout, stderr io.Writer) error {
	if v.Port < 0 || v.Port > 65535 || v.Speed <= 0 {
		return typed("--port is a port and --speed is above 0")
	}
	log := newLog(stderr)
	s := &simulators{log: log, port: v.Port}
	defer func() {
		for _, l := range s.listeners {
			_ = l.Close() // fails if a simulator has closed it already
		}
	}()
	var text strings.Builder
	voice, err := s.serve("simulated voice", carryingVoice(simulator.Config{Hurry: v.Speed, Log: log}, rtc.Config{}))
	if err != nil {
		return err
	}
	fmt.Fprintf(&text, "model: {url: \"ws://%s/v1/realtime\", name: %s}\nservers:\n", voice, simulator.Name)
	world := machines.NewWorld(machines.Config{Speed: v.Speed, Log: log})
	for _, m := range world.Machines() {
		at := nobodyThere
		if !m.Down {
			if at, err = s.serve("simulated "+m.Name,
				func(ctx context.Context, l net.Listener) error { return world.Serve(ctx, m.Name, l) }); err != nil {
				return err
			}
			at = "ws://" + at
		}
		fmt.Fprintf(&text, "  - {name: %s, kind: %s, url: %q}\n", m.Name, codex.Name, at)
	}
	if _, err := io.WriteString(stdout, text.String()); err != nil {
		return err
	}
	return runStages(ctx, log, s.stages)
}
