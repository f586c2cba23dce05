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
	onAStore(t, func(t *testing.T, store string) {
		f := newFarm(t)
		own, err := os.Executable()
		must(t, err)
		played := func(program, set string) string {
			return fmt.Sprintf("[ \"$1\" = --version ] && exec echo %s 0.169.0\nexport %s\nexec %s \"$@\"\n", program, set, own)
		}
		far := farMachine(t)
		far.Install("codex", "#!/bin/sh\n"+played("codex", fakeCodexEnv+"="+strings.TrimPrefix(f.at["bigpc"], "ws://")))
		far.Install("claude-agent-acp", "#!/bin/sh\n"+played("claude-agent-acp", fakeClaudeEnv+"="+f.withAgents(t)))
		proofSSH(t, f, far, store, 1)
	})
}

// TestProofSSHReal is TestProofSSH with the real codex and claude-agent-acp, whose model is played.
func TestProofSSHReal(t *testing.T) {
	if !soak() {
		t.Skip("takes minutes: TestProofSSH has the short form")
	}
	onAStore(t, func(t *testing.T, store string) {
		f := newFarm(t)
		f.model = newJobModel(t)
		far := farMachine(t)
		far.Install("codex", "#!/bin/sh\n"+codexScript(t, f.model))
		far.Install("claude-agent-acp", "#!/bin/sh\n"+claudeScript(t, far.Home, f.model))
		proofSSH(t, f, far, store, 10)
	})
}

// proofSSH adds the machine at the other end of ssh, and kills ssh in the middle of work so many times.
func proofSSH(t *testing.T, f *farm, far *serverstest.SSHD, store string, rounds int) {
	s := newSite(t, f.voice.URL, store, nil)
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
	for round := range rounds {
		c.up("mini", "studio")
		var jobs []string
		for i, name := range []string{"mini", "studio"} {
			jobs = append(jobs, fmt.Sprintf("job %d takes 1500", 2*round+i+1))
			p.say(work(name, jobs[i]))
		}
		until(t, "the jobs to begin", func() bool { return f.turns()[jobs[0]] == 1 && f.turns()[jobs[1]] == 1 })
		if n := killSSH(t, c.cmd.Process.Pid); n < 2 {
			t.Errorf("killed %d, want one of each machine", n)
		}
		for i := range jobs {
			words := fmt.Sprintf("job %d is done", 2*round+i+1)
			until(t, words, func() bool { return containing(texts(f.voice.given()), words) == 1 })
		}
	}
	f.check(t)
}

// farMachine is a machine with an sshd, on which switchboard is installed.
func farMachine(t *testing.T) *serverstest.SSHD {
	t.Helper()
	far := serverstest.StartSSHD(t, sessionstest.FreePort)
	own, err := os.Executable()
	must(t, err)
	far.Install("switchboard", fmt.Sprintf("#!/bin/sh\nexport %s=far\nexec %s \"$@\"\n", childEnv, own))
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
