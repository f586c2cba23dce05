package main

import (
	"context"
	"fmt"
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
	j := &joiner{t: t, home: t.TempDir(), out: &syncBuffer{}}
	bin := filepath.Join(j.home, "bin")
	must(t, os.MkdirAll(bin, 0o700))
	own, err := os.Executable()
	must(t, err)
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = --version ] && exec echo codex-cli 0.169.0\nexport %s=%s\nexec %s \"$@\"\n",
		fakeCodexEnv, strings.TrimPrefix(codex, "ws://"), own)
	must(t, os.WriteFile(filepath.Join(bin, "codex"), []byte(script), 0o700))
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

// TestProofJoined: a machine joins by the printed command, and its codex is worked with through its line, while the
// line is cut at random bytes, and the service and the joined process are killed. Whatever an agent began it began
// once, its result is told once, and nothing is lost.
func TestProofJoined(t *testing.T) { t.Parallel(); onBothStores(t, proofJoined) }

func proofJoined(t *testing.T, store string) {
	f := newFarm(t)
	s := newSite(t, f.voice.URL, store, nil)
	s.listen = fmt.Sprintf("127.0.0.1:%d", sessionstest.FreePort(t))
	c := s.start()
	early := c.call() // older than the machine
	simulated := len(items[handoff.ServerInfo](&c.running, "/fleet/servers"))
	j := newJoiner(t, f.at["bigpc"])
	invitation := c.invite(s, "mini")
	line := newCutter(t, "line", s.listen)
	j.start("http://"+strings.TrimPrefix(line.at, "ws://"), invitation[1])
	c.up("mini")
	if servers := items[handoff.ServerInfo](&c.running, "/fleet/servers"); len(servers) != 1 {
		t.Errorf("there is more than the machine that joined: %+v", servers)
	}
	early.say(work("mini", "job 1000 takes 10"))
	early.hear("job 1000 is done")
	early.hangUp()

	// The line is cut at random bytes.
	ctx, cancel := context.WithCancel(t.Context())
	cutting := make(chan struct{})
	go func() {
		defer close(cutting)
		line.run(ctx, t, rand.New(rand.NewPCG(11, uint64(len(store)))))
	}()
	w := newShift(t, c, f, 3, 1, "mini")
	w.takes = func(job int) int { return job * 37 % 1000 }
	w.run(scale(12, 200), scale(patience, 15*time.Minute))
	cancel()
	<-cutting
	w.told()
	f.check(t)
	c.up("mini") // the last cut may have been the newest thing that happened

	// The service is killed in the middle of work, and started again.
	p := c.call()
	p.say(work("mini", "job 1001 takes 2000"))
	until(t, "job 1001 to begin", func() bool { return f.turns()["job 1001 takes 2000"] == 1 })
	c.signal(syscall.SIGKILL)
	killed := &killedJob{number: 1001, prompt: "job 1001 takes 2000", calls: f.voice.calls()}
	c = s.start()
	c.up("mini")
	p = c.call()
	f.told(t, c, []*killedJob{killed})
	if killed.fate != "adopted and told" {
		t.Errorf("job 1001: %s", killed.fate)
	}

	// So is the joined process: its codex goes on, and is found again.
	p.say(work("mini", "job 1002 takes 2000"))
	until(t, "job 1002 to begin", func() bool { return f.turns()["job 1002 takes 2000"] == 1 })
	j.stop(syscall.SIGKILL)
	j.start()
	p.hear("job 1002 is done")
	f.check(t)

	// It is removed, is told so, and does not come back.
	if text, err := verb(s, "remove", "mini"); err != nil {
		t.Fatalf("remove: %s, %v", text, err)
	}
	<-j.done
	if code := j.cmd.ProcessState.ExitCode(); code != exitRefused {
		t.Errorf("it ended with %d", code)
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
