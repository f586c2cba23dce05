package acp

import (
	"os"
	"sync"
	"testing"

	"switchboard/servers/serverstest"
)

// TestMain runs the tests, or, in a process that a test has started, a simulated agent on the standard streams.
func TestMain(m *testing.M) {
	if os.Getenv("ACP_AGENT") == "" {
		serverstest.Main(m)
		return
	}
	w := newWorld(profiles["branching"])
	w.Serve(os.Stdin, os.Stdout, sync.OnceFunc(func() { _ = os.Stdin.Close() }))
	if path := os.Getenv("ACP_GOODBYE"); path != "" { // it ended by itself
		_ = os.WriteFile(path, nil, 0o600)
	}
}
