package jsonrpc

import (
	"context"
	"errors"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/servers/trees"
)

// gitGrace is how much longer than the command its answer may take.
const gitGrace = 10 * time.Second

// Git asks the machine's own gate to run a command of git; server is its name, for errors. gated is false if nothing
// such stands there: the agent itself has answered.
func (p *Peer) Git(ctx context.Context, server, dir string, args []string) (ran trees.Ran, gated bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, trees.Takes+gitGrace)
	defer cancel()
	err = p.Call(ctx, trees.Method, trees.Request{Cwd: dir, Args: args}, &ran)
	if e, refused := errors.AsType[*Error](err); refused && strings.Contains(e.Message, "unknown variant") {
		return ran, false, nil
	}
	return ran, true, GitFault(err, server)
}

// GitFault returns what a machine's error means for a command of git; nil for nil.
func GitFault(err error, server string) error {
	e, refused := errors.AsType[*Error](err)
	switch {
	case err == nil:
		return nil
	case !refused:
		fault := *handoff.AsError(err)
		if fault.Code == handoff.CodeInternal {
			fault.Code = handoff.CodeUnreachable
		}
		fault.Subject = server
		return &fault
	case e.Message == trees.RefusedMethod:
		return trees.Cannot(server, "its Switchboard is older and makes no worktrees",
			"Update Switchboard on that machine, or ask without a worktree; nothing was run.")
	}
	return trees.Cannot(server, handoff.ClipRunes(e.Message, 200), "Ask without a worktree; nothing was run.")
}
