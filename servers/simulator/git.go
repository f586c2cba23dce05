package simulator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
)

// codeSpawn is the code of a command that cannot be started.
const codeSpawn = -32603

// headCommit is what every simulated directory is at.
const headCommit = "5c90e1d08d41b0738a1f6e2b9c4d7051e3f2a6b8"

// commandExec runs a command outside of turns. There is only git, and of that what worktrees need: every directory is a
// repository, and nothing is ever committed.
func commandExec(m *machine, r request, p struct {
	Command []string
	Cwd     string
}) *refusal {
	args := p.Command
	if len(args) > 0 && args[0] == "git" {
		args = args[1:]
	}
	for len(args) > 2 && args[0] == "-c" {
		args = args[2:]
	}
	out, exit := "", 0
	switch strings.Join(args[:min(2, len(args))], " ") {
	case "rev-parse --is-inside-work-tree":
		out = "true\n\n"
	case "worktree list":
		out = fmt.Sprintf("worktree %s\nHEAD %s\nbranch refs/heads/main\n\n", p.Cwd, headCommit)
		for _, root := range m.trees {
			if w := handoff.WorktreeAt(root); w.Of == p.Cwd {
				out += fmt.Sprintf("worktree %s\nHEAD %s\nbranch refs/heads/%s\n\n", root, headCommit, w.Branch)
			}
		}
	case "worktree add":
		m.trees = append(m.trees, args[len(args)-1])
	case "worktree remove":
		m.trees = slices.DeleteFunc(m.trees, func(root string) bool { return root == args[len(args)-1] })
	case "merge-base --is-ancestor", "branch -d":
	case "log -g":
		out = fmt.Sprintf("%s branch@{%d}\n", headCommit, time.Now().Unix())
	case "rev-parse --verify", "config --show-scope":
		exit = 1
	default:
		return &refusal{code: codeSpawn, text: "failed to spawn command: No such file or directory (os error 2)"}
	}
	r.conn.reply(r.id, map[string]any{"exitCode": exit, "stdout": out, "stderr": ""})
	return nil
}
