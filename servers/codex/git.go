package codex

import (
	"context"
	"errors"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/servers/jsonrpc"
	"switchboard/servers/trees"
)

// commandParams: command/exec. The command runs outside of the sandbox, in which .git cannot be written.
type commandParams struct {
	Command   []string           `json:"command"`
	Cwd       string             `json:"cwd"`
	TimeoutMs int64              `json:"timeoutMs"`
	Env       map[string]*string `json:"env"` // nil: the variable is taken away
	Sandbox   struct {
		Type string `json:"type"`
	} `json:"sandboxPolicy"`
}

// commandResult is the answer to command/exec.
type commandResult struct {
	ExitCode int    `json:"exitCode"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
}

// timedOut is the exit code of a command that took longer than its timeoutMs.
const timedOut = 124

// Git implements [servers.Gitter]: by the machine's own gate, if there is one, or else by the app-server.
func (c *connection) Git(ctx context.Context, dir string, args []string) (trees.Ran, error) {
	if err := trees.Check(dir, args); err != nil {
		return trees.Ran{}, handoff.Fault(handoff.CodeRefused, c.cfg.Name, err.Error())
	}
	if trees.Writes(args) && c.cfg.newSandbox() == "read-only" {
		return trees.Ran{}, trees.Cannot(c.cfg.Name, "its sessions only read",
			"Ask without a worktree, or loosen sandbox and ceiling of that machine; nothing was run.")
	}
	if c.cfg.remote {
		if ran, gated, err := c.peer.Git(ctx, c.cfg.Name, dir, args); gated || err != nil {
			return ran, err
		}
	}
	return trees.Guarded(c.execGit)(ctx, dir, args)
}

// execGit has the app-server run git.
func (c *connection) execGit(ctx context.Context, dir string, args []string) (trees.Ran, error) {
	p := commandParams{
		Command: trees.Command(args), Cwd: dir, TimeoutMs: trees.Takes.Milliseconds(),
		Env: map[string]*string{"GIT_DIR": nil, "GIT_WORK_TREE": nil, "GIT_INDEX_FILE": nil},
	}
	p.Sandbox.Type = "dangerFullAccess"
	for _, pair := range trees.Environment {
		name, value, _ := strings.Cut(pair, "=")
		p.Env[name] = &value
	}
	var result commandResult
	err := c.client.command(ctx, p, &result)
	e, refused := errors.AsType[*jsonrpc.Error](err)
	switch {
	case refused && strings.Contains(e.Message, "failed to spawn command"):
		return trees.Ran{Lacks: "there is no git, or no directory " + dir}, nil
	case refused && strings.Contains(e.Message, "unknown variant"):
		return trees.Ran{}, trees.Cannot(c.cfg.Name, "its app-server runs no commands",
			"Update Codex there, or ask without a worktree; nothing was run.")
	case err == nil && result.ExitCode == timedOut:
		err = handoff.Fault(handoff.CodeUnreachable, c.cfg.Name, "git did not end in time")
	}
	return trees.Ran{Exit: result.ExitCode, Out: result.Stdout, Err: result.Stderr}, jsonrpc.GitFault(err, c.cfg.Name)
}

// command runs a command of the few that [trees.Check] allows. It is sent once.
func (c client) command(ctx context.Context, p commandParams, result *commandResult) error {
	ctx, cancel := context.WithTimeoutCause(ctx, trees.Takes+10*time.Second, errTimeout)
	defer cancel()
	return c.peer.Call(ctx, "command/exec", p, result)
}
