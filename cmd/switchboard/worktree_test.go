package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/codex"
)

// TestWorktree: with the simulated machines, work is given in a worktree beside work that runs in the same project; the
// worktree is shown, and removed on request, and its session ends with it.
func TestWorktree(t *testing.T) {
	t.Parallel()
	sh := openShell(t, nil)
	sh.r.up("bigpc")
	sh.wants(0, []string{"It is on the branch switchboard/which-branch-is-this-"}, "handoff", "bigpc/shop", "--worktree",
		"which branch is this?")
	sh.wants(0, []string{"switchboard/which-branch-is-this-", "/home/me/src/shop-worktrees/which-branch-is-this-"}, "sessions",
		"bigpc/shop", "--query", "which branch is this")
	sh.wants(0, []string{"It is on the branch switchboard/which-branch-is-this-"}, "handoff", "bigpc/shop",
		"and which branch is this now?")
	sh.wants(0, []string{"removed"}, "remove-worktree", "bigpc", "which branch is this?")
	sh.wants(4, []string{"no longer exists"}, "handoff", "bigpc/shop", "--thread", "which branch is this?", "again")
	sh.wants(exitFailed, []string{"There is no worktree of that session"}, "remove-worktree", "bigpc", "auth refactor")
	sh.wants(4, []string{"only a new session"}, "handoff", "bigpc", "--worktree", "--thread", "auth refactor", "x")
}

// TestRealCodexWorktree: the app-server makes the worktree outside of its sandbox, the session works there, and what is
// not committed keeps it from being removed.
func TestRealCodexWorktree(t *testing.T) {
	t.Parallel()
	c := startCodex(t)
	dir := filepath.Join(t.TempDir(), "api")
	for _, args := range [][]string{{"init", "-q", dir}, {"-C", dir, "-c", "user.name=Ann", "-c", "user.email=a@b", "commit",
		"-q", "--allow-empty", "-m", "begin"}} {
		must(t, exec.CommandContext(t.Context(), "git", args...).Run())
	}
	r := start(t, func(p *plan) {
		p.Servers = []servers.Spec{{
			Name: "bigpc", Kind: codex.Name, Dir: c.work, Own: codexAt(c.url), IsThread: codex.Kind().IsThread,
			Projects: map[string]string{"api": dir}, Worktrees: map[string]bool{"api": true},
		}}
	})
	r.up("bigpc")
	id := r.hand(`{"server":"bigpc/api","prompt":"held"}`)
	until(t, "the agent to speak", func() bool { return len(r.whole(id).Items) > 0 })
	first := r.whole(id)
	other := r.hand(`{"server":"bigpc/api","thread_id":"new","prompt":"beside it"}`)
	second := r.outcome(other) // while the first runs
	c.provider.letsGo()
	if rec := r.outcome(id); rec.Outcome != handoff.OutcomeResult || second.Outcome != handoff.OutcomeResult ||
		first.Worktree == nil || second.Worktree == nil || first.Worktree.Directory == second.Worktree.Directory {
		t.Fatalf("%s in %+v, %s in %+v", rec.Outcome, first.Worktree, second.Outcome, second.Worktree)
	}
	must(t, os.WriteFile(filepath.Join(first.Worktree.Directory, "new"), nil, 0o600))
	remove := func(rec handoff.Record) int {
		status, _ := r.ask(http.MethodDelete, "/fleet/sessions/bigpc/"+rec.ThreadID+"/worktree", "")
		return status
	}
	if kept, gone := remove(first), remove(second); kept != http.StatusForbidden || gone != http.StatusNoContent {
		t.Errorf("removals were answered with %d and %d", kept, gone)
	}
	left, err := os.ReadDir(dir + handoff.WorktreeDirs)
	must(t, err)
	if len(left) != 1 || !strings.HasPrefix(left[0].Name(), "held-") {
		t.Errorf("left are %v", left)
	}
}
