package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"go.uber.org/zap"

	"switchboard/cmd/switchboard/cli"
	"switchboard/realtime/rtc"
	"switchboard/realtime/simulator"
	"switchboard/servers/codex"
	machines "switchboard/servers/simulator"
)

// simulateVerb is the verb that runs the simulated voice and machines alone, and prints where they are.
func simulateVerb(c *console) *cli.Verb {
	port, speed := 0, 1.0
	return &cli.Verb{
		Name: "simulate", Help: "Run the simulated voice and machines alone, to test other programs with.", Uses: []string{},
		Flags: []cli.Flag{
			{Name: "port", Value: "N", Into: &port,
				Help: "The first port. Each simulator has the next one. Without it, any free ports."},
			{Name: "speed", Value: "X", Into: &speed, Help: "How many times faster than usual they are."},
		},
		Examples: []string{"switchboard simulate --port 4500",
			"switchboard simulate > sim.yaml &   # then: switchboard --config sim.yaml"},
		More: "What it prints is a configuration with which Switchboard uses them: a Realtime server, and machines that are " +
			"Codex app-servers.",
		Run: func(ctx context.Context) error {
			if port < 0 || port > 65535 || !(speed > 0) { // which is also false of what is not a number
				return cli.Mistyped("--port is 0 to 65535, and --speed is above 0")
			}
			return simulate(ctx, port, speed, c.stdout, newLog(c.stderr))
		},
	}
}

// simulate runs the simulated voice and machines until ctx ends.
func simulate(ctx context.Context, port int, speed float64, stdout io.Writer, log *zap.Logger) error {
	s := newSimulators(log)
	s.port = port
	defer s.close()
	var text strings.Builder
	voice, err := s.serve("simulated voice", carryingVoice(simulator.Config{Hurry: speed, Log: log}, rtc.Config{}))
	if err != nil {
		return err
	}
	fmt.Fprintf(&text, "model: {url: \"ws://%s/v1/realtime\", name: %s}\nservers:\n", voice, simulator.Name)
	world := machines.NewWorld(machines.Config{Speed: speed, Log: log})
	for _, m := range world.Machines() {
		url, err := s.machine(world, m)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "  - {name: %s, kind: %s, url: %q}\n", m.Name, codex.Name, url)
	}
	if _, err := io.WriteString(stdout, text.String()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
