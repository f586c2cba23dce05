package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
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
	dir := repository(t)
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
	r.removes(first, second)
}

// repository makes a repository of git.
func repository(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "api")
	for _, args := range [][]string{{"init", "-q", dir}, {"-C", dir, "-c", "user.name=Ann", "-c", "user.email=a@b", "commit",
		"-q", "--allow-empty", "-m", "begin"}} {
		must(t, exec.CommandContext(t.Context(), "git", args...).Run())
	}
	return dir
}

// removes holds that the worktree of the first work, in which something is not committed, stays, and that of the second
// is removed.
func (r *running) removes(first, second handoff.Record) {
	r.t.Helper()
	must(r.t, os.WriteFile(filepath.Join(first.Worktree.Directory, "new"), nil, 0o600))
	remove := func(rec handoff.Record) int {
		status, _ := r.ask(http.MethodDelete, "/fleet/sessions/"+rec.Server+"/"+rec.ThreadID+"/worktree", "")
		return status
	}
	if kept, gone := remove(first), remove(second); kept != http.StatusForbidden || gone != http.StatusNoContent {
		r.t.Errorf("%s: removals were answered with %d and %d", first.Server, kept, gone)
	}
	left, err := os.ReadDir(filepath.Dir(first.Worktree.Directory))
	must(r.t, err)
	if len(left) != 1 || left[0].Name() != filepath.Base(first.Worktree.Directory) {
		r.t.Errorf("left are %v", left)
	}
}

// TestWorktreeWays: an agent that is a child, and one at the other end of ssh, work in worktrees, two at a time in one
// project.
func TestWorktreeWays(t *testing.T) {
	t.Parallel()
	f, far := newFarm(t), farMachine(t)
	own, err := os.Executable()
	must(t, err)
	played := fmt.Sprintf("#!/bin/sh\nexport %s=%s\nexec %s \"$@\"\n", fakeClaudeEnv, f.withAgents(t), own)
	far.Install("claude-agent-acp", played)
	here := filepath.Join(t.TempDir(), "claude-agent-acp")
	must(t, os.WriteFile(here, []byte(played), 0o700))
	s := newSite(t, f.voice.URL, "", nil)
	s.env = []string{"PATH=" + far.Path()}
	text, err := os.ReadFile(s.config)
	must(t, err)
	text = append(text, "servers:\n"...)
	for _, way := range []string{"name: kid, command: [" + here + "]", "name: studio, ssh: box, command: [claude-agent-acp]"} {
		dir := repository(t)
		text = fmt.Appendf(text, "  - {kind: acp, %s, cwd: %s, projects: {api: {dir: %s, worktree: true}}}\n", way, dir, dir)
	}
	must(t, os.WriteFile(s.config, text, 0o600))
	c := s.start()
	c.up("kid", "studio")
	for i, name := range []string{"kid", "studio"} {
		long := c.hand(fmt.Sprintf(`{"server":"%s/api","prompt":"job %d takes 600000"}`, name, 2*i))
		until(t, "the first work to begin", func() bool { return c.whole(long).State == handoff.StatusStarted })
		second := c.outcome(c.hand(fmt.Sprintf(`{"server":"%s/api","thread_id":"new","prompt":"job %d takes 10"}`, name, 2*i+1)))
		if first := c.whole(long); first.Outcome != "" {
			t.Fatalf("%s: %+v", name, first)
		}
		c.ask(http.MethodPost, "/fleet/handoffs/"+long+"/stop", "")
		first := c.outcome(long)
		if first.Worktree == nil || second.Worktree == nil || second.Outcome != handoff.OutcomeResult ||
			first.Worktree.Directory == second.Worktree.Directory {
			t.Fatalf("%s: %+v, and %s in %+v", name, first.Worktree, second.Outcome, second.Worktree)
		}
		c.removes(first, second)
	}
	f.check(t)
}
