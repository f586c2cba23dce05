package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/servers/joined"
	"switchboard/servers/serverstest"
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
	t     testing.TB
	home  string
	agent string // what it brings
	out   *logBuffer
	cmd   *exec.Cmd
	done  chan struct{} // of the process that runs
}

// newJoiner makes a machine whose codex works as the simulated machine at an address does.
func newJoiner(t testing.TB, codex string) *joiner {
	t.Helper()
	return joinerWith(t, "codex", "codex", fakeCodexEnv, strings.TrimPrefix(codex, "ws://"))
}

// joinerWith makes a machine with an agent whose program the test binary is with a variable set.
func joinerWith(t testing.TB, agent, program, variable, value string) *joiner {
	t.Helper()
	own, err := os.Executable()
	must(t, err)
	version := "[ \"$1\" = --version ] && exec echo codex-cli 0.169.0\n"
	return emptyJoiner(t, agent).with(program, version+fmt.Sprintf("export %s=%s\nexec %s \"$@\"\n", variable, value, own))
}

// emptyJoiner makes a machine that is to bring an agent, which is not there yet.
func emptyJoiner(t testing.TB, agent string) *joiner {
	t.Helper()
	j := &joiner{t: t, home: t.TempDir(), agent: agent, out: &logBuffer{}}
	must(t, os.Mkdir(filepath.Join(j.home, "bin"), 0o700))
	t.Cleanup(func() {
		j.stop(syscall.SIGKILL)
		_, _ = j.run("leave") // ends its agents
		if t.Failed() {
			t.Logf("the joined machine:\n%s", j.out.String())
		}
	})
	return j
}

// with puts a shell script into the path of the machine.
func (j *joiner) with(program, script string) *joiner {
	j.t.Helper()
	serverstest.WriteProgram(j.t, filepath.Join(j.home, "bin", program), []byte("#!/bin/sh\n"+script))
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
func TestProofJoined(t *testing.T) {
	t.Parallel()
	onAStore(t, func(t *testing.T, store string) {
		f := newFarm(t)
		proofJoined(t, f, store, map[string]*joiner{
			"mini":   newJoiner(t, f.at["bigpc"]),
			"studio": joinerWith(t, "claude", "claude-agent-acp", fakeClaudeEnv, f.withAgents(t)),
		}, scale(1, 17))
	})
}

// proofJoined has work done on machines in rounds, and one more that is dead.
func proofJoined(t *testing.T, f *farm, store string, joins map[string]*joiner, rounds int) {
	s := newSite(t, f.voice.URL, store, nil)
	s.listen = fmt.Sprintf("127.0.0.1:%d", sessionstest.FreePort(t))
	c := s.start()
	early := c.call() // older than the machines
	simulated := len(items[handoff.ServerInfo](&c.running, "/fleet/servers"))
	names, lines := slices.Sorted(maps.Keys(joins)), map[string]*cutter{}
	joins["attic"] = newJoiner(t, f.at["laptop"])
	for name, j := range joins {
		lines[name] = newCutter(t, name, s.listen)
		j.start("http://"+strings.TrimPrefix(lines[name].at, "ws://"), c.invite(s, name)[1], "--agents", j.agent)
	}
	c.up(append(names, "attic")...)
	joins["attic"].stop(syscall.SIGKILL)
	if servers := items[handoff.ServerInfo](&c.running, "/fleet/servers"); len(servers) != len(joins) {
		t.Errorf("there is something else than the machines that joined: %+v", servers)
	}
	early.say(work("mini", "job 1000000 takes 10"))
	early.hear("job 1000000 is done")
	early.hangUp()

	random := rand.New(rand.NewPCG(11, uint64(len(store))))
	figures, next := map[string]int{}, 1
	for range rounds {
		next = cutWhileWorking(t, c, f, names, lines, random, figures, next)
		next, c = killWhileWorking(t, c, s, f, names, joins, random, figures, next)
	}
	f.check(t)
	for _, name := range names {
		figures["lines of "+name] = strings.Count(joins[name].out.String(), "connected to ")
	}
	t.Logf("%d handoffs: %v; %d turns begun", next-1, figures, len(f.turns()))
	if ended := figures["result"]; soak() && ended*10 < (next-1)*7 {
		t.Errorf("%d of %d handoffs ran to an end: so few show little", ended, next-1)
	}

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
	left := items[handoff.ServerInfo](&c.running, "/fleet/servers")
	if len(left) != simulated || !left[0].Simulated {
		t.Errorf("the simulated machines are not back: %+v", left)
	}
}

// cutWhileWorking has jobs done on machines while the lines of these are cut at random bytes. It counts what became of
// them, and returns the number of the next job.
func cutWhileWorking(
	t *testing.T, c *child, f *farm, names []string, lines map[string]*cutter, random *rand.Rand,
	figures map[string]int, first int,
) int {
	t.Helper()
	const jobs = 8
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var cutting sync.WaitGroup
	for _, name := range names {
		own := rand.New(rand.NewPCG(random.Uint64(), 3))
		cutting.Go(func() { lines[name].run(ctx, t, own, scale(2*time.Second, 3*time.Second)) })
	}
	w := newShift(t, c, f, 4, first, names...)
	w.takes = func(job int) int { return job * 137 % scale(1000, 4000) }
	w.run(jobs, patience)
	cancel()
	cutting.Wait()
	w.told()
	for what, n := range w.figures() {
		figures[what] += n
	}
	for _, p := range w.phones {
		p.hangUp()
	}
	return first + jobs
}

// killWhileWorking kills the service in the middle of work on each machine, and then the joined processes. It returns
// the number of the next job, and the service that was started again.
func killWhileWorking(
	t *testing.T, c *child, s *site, f *farm, names []string, joins map[string]*joiner, random *rand.Rand,
	figures map[string]int, next int,
) (int, *child) {
	t.Helper()
	give := func(p *phone) (jobs []*killedJob) {
		c.up(names...) // the last cut may have been the newest thing that happened
		for _, name := range names {
			job := &killedJob{number: next, prompt: fmt.Sprintf("job %d takes 1500", next)}
			p.say(work(name, job.prompt))
			jobs = append(jobs, job)
			next++
		}
		until(t, "the jobs to begin", func() bool {
			return !slices.ContainsFunc(jobs, func(job *killedJob) bool { return f.turns()[job.prompt] != 1 })
		})
		time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
		return jobs
	}
	killed := give(c.call())
	c.signal(syscall.SIGKILL)
	for _, job := range killed {
		job.calls = f.voice.calls()
	}
	c = s.start()
	c.up(names...)
	p := c.call()
	f.told(t, c, killed)
	for _, job := range killed {
		// Those that end before the next call are told in one sentence: their fate is the outcome that was heard.
		if job.fate != "adopted and told" && job.fate != "told before" && job.fate != string(handoff.OutcomeResult) {
			t.Errorf("%s: %s", job.prompt, job.fate)
		}
	}

	// The agents of a machine go on, and are found again.
	orphaned := give(p)
	for _, name := range names {
		joins[name].stop(syscall.SIGKILL)
		joins[name].start()
	}
	for _, job := range orphaned {
		words := fmt.Sprintf("job %d is done", job.number)
		until(t, words, func() bool { return containing(texts(f.voice.given()), words) == 1 })
	}
	p.hangUp()
	figures["result"] += len(killed) + len(orphaned)
	return next, c
}

// verb runs a verb beside a service.
func verb(s *site, args ...string) (string, error) {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), childEnv+"=verb", "XDG_STATE_HOME="+s.state)
	text, err := cmd.CombinedOutput()
	return string(text), err
}
