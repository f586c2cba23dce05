package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/servers/joined"
	"switchboard/sessions/sessionstest"
)

// fakeCodexEnv makes the test binary be a codex app-server: what connects to its socket reaches the simulated machine
// at the address that it names.
const fakeCodexEnv = "TEST_SWITCHBOARD_CODEX"

func fakeCodex(to string) {
	l, err := net.Listen("unix", strings.TrimPrefix(os.Args[len(os.Args)-1], "unix://"))
	if err != nil {
		panic(err)
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			if far, err := net.Dial("tcp", to); err == nil {
				joined.Join(context.Background(), conn, far)
			}
		}()
	}
}

// fakeClaudeEnv makes the test binary be an agent of the Agent Client Protocol: its standard streams lead to the agent
// at the address that it names.
const fakeClaudeEnv = "TEST_SWITCHBOARD_CLAUDE"

func fakeClaude(to string) {
	far, err := net.Dial("tcp", to)
	if err != nil {
		panic(err)
	}
	go func() {
		_, _ = io.Copy(far, os.Stdin) // its end is ours
		_ = far.Close()
	}()
	_, _ = io.Copy(os.Stdout, far)
}

// A joiner is a machine that joins: a process of its own with a home of its own, and a codex in its path.
type joiner struct {
	t    testing.TB
	home string
	out  *syncBuffer
	cmd  *exec.Cmd
	done chan struct{} // of the process that runs
}

// newJoiner makes a machine whose codex works as the simulated machine at an address does.
func newJoiner(t testing.TB, codex string) *joiner {
	t.Helper()
	return joinerWith(t, "codex", fakeCodexEnv, strings.TrimPrefix(codex, "ws://"))
}

// joinerWith makes a machine with a program, which the test binary is with a variable set.
func joinerWith(t testing.TB, program, variable, value string) *joiner {
	t.Helper()
	j := &joiner{t: t, home: t.TempDir(), out: &syncBuffer{}}
	bin := filepath.Join(j.home, "bin")
	must(t, os.MkdirAll(bin, 0o700))
	own, err := os.Executable()
	must(t, err)
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = --version ] && exec echo codex-cli 0.169.0\nexport %s=%s\nexec %s \"$@\"\n",
		variable, value, own)
	must(t, os.WriteFile(filepath.Join(bin, program), []byte(script), 0o700))
	t.Cleanup(func() {
		j.stop(syscall.SIGKILL)
		_, _ = j.run("leave") // ends its agents
		if t.Failed() {
			t.Logf("the joined machine:\n%s", j.out.String())
		}
	})
	return j
}

func (j *joiner) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = []string{
		childEnv + "=joined", "HOME=" + j.home, "XDG_STATE_HOME=" + filepath.Join(j.home, "s"),
		"PATH=" + filepath.Join(j.home, "bin") + ":" + os.Getenv("PATH"),
	}
	return cmd
}

// run runs a verb on the machine to its end.
func (j *joiner) run(args ...string) (string, error) {
	text, err := j.command(args...).CombinedOutput()
	return string(text), err
}

// start runs join in the background.
func (j *joiner) start(args ...string) {
	j.t.Helper()
	j.cmd, j.done = j.command(append([]string{"join"}, args...)...), make(chan struct{})
	j.cmd.Stdout, j.cmd.Stderr = j.out, j.out
	must(j.t, j.cmd.Start())
	go func() {
		_ = j.cmd.Wait()
		close(j.done)
	}()
}

// stop ends join by a signal.
func (j *joiner) stop(s syscall.Signal) {
	if j.cmd == nil {
		return
	}
	_ = j.cmd.Process.Signal(s) // it may have ended
	<-j.done
}

// invite has a service print the command for a machine, and returns what follows "switchboard join".
func (c *child) invite(s *site, name string) []string {
	c.t.Helper()
	cmd := exec.Command(os.Args[0], "invite", name)
	cmd.Env = append(os.Environ(), childEnv+"=verb", "XDG_STATE_HOME="+s.state)
	text, err := cmd.Output()
	words := strings.Fields(string(text))
	if err != nil || len(words) != 4 || words[0]+words[1] != "switchboardjoin" {
		c.t.Fatalf("invite: %q, %v", text, err)
	}
	return words[2:]
}

// TestProofJoined: three machines join by the printed command: one with Codex, one with an agent of the Agent Client
// Protocol, and one that dies. The two are worked with through their lines, while these are cut at random bytes, and
// the service and the joined processes are killed. Whatever an agent began it began once, its result is told once, and
// nothing is lost.
func TestProofJoined(t *testing.T) { t.Parallel(); onBothStores(t, proofJoined) }

func proofJoined(t *testing.T, store string) {
	f := newFarm(t)
	s := newSite(t, f.voice.URL, store, nil)
	s.listen = fmt.Sprintf("127.0.0.1:%d", sessionstest.FreePort(t))
	c := s.start()
	early := c.call() // older than the machines
	simulated := len(items[handoff.ServerInfo](&c.running, "/fleet/servers"))
	joins := map[string]*joiner{
		"mini": newJoiner(t, f.at["bigpc"]), "studio": joinerWith(t, "claude-agent-acp", fakeClaudeEnv, f.withAgents(t)),
		"attic": newJoiner(t, f.at["laptop"]),
	}
	agents := map[string]string{"mini": "codex", "studio": "claude", "attic": "codex"}
	line := newCutter(t, "line", s.listen)
	for name, j := range joins {
		j.start("http://"+strings.TrimPrefix(line.at, "ws://"), c.invite(s, name)[1], "--agents", agents[name])
	}
	c.up("mini", "studio", "attic")
	joins["attic"].stop(syscall.SIGKILL)
	if servers := items[handoff.ServerInfo](&c.running, "/fleet/servers"); len(servers) != 3 {
		t.Errorf("there is something else than the machines that joined: %+v", servers)
	}
	early.say(work("mini", "job 1000 takes 10"))
	early.hear("job 1000 is done")
	early.hangUp()

	// The lines are cut at random bytes.
	ctx, cancel := context.WithTimeout(t.Context(), scale(4*time.Second, 15*time.Minute))
	cutting := make(chan struct{})
	go func() {
		defer close(cutting)
		line.run(ctx, t, rand.New(rand.NewPCG(11, uint64(len(store)))))
	}()
	w := newShift(t, c, f, scale(4, 6), 1, "mini", "studio")
	w.takes = func(job int) int { return job * 37 % 1000 }
	w.run(scale(8, 200), scale(patience, 15*time.Minute))
	cancel()
	<-cutting
	w.told()
	f.check(t)
	c.up("mini", "studio") // the last cut may have been the newest thing that happened

	// The service is killed in the middle of work, and started again.
	p := c.call()
	var killed []*killedJob
	for i, name := range []string{"mini", "studio"} {
		job := &killedJob{number: 1001 + i, prompt: fmt.Sprintf("job %d takes 1500", 1001+i)}
		p.say(work(name, job.prompt))
		killed = append(killed, job)
	}
	until(t, "the jobs to begin", func() bool {
		return f.turns()[killed[0].prompt] == 1 && f.turns()[killed[1].prompt] == 1
	})
	c.signal(syscall.SIGKILL)
	for _, job := range killed {
		job.calls = f.voice.calls()
	}
	c = s.start()
	c.up("mini", "studio")
	p = c.call()
	f.told(t, c, killed)
	for _, job := range killed {
		if job.fate != "adopted and told" {
			t.Errorf("%s: %s", job.prompt, job.fate)
		}
	}

	// So are the joined processes: their agents go on, and are found again.
	for i, name := range []string{"mini", "studio"} {
		p.say(work(name, fmt.Sprintf("job %d takes 1500", 1003+i)))
	}
	until(t, "the jobs to begin", func() bool {
		return f.turns()["job 1003 takes 1500"] == 1 && f.turns()["job 1004 takes 1500"] == 1
	})
	for _, name := range []string{"mini", "studio"} {
		joins[name].stop(syscall.SIGKILL)
		joins[name].start()
	}
	for _, words := range []string{"job 1003 is done", "job 1004 is done"} {
		until(t, words, func() bool { return containing(texts(f.voice.given()), words) == 1 })
	}
	f.check(t)

	// They are removed, are told so, and do not come back.
	for name, j := range joins {
		if text, err := verb(s, "remove", name); err != nil {
			t.Fatalf("remove: %s, %v", text, err)
		}
		<-j.done
		if code := j.cmd.ProcessState.ExitCode(); code != exitRefused && name != "attic" {
			t.Errorf("%s ended with %d", name, code)
		}
	}
	if servers := items[handoff.ServerInfo](&c.running, "/fleet/servers"); len(servers) != simulated || !servers[0].Simulated {
		t.Errorf("the simulated machines are not back: %+v", servers)
	}
	t.Logf("%v; %d turns begun", w.figures(), len(f.turns()))
}

// verb runs a verb beside a service.
func verb(s *site, args ...string) (string, error) {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), childEnv+"=verb", "XDG_STATE_HOME="+s.state)
	text, err := cmd.CombinedOutput()
	return string(text), err
}
