package transport

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/serverstest"
)

// playEnv makes the test binary act as a child instead of running tests.
const playEnv = "SWITCHBOARD_TEST_CHILD"

func TestMain(m *testing.M) {
	if part := os.Getenv(playEnv); part != "" {
		playChild(part)
		return
	}
	serverstest.Main(m)
}

// playChild echoes lines on the standard streams, with the habits of a part.
func playChild(part string) {
	if socket, ok := strings.CutPrefix(part, "pipe:"); ok {
		playPipe(socket)
		return
	}
	switch part {
	case "grandchild":
		time.Sleep(time.Hour)
	case "flood":
		for range 2000 {
			fmt.Fprintln(os.Stderr, strings.Repeat("e", 200))
		}
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "parent":
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), playEnv+"=grandchild")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
		case "environment":
			told, _ := json.Marshal(os.Environ())
			fmt.Printf("\n%s\r\n", told)
		case "fail":
			os.Exit(3)
		default:
			fmt.Println(in.Text())
		}
	}
	if part == "stubborn" {
		time.Sleep(time.Hour)
	}
}

// startChild starts a child that plays a part, and waits until it answers.
func startChild(t *testing.T, part string, end servers.End, env ...string) *child {
	t.Helper()
	if end.Log == nil {
		end.Log = zap.NewNop()
	}
	way := &Child{Command: []string{os.Args[0]}, Env: append(env, playEnv+"="+part)}
	wire, err := way.Open(t.Context(), end)
	must(t, err)
	c := wire.(*child)
	t.Cleanup(func() { _ = c.Close() })
	if got := ask(t, c, "hello"); got != "hello" {
		t.Fatalf("it answers %q", got)
	}
	return c
}

func ask(t *testing.T, c *child, line string) string {
	t.Helper()
	must(t, c.Write([]byte(line)))
	answer, err := c.Read()
	must(t, err)
	return string(answer)
}

// TestChildEnds: a child ends when its input ends, and one that ignores that and SIGTERM is killed. Its own children
// end with it, and its streams end even if they are held open.
func TestChildEnds(t *testing.T) {
	t.Parallel()
	for part, signal := range map[string]syscall.Signal{"plain": -1, "stubborn": syscall.SIGKILL, "parent": -1} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			c := startChild(t, part, servers.End{Died: func(how string) { t.Errorf("it died by itself: %s", how) }})
			must(t, c.Close())
			if status := c.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != signal {
				t.Errorf("ended with %v", c.cmd.ProcessState)
			}
			for began := time.Now(); !errors.Is(syscall.Kill(-c.cmd.Process.Pid, 0),
				syscall.ESRCH); time.Sleep(10 * time.Millisecond) {
				if time.Since(began) > 3*time.Minute { // time for the grandchild to be reaped; it would live longer by itself
					t.Fatal("the group of the child lives on")
				}
			}
		})
	}
}

// TestChildDies: the wire ends with the child, and how the child ended is reported.
func TestChildDies(t *testing.T) {
	t.Parallel()
	died := make(chan string, 1)
	c := startChild(t, "plain", servers.End{Died: func(how string) { died <- how }})
	must(t, c.Write([]byte("fail")))
	if line, err := c.Read(); err == nil {
		t.Errorf("read %q", line)
	}
	if how := <-died; how != "its program ended: exit status 3" {
		t.Error(how)
	}
}

// TestChildEnvironment: a child gets only the variables that it needs, that its kind passes on, and that its entry
// lists.
func TestChildEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"SWITCHBOARD_KEY": "secret", "OPENAI_API_KEY": "secret", "REDIS_URL": "secret", "LAPTOP_TOKEN": "secret",
		"PATHS":  "secret",
		"LISTED": "listed", "CODEX_HOME": "/codex", "LC_TIME": "C", "XDG_CACHE_HOME": "/cache", "no_proxy": "a",
		"NO_PROXY":      "b",
		"SSL_CERT_FILE": "/certs",
	} {
		t.Setenv(name, value)
	}
	c := startChild(t, "plain", servers.End{Passes: []string{"CODEX_*"}}, "EXTRA=extra", "LISTED", "ABSENT",
		"SWITCHBOARD_KEY")
	var got []string
	must(t, json.Unmarshal([]byte(ask(t, c, "environment")), &got))
	for _, pair := range []string{
		"PATH=" + os.Getenv("PATH"), "LISTED=listed", "EXTRA=extra", "CODEX_HOME=/codex", "LC_TIME=C",
		"XDG_CACHE_HOME=/cache",
		"no_proxy=a", "NO_PROXY=b", "SSL_CERT_FILE=/certs",
	} {
		if !slices.Contains(got, pair) {
			t.Errorf("the child lacks %s", pair)
		}
	}
	for _, pair := range got {
		if strings.Contains(pair, "secret") || strings.HasPrefix(pair, "ABSENT") {
			t.Errorf("the child has %s", pair)
		}
	}
}

// TestChildFloodsStderr: stderr is read to its end, and logged up to a limit.
func TestChildFloodsStderr(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.DebugLevel)
	_ = startChild(t, "flood", servers.End{Log: zap.New(core)}).Close()
	if n := logs.FilterMessage("child says").Len(); n == 0 || n > maxStderr/200+1 {
		t.Errorf("%d lines logged", n)
	}
}

func TestChildCannotStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ program, dir string }{
		"no such program": {"/nonexistent/codex", ""}, "no such dir": {os.Args[0], "/nonexistent"},
	} {
		way := &Child{Command: []string{c.program}}
		_, err := way.Open(t.Context(), servers.End{Server: "laptop", Dir: c.dir, Log: zap.NewNop()})
		if e := handoff.AsError(err); err == nil || e.Code != handoff.CodeUnreachable || e.Subject != "laptop" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLinesHaveBounds(t *testing.T) {
	s := NewLines(strings.NewReader("\n \r\n{\"a\":1}\r\n"+strings.Repeat("x", 100<<10)+"\nlast"), nil)
	for _, want := range []int{7, 100 << 10} {
		if line, err := s.Read(); err != nil || len(line) != want {
			t.Errorf("read %d bytes %v, want %d", len(line), err, want)
		}
	}
	if line, err := s.Read(); err == nil {
		t.Errorf("read half a line %q", line)
	}
	s = NewLines(strings.NewReader(strings.Repeat("x", servers.MaxFrame+1)+"\nnext\n"), nil)
	if _, err := s.Read(); !isLong(err, servers.MaxFrame+1) {
		t.Errorf("a long line: %v", err)
	}
	if line, err := s.Read(); err != nil || string(line) != "next" {
		t.Errorf("after it: %q, %v", line, err)
	}
	s = NewLines(endless{}, nil)
	if _, err := s.Read(); !errors.Is(err, errEndless) {
		t.Errorf("endless line: %v", err)
	}
}

func isLong(err error, size int) bool {
	long, ok := errors.AsType[*servers.LongFrame](err)
	return ok && long.Size >= size && len(long.Head) <= servers.LongHead && errors.Is(long.Cause, servers.ErrLongFrame)
}

// endless is a reader of one endless line.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestChildWithoutLog: a transport can be opened without a log.
func TestChildWithoutLog(t *testing.T) {
	child := &Child{Command: []string{os.Args[0]}, Env: []string{playEnv + "=echo"}}
	wire, err := child.Open(t.Context(), servers.End{Server: "box"})
	if err != nil {
		t.Fatal(err)
	}
	if err := wire.Close(); err != nil { // it has ended by then
		t.Error(err)
	}
}

// TestSlowReader: a peer that does not read counts as lost, unless it is to be waited for.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	for _, waits := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			s := NewLines(near, near)
			s.waits = waits
			var reader sync.WaitGroup
			defer reader.Wait()
			reader.Go(func() {
				time.Sleep(time.Hour)
				_, _ = io.Copy(io.Discard, far)
			})
			if err := s.Write([]byte("{}")); (err == nil) != waits {
				t.Errorf("waits: %t, written: %v", waits, err)
			}
			_ = near.Close()
		})
	}
}
