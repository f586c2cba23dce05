package acp

import (
	"testing"

	"switchboard/servers"
	"switchboard/servers/serverstest"
)

// TestFarBackInTheList: a session far back in the agent's list is opened in its own directory.
func TestFarBackInTheList(t *testing.T) {
	t.Parallel()
	w := newWorld(profiles["branching"])
	link := linkTo(t, dialer(t, w, nil))
	a := create(t, link)
	follow(t, a, start(t, a, serverstest.PromptHello), nil)
	for range 2*maxListPages + 1 { // there are two on a page
		b, err := link.Conn.(servers.Forker).Fork(t.Context(), a.Target.Thread, "")
		must(t, err)
		must(t, b.Agent.Close())
	}
	next := linkTo(t, dialer(t, w, func(c *Config) { c.Cwd = t.TempDir() }))
	if b := attach(t, next, a.Target.Thread); b.Workspace != a.Workspace {
		t.Errorf("it is opened in %s, not %s", b.Workspace, a.Workspace)
	}
}
