package acp

import (
	"context"
	"os"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/trees"
)

// readsOnly are the modes in which agents only read. Set once.
var readsOnly = map[string]bool{"plan": true, "read-only": true}

// Git implements [servers.Gitter]: here, if the agent is a child of this process, or else by the gate of its machine.
func (c *connection) Git(ctx context.Context, dir string, args []string) (trees.Ran, error) {
	switch err := trees.Check(dir, args); {
	case err != nil:
		return trees.Ran{}, handoff.Fault(handoff.CodeRefused, c.cfg.Name, err.Error())
	case trees.Writes(args) && readsOnly[c.cfg.Mode]:
		return trees.Ran{}, trees.Cannot(c.cfg.Name, "its sessions only read",
			"Ask without a worktree, or set another mode for that machine; nothing was run.")
	case c.cfg.local:
		return trees.Here(servers.ChildEnv(os.Environ(), nil))(ctx, dir, args)
	}
	ran, _, err := c.peer.Git(ctx, c.cfg.Name, dir, args)
	return ran, err
}
