package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"switchboard/servers/serverstest"
	"switchboard/sessions/sessionstest"
)

// TestProofSSH: Codex and an agent of the Agent Client Protocol are added by ssh, and their work goes on when every ssh
// is killed in the middle of it. Each begins once, and its result is told once.
func TestProofSSH(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	s := newSite(t, f.voice.URL, "", nil)
	far := farMachine(t, f)
	s.env = []string{"PATH=" + far.Path()}
	add := func(want string, args ...string) {
		t.Helper()
		cmd := exec.Command(os.Args[0], append([]string{"add", "--config", s.config}, args...)...)
		cmd.Env = append(os.Environ(), childEnv+"=verb", "XDG_STATE_HOME="+s.state, s.env[0])
		if text, err := cmd.CombinedOutput(); !strings.Contains(string(text), want) {
			t.Fatalf("add: %s, %v; want %q", text, err, want)
		}
	}
	add("is not installed there", "studio", "ssh:box", "no-such-agent", "--set", "cwd="+far.Home)
	add("added mini", "mini", "ssh:box")
	add("added studio", "studio", "ssh:box", "claude-agent-acp", "--set", "cwd="+far.Home)
	c := s.start()
	c.up("mini", "studio")
	p := c.call()
	for i, name := range []string{"mini", "studio"} {
		p.say(work(name, fmt.Sprintf("job %d takes 1500", i+1)))
	}
	until(t, "the jobs to begin", func() bool {
		return f.turns()["job 1 takes 1500"] == 1 && f.turns()["job 2 takes 1500"] == 1
	})
	if n := killSSH(t, c.cmd.Process.Pid); n < 2 {
		t.Errorf("killed %d, want one of each machine", n)
	}
	for _, words := range []string{"job 1 is done", "job 2 is done"} {
		until(t, words, func() bool { return containing(texts(f.voice.given()), words) == 1 })
	}
	f.check(t)
}

// farMachine is a machine with an sshd, on which switchboard, a codex and an agent are installed.
func farMachine(t *testing.T, f *farm) *serverstest.SSHD {
	t.Helper()
	far := serverstest.StartSSHD(t, sessionstest.FreePort)
	own, err := os.Executable()
	must(t, err)
	for program, set := range map[string]string{
		"switchboard": childEnv + "=far", "codex": fakeCodexEnv + "=" + strings.TrimPrefix(f.at["bigpc"], "ws://"),
		"claude-agent-acp": fakeClaudeEnv + "=" + f.withAgents(t),
	} {
		far.Install(program, fmt.Sprintf("#!/bin/sh\n[ \"$1\" = --version ] && exec echo %s 0.169.0\nexport %s\nexec %s \"$@\"\n",
			program, set, own))
	}
	t.Cleanup(func() { // its agents outlive whoever came
		kept, _ := filepath.Glob(filepath.Join(far.Home, ".local", "state", "switchboard", "machine", "*.process.json"))
		for _, file := range kept {
			var process struct{ PID int }
			text, err := os.ReadFile(file)
			if must(t, cmp.Or(err, json.Unmarshal(text, &process))); process.PID > 1 {
				_ = syscall.Kill(-process.PID, syscall.SIGKILL) // it may have ended
			}
		}
	})
	return far
}

// killSSH kills the processes that a service has started: those of ssh. It returns how many there were.
func killSSH(t *testing.T, service int) (n int) {
	t.Helper()
	found, err := exec.Command("ps", "-o", "pid=", "--ppid", strconv.Itoa(service)).Output()
	must(t, err)
	for pid := range strings.FieldsSeq(string(found)) {
		number, err := strconv.Atoi(pid)
		must(t, err)
		_ = syscall.Kill(number, syscall.SIGKILL) // it may have ended
		n++
	}
	return n
}
