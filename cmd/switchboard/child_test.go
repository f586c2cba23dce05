package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchboard/servers/joined/mux"
	"switchboard/servers/responses/sandbox"
)

// childEnv makes the test binary be Switchboard, with the arguments that follow the first. Its value marks
// the process and everything that it starts.
const childEnv = "TEST_SWITCHBOARD_PROGRAM"

func TestMain(m *testing.M) {
	sandbox.Main()
	mux.Main()
	redisLease = 500 * time.Millisecond // who was killed is not waited for any longer
	drainLeast = 2 * time.Second        // no balancer of a test looks more rarely, nor is a busy machine slower
	if to := os.Getenv(relayEnv); to != "" {
		relay(to)
		return
	}
	if to := os.Getenv(fakeCodexEnv); to != "" {
		fakeCodex(to)
		return
	}
	if to := os.Getenv(fakeClaudeEnv); to != "" {
		fakeClaude(to)
		return
	}
	if os.Getenv(childEnv) != "" {
		main()
		return
	}
	defer chromiums.Close()
	m.Run()
}

// soak reports whether the long form runs. It scales counts and times; nothing is left out without it.
func soak() bool { return os.Getenv("SWITCHBOARD_SOAK") != "" }

// scale returns how much of something a proof takes.
func scale[T any](short, long T) T {
	if soak() {
		return long
	}
	return short
}

// A site is where a Switchboard of its own process runs: what it is told, and what it finds again when it
// starts once more.
type site struct {
	t      testing.TB
	config string   // path of the configuration
	state  string   // XDG_STATE_HOME
	redis  string   // URL; "" is the file in the state directory
	listen string   // where it listens; "": on any port
	env    []string // besides ours
}

// newSite writes the configuration: a voice model, and agent servers by name and address.
func newSite(t testing.TB, voice, redis string, servers map[string]string) *site {
	t.Helper()
	var text strings.Builder
	text.WriteString(fmt.Sprintf("model: {url: %q, name: scripted}\nlimits: {calls: 0, minutes_per_day: 0, handoffs_per_minute: 0}\n", voice))
	if len(servers) > 0 {
		text.WriteString("servers:\n")
	}
	for name, at := range servers {
		if strings.HasPrefix(at, "ws://") {
			text.WriteString(fmt.Sprintf("  - {name: %s, kind: codex, url: %q}\n", name, at))
		} else {
			text.WriteString(fmt.Sprintf("  - {name: %s, kind: codex, command: [%s], env: [%s]}\n", name, at, childEnv))
		}
	}
	return &site{t: t, config: config(t, text.String()), state: t.TempDir(), redis: redis}
}

// A child is Switchboard as a process of its own.
type child struct {
	running
	cmd  *exec.Cmd
	mark string
	out  *logBuffer
	done chan struct{} // closed when it has ended
}

// start starts the process and returns when the page is there. The test's end kills it. On a busy machine a Redis may
// not answer within the time that a start has for it; then it is started again, as whoever keeps it running does.
func (s *site) start() *child {
	s.t.Helper()
	c := s.launch()
	began := false
	until(s.t, "Switchboard to start", func() bool {
		if s.redis != "" && c.ended() && strings.Contains(c.logs.String(), "is not answering. (i/o timeout)") {
			c = s.launch()
		}
		lines := strings.Split(strings.TrimSpace(c.out.String()), "\n")
		address, _, _ := strings.Cut(lines[len(lines)-1], " ")
		c.base = strings.TrimSuffix(address, "/")
		began = len(lines) >= 2
		return began || c.ended()
	})
	if !began {
		s.t.Fatalf("Switchboard did not start: %s", c.logs.tail(2000))
	}
	return c
}

// farmed starts a Switchboard on a store, among what is around it, and waits for bigpc.
func farmed(t testing.TB, store string) (*farm, *site, *child) {
	t.Helper()
	f := newFarm(t)
	s := newSite(t, f.voice.URL, store, f.at)
	c := s.start()
	c.up("bigpc")
	return f, s, c
}

// after ends a process by a signal, and starts the next one.
func (s *site) after(c *child, end syscall.Signal) *child {
	s.t.Helper()
	c.signal(end)
	c = s.start()
	c.up("bigpc")
	return c
}

func (s *site) launch() *child {
	s.t.Helper()
	c := &child{
		running: running{t: s.t, logs: &logBuffer{}}, out: &logBuffer{}, done: make(chan struct{}),
		mark: fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano()),
	}
	args := []string{"--listen", cmp.Or(s.listen, "127.0.0.1:0"), "--config", s.config}
	if s.redis != "" {
		args = append(args, "--redis", s.redis)
	}
	c.cmd = exec.Command(os.Args[0], args...)
	c.cmd.Env = append(os.Environ(), childEnv+"="+c.mark, "XDG_STATE_HOME="+s.state, ownerKey+"="+testKey)
	c.cmd.Env = append(c.cmd.Env, s.env...)
	c.cmd.Stdout, c.cmd.Stderr = c.out, c.logs
	must(s.t, c.cmd.Start())
	go func() { // ends with the process
		_ = c.cmd.Wait()
		close(c.done)
	}()
	c.stop = func() { c.signal(syscall.SIGKILL) }
	s.t.Cleanup(func() {
		c.stop()
		if s.t.Failed() && c.logs.String() != "" {
			s.t.Logf("log of process %d:\n%s", c.cmd.Process.Pid, c.logs.tail(5000))
		}
	})
	return c
}

func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// signal sends a signal to the process and waits for its end. It returns the exit code, -1 after a kill.
func (c *child) signal(s syscall.Signal) int {
	c.t.Helper()
	if !c.ended() {
		_ = c.cmd.Process.Signal(s) // it may have ended this moment
	}
	select {
	case <-c.done:
	case <-time.After(patience):
		c.t.Errorf("Switchboard did not end %s after %s", patience, s)
		_ = c.cmd.Process.Kill()
		<-c.done
	}
	return c.cmd.ProcessState.ExitCode()
}

// left lists the processes that the child started and that still run.
func (c *child) left() []string {
	found, _ := filepath.Glob("/proc/[0-9]*/environ")
	var left []string
	for _, name := range found {
		env, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(env, []byte(childEnv+"="+c.mark)) {
			continue // not ours, or gone
		}
		if line, err := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline")); err == nil && len(line) > 0 {
			left = append(left, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return left
}
