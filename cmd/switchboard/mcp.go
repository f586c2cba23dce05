package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"switchboard/cmd/switchboard/cli"
	"switchboard/cmd/switchboard/verbs"
)

// mcpVerb is the verb that gives an agent on this machine the tools, by MCP over standard input and output.
func mcpVerb(c *console) *cli.Verb {
	return &cli.Verb{
		Name: "mcp", Group: verbs.Group, Uses: onlyConfig,
		Help:     "Give an agent on this machine your machines, over standard input and output.",
		Examples: []string{"codex mcp add switchboard -- switchboard mcp"},
		More: "For clients that start a program. Those that speak HTTP use the address of the page with /mcp behind it, and " +
			"a key that `switchboard key NAME` makes.",
		Run: func(ctx context.Context) error {
			_, state, err := c.here()
			if err != nil {
				return err
			}
			return mcpPipe(ctx, state, os.Stdin, c.stdout)
		},
	}
}

// mcpPipe connects a client that speaks MCP over standard input and output to the service that runs with a state
// directory, until either side ends.
func mcpPipe(ctx context.Context, state string, in io.Reader, out io.Writer) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://control/mcp/pipe", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "mcp")
	resp, err := controlTransport(state).RoundTrip(r)
	if err := asNotRunning(err); errors.Is(err, errNotRunning) {
		return err
	} else if err != nil {
		return fmt.Errorf("ask the running Switchboard: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // closing the body ends the session
	service, ok := resp.Body.(io.ReadWriter)
	if resp.StatusCode != http.StatusSwitchingProtocols || !ok {
		return fmt.Errorf("the running Switchboard does not offer MCP here: %s", resp.Status)
	}
	ended := make(chan error, 1) // the result of the direction that ends first
	for _, way := range []struct {
		to   io.Writer
		from io.Reader
	}{{service, in}, {out, service}} {
		go func() { // not awaited: a read of standard input ends only with the program
			_, err := io.Copy(way.to, way.from)
			select {
			case ended <- err:
			default: // the other direction ended first
			}
		}()
	}
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	return err
}
