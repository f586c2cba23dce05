package codex

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"switchboard/handoff"
)

// playEnv makes the test binary play a child instead of testing.
const playEnv = "SWITCHBOARD_TEST_CHILD"

func TestMain(m *testing.M) {
	if part := os.Getenv(playEnv); part != "" {
		playChild(part)
		return
	}
	before := runtime.NumGoroutine()
	code := m.Run()
	fuzzing := flag.Lookup("test.fuzz").Value.String() != "" // has goroutines of its own
	if left := leaked(before); code == 0 && !fuzzing && left != "" {
		fmt.Fprintln(os.Stderr, "goroutines left:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// leaked waits a minute for goroutines that are about to end and returns the stacks of those that do not.
func leaked(before int) string {
	for range 3000 {
		if runtime.NumGoroutine() <= before {
			return ""
		}
		time.Sleep(20 * time.Millisecond)
	}
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// playChild is an app-server on standard streams, with the habits that part names.
func playChild(part string) {
	if part == "grandchild" {
		time.Sleep(time.Hour)
	}
	in := bufio.NewReader(os.Stdin)
	if part == "flood" {
		for range 2000 {
			fmt.Fprintln(os.Stderr, strings.Repeat("e", 200))
		}
	}
	if part == "stubborn" {
		signal.Ignore(syscall.SIGTERM)
	}
	if part == "parent" {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), playEnv+"=grandchild")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			break
		}
		var frame sent
		if json.Unmarshal(line, &frame) != nil || frame.ID == nil {
			continue
		}
		switch {
		case frame.Method == "initialize" && part == "dies":
			os.Exit(3)
		case frame.Method == "initialize":
			fmt.Printf("\n"+`{"id":%s,"result":{"userAgent":"switchboard/0.150.1 (%s)"}}`+"\r\n", frame.ID, os.Getenv("EXTRA"))
		case frame.Method == "thread/list" && part == "tells":
			told, _ := json.Marshal(strings.Join(os.Environ(), "\n"))
			fmt.Printf(`{"id":%s,"result":{"data":[{"id":%s}]}}`+"\n", frame.ID, told)
		case frame.Method == "thread/list":
			fmt.Printf(`{"id":%s,"result":{"data":[{"id":%q}]}}`+"\n", frame.ID, os.Getenv("EXTRA"))
		case frame.Method == "thread/read":
			os.Exit(0)
		}
	}
	if part == "stubborn" {
		time.Sleep(time.Hour)
	}
}

func childConfig(part string) Config {
	return Config{Name: "laptop", Command: []string{os.Args[0]}, Env: []string{playEnv + "=" + part, "EXTRA=extra"}}
}

func TestChild(t *testing.T) {
	t.Parallel()
	link, err := Dialer(childConfig("plain"))(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if list, err := link.Catalog.List(t.Context(), 1); err != nil || list[0].ID != "extra" || link.Version != "0.150.1" {
		t.Errorf("list %v %v", list, err)
	}
	if err := link.Conn.Close(); err != nil {
		t.Error(err)
	}
	c := link.Conn.(*connection).peer.wire.(*child)
	if state := c.cmd.ProcessState; state == nil || !state.Success() {
		t.Errorf("child ended with %v, not by the end of its input", state)
	}
}

// TestChildEnvironment: what a child can read of ours is what it needs and what its entry lists.
func TestChildEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"SWITCHBOARD_KEY": "secret", "OPENAI_API_KEY": "secret", "REDIS_URL": "secret", "LAPTOP_TOKEN": "secret", "PATHS": "secret",
		"LISTED": "listed", "CODEX_HOME": "/codex", "LC_TIME": "C", "XDG_CACHE_HOME": "/cache", "no_proxy": "a", "NO_PROXY": "b", "SSL_CERT_FILE": "/certs",
	} {
		t.Setenv(name, value)
	}
	cfg := childConfig("tells")
	cfg.Env = append(cfg.Env, "LISTED", "ABSENT", "SWITCHBOARD_KEY")
	link, err := Dialer(cfg)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer link.Conn.Close()
	list, err := link.Catalog.List(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(list[0].ID, "\n")
	for _, pair := range []string{
		"PATH=" + os.Getenv("PATH"), "LISTED=listed", "EXTRA=extra", "CODEX_HOME=/codex", "LC_TIME=C", "XDG_CACHE_HOME=/cache",
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

// TestChildEnds: its end is the loss of the connection.
func TestChildEnds(t *testing.T) {
	t.Parallel()
	link, err := Dialer(childConfig("plain"))(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := link.Catalog.Read(t.Context(), "x", 1); err == nil || handoff.AsError(err).Code != handoff.CodeUnreachable {
		t.Errorf("read: %v", err)
	}
	<-link.Done
	if err := link.Conn.Close(); err != nil {
		t.Error(err)
	}
}

// TestStubbornChild: it ignores the end of its input and SIGTERM.
func TestStubbornChild(t *testing.T) {
	t.Parallel()
	link, err := Dialer(childConfig("stubborn"))(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := link.Conn.Close(); err != nil {
		t.Error(err)
	}
	state := link.Conn.(*connection).peer.wire.(*child).cmd.ProcessState
	if status, ok := state.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("ended with %v", state)
	}
}

// TestChildLeavesAGrandchild: what it started ends with it, and its streams end although they are held open.
func TestChildLeavesAGrandchild(t *testing.T) {
	t.Parallel()
	link, err := Dialer(childConfig("parent"))(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := link.Conn.Close(); err != nil {
		t.Error(err)
	}
	pid := link.Conn.(*connection).peer.wire.(*child).cmd.Process.Pid
	for began := time.Now(); !errors.Is(syscall.Kill(-pid, 0), syscall.ESRCH); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > 3*time.Minute { // killed is soon, but who inherits the dead may be busy; the grandchild would live much longer
			t.Fatal("the group of the child lives on")
		}
	}
}

// TestChildFloodsStderr: it is read to the end, and logged up to a bound.
func TestChildFloodsStderr(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.DebugLevel)
	cfg := childConfig("flood")
	cfg.Log = zap.New(core)
	link, err := Dialer(cfg)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = link.Conn.Close()
	if n := logs.FilterMessage("child says").Len(); n == 0 || n > maxStderr/200+1 {
		t.Errorf("%d lines logged", n)
	}
}

func TestChildCannotStart(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"no such program": {Name: "laptop", Command: []string{"/nonexistent/codex"}},
		"no such dir":     {Name: "laptop", Command: []string{os.Args[0]}, Dir: "/nonexistent"},
		"dies at once":    childConfig("dies"),
	} {
		if _, err := Dialer(cfg)(t.Context()); err == nil || handoff.AsError(err).Code != handoff.CodeUnreachable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStreamBounds(t *testing.T) {
	s := newStream(strings.NewReader("\n \r\n{\"a\":1}\r\n"+strings.Repeat("x", 100<<10)+"\nlast"), nil)
	for _, want := range []int{7, 100 << 10} {
		if line, err := s.Read(); err != nil || len(line) != want {
			t.Errorf("read %d bytes %v, want %d", len(line), err, want)
		}
	}
	if line, err := s.Read(); err == nil {
		t.Errorf("read half a line %q", line)
	}
	s = newStream(endless{}, nil)
	if _, err := s.Read(); !errors.Is(err, errEndless) {
		t.Errorf("endless line: %v", err)
	}
}

// endless is a line without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
