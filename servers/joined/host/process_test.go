package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"switchboard/servers/joined"
	"switchboard/servers/joined/mux"
	"switchboard/servers/serverstest"
)

// agentEnv is the variable that makes the test binary an app-server, see playCodex.
const agentEnv = "TEST_HOST_AGENT"

func TestMain(m *testing.M) {
	mux.Main()
	if os.Getenv(acpEnv) != "" {
		acpAgent()
		return
	}
	if os.Getenv(agentEnv) == "" {
		m.Run()
		return
	}
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
			if ws, err := upgrade(conn); err == nil {
				playCodex(ws)
			}
		}()
	}
}

// playCodex is an app-server whose answers have the number of its process and of its requests so far. It has a session,
// in which a turn runs as long as there is a file "works" in its directory.
func playCodex(conn *socket) {
	defer conn.Close()
	asked, greeted := 0, false
	for {
		data, err := conn.Read()
		var f struct {
			ID     json.RawMessage
			Method string
		}
		if err != nil || json.Unmarshal(data, &f) != nil {
			return
		}
		answer := fmt.Sprintf(`{"id":%s,"result":{"pid":%d,"asked":%d}}`, f.ID, os.Getpid(), asked)
		switch {
		case f.Method == "initialize":
			answer, greeted = fmt.Sprintf(`{"id":%s,"result":{"userAgent":"codex/0.169.0"}}`, f.ID), true
		case f.ID == nil:
			continue
		case !greeted:
			answer = fmt.Sprintf(`{"id":%s,"error":{"message":"Not initialized"}}`, f.ID)
		case f.Method == "thread/loaded/list":
			answer = fmt.Sprintf(`{"id":%s,"result":{"data":["t"],"nextCursor":null}}`, f.ID)
		case f.Method == "thread/read":
			status := "idle"
			if _, err := os.Stat("works"); err == nil {
				status = "active"
			}
			answer = fmt.Sprintf(`{"id":%s,"result":{"thread":{"id":"t","status":{"type":%q}}}}`, f.ID, status)
		}
		if asked++; conn.Write([]byte(answer)) != nil {
			return
		}
	}
}

// installed returns the agents of a machine with this program as its codex, and with an empty home.
func installed(t *testing.T, dir, script string) *agents {
	t.Helper()
	bin := filepath.Join(dir, "codex")
	serverstest.WriteProgram(t, bin, []byte("#!/bin/sh\n"+script+"\n"))
	return newAgents(Config{
		Dir: dir, Log: zap.NewNop(),
		Policy: Policy{Agents: []Setting{{Name: "codex", Kind: "codex", Command: []string{bin}}}, Dirs: []string{dir}},
	})
}

// playing returns the agents of a machine whose codex is playCodex, and an app-server of them that has not run yet.
func playing(t *testing.T) (*agents, *process) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("CODEX_HOME", filepath.Join(dir, "never", "used"))
	a := again(t, dir)
	return a, a.all()[0]
}

// again returns the agents of the machine as another process of ours has them.
func again(t *testing.T, dir string) *agents {
	t.Helper()
	own, err := os.Executable()
	must(t, err)
	a := installed(t, dir, agentEnv+"=1 exec "+own+` "$@"`)
	t.Cleanup(func() { a.end() })
	return a
}

// greet connects to codex as the service does, and initializes it.
func (a *agents) greet(t *testing.T) *socket {
	t.Helper()
	serve, err := a.reach(t.Context(), joined.Opening{Agent: "codex"})
	must(t, err)
	near, far := net.Pipe()
	go serve(far) // ends with near
	ws, err := open(t.Context(), near)
	must(t, err)
	t.Cleanup(func() { _ = ws.Close() })
	if got := told(t, ws, "initialize"); !strings.HasSuffix(got, `"result":{"userAgent":"codex/0.169.0"}}`) {
		t.Errorf("greeted by %s", got)
	}
	must(t, ws.Write([]byte(`{"method":"initialized"}`)))
	return ws
}

// asked connects to the agent of a machine and returns its answer.
func asked(t *testing.T, a *agents) string {
	t.Helper()
	conn, err := a.all()[0].dial(t.Context())
	must(t, err)
	defer conn.Close()
	ws, err := open(t.Context(), conn)
	must(t, err)
	told(t, ws, "initialize")
	return told(t, ws, "thread/list")
}

// TestAgentOutlivesUs: an agent is started when it is needed, is found again by the next process of ours, and is ended
// on request, or when nobody used it for a day.
func TestAgentOutlivesUs(t *testing.T) {
	first, p := playing(t)
	pid := asked(t, first)
	if again := asked(t, first); again != pid {
		t.Errorf("it was started twice: %s and %s", pid, again)
	}
	next := again(t, p.dir)
	if again := asked(t, next); again != pid {
		t.Errorf("it was not found again: %s and %s", pid, again)
	}
	next.all()[0].endUnused(t.Context(), time.Now().Add(unusedFor/2))
	if again := asked(t, next); again != pid {
		t.Error("it was ended although it was used")
	}
	next.all()[0].endUnused(t.Context(), time.Now().Add(2*unusedFor))
	if again := asked(t, next); again == pid {
		t.Error("it was not ended although nobody used it")
	}
	next.end()
	if _, err := connect(t.Context(), next.all()[0].socket); err == nil {
		t.Error("it was not ended")
	}
}

// TestHungAgent: an agent that does not listen long after its start is ended, and started anew. A young one is waited
// for.
func TestHungAgent(t *testing.T) {
	dir, own := t.TempDir(), os.Args[0]
	t.Setenv("CODEX_HOME", dir)
	a := installed(t, dir, `[ -e "$0.hung" ] || { : > "$0.hung"; exec sleep 600; }
exec env `+agentEnv+"=1 "+own+` "$@"`)
	t.Cleanup(func() { a.end() })
	p := a.all()[0]
	exited, err := p.launch()
	must(t, err)
	hung := readRecord(dir, "codex")
	for _, err := os.Stat(filepath.Join(dir, "codex.hung")); err != nil; {
		time.Sleep(time.Millisecond)
		_, err = os.Stat(filepath.Join(dir, "codex.hung"))
	}
	over, stop := context.WithCancel(t.Context())
	stop()
	if _, err := p.start(over); err == nil || !hung.lives() {
		t.Errorf("a young one is not waited for: %v", err)
	}
	long := time.Now().Add(-2 * listensWithin)
	must(t, os.Chtimes(filepath.Join(dir, "codex"+processFile), long, long))
	_, _ = p.start(over) // waits no longer
	<-exited
	if asked(t, a) == "" || readRecord(dir, "codex") == hung {
		t.Error("it is not started anew")
	}
}

// TestAgentEndsInAnotherTimeZone: an agent is ended also after the machine has moved to another time zone or language.
// One that cannot be ended does not rest, and is named.
func TestAgentEndsInAnotherTimeZone(t *testing.T) {
	t.Setenv("TZ", "America/New_York")
	a, p := playing(t)
	told(t, a.greet(t), "thread/list")
	began := readRecord(p.dir, "codex")
	t.Cleanup(func() { _ = syscall.Kill(began.PID, syscall.SIGKILL) }) // it has ended, unless the test fails
	t.Setenv("TZ", "Asia/Tokyo")
	p.endUnused(t.Context(), time.Now().Add(2*unusedFor))
	if p.listens() || p.resting() == nil {
		t.Errorf("it listens: %t, and rests: %t", p.listens(), p.resting() != nil)
	}
	told(t, a.greet(t), "thread/list")
	is := readRecord(p.dir, "codex")
	t.Cleanup(func() { _ = syscall.Kill(is.PID, syscall.SIGKILL) })
	must(t, writeJSON(p.dir, "codex"+processFile, processRecord{PID: is.PID, Kind: kindCodex, Began: "lost"}))
	p.endUnused(t.Context(), time.Now().Add(4*unusedFor))
	if p.resting() != nil {
		t.Error("one that runs is said to rest")
	}
	if got := a.end(); len(got) != 1 {
		t.Error("one that runs is said to have ended")
	}
}

// TestCodexRests: an app-server that nobody used for a day is ended, though the service is connected and polls lists.
// A new connection gets the same answer to initialize, and its first request starts the app-server.
func TestCodexRests(t *testing.T) {
	a, p := playing(t)
	ws := a.greet(t)
	first := told(t, ws, "thread/start")
	used := time.Now()
	told(t, ws, "thread/list")
	p.endUnused(t.Context(), used.Add(unusedFor-time.Minute))
	if again := told(t, ws, "thread/list"); again == "" || again == first {
		t.Errorf("it was ended although it was used: %q", again)
	}
	p.endUnused(t.Context(), time.Now().Add(unusedFor+time.Minute))
	if got := told(t, ws, "thread/start"); got != "" {
		t.Errorf("one that was ended says %s", got)
	}
	ws = a.greet(t)
	if conn, err := connect(t.Context(), p.socket); err == nil {
		_ = conn.Close()
		t.Error("it runs although nobody needs it")
	}
	next := told(t, ws, "thread/start")
	if !strings.Contains(next, `"pid"`) || strings.Contains(next, strings.Split(first, ",")[1]) {
		t.Errorf("it is not started again: %s after %s", next, first)
	}
	p.mu.Lock()
	p.ending = true // what comes meanwhile must not reach one that may not live to answer
	p.mu.Unlock()
	if got := told(t, ws, "thread/start"); got != "" {
		t.Errorf("one that is being ended says %s", got)
	}
	p.mu.Lock()
	p.ending = false
	p.mu.Unlock()
}

// TestGivenBackBesideAFork: a lock that is released while a child process begins can be acquired at once.
func TestGivenBackBesideAFork(t *testing.T) {
	p := &process{dir: t.TempDir(), setting: Setting{Name: "codex"}}
	f, err := p.lock(useFile, syscall.LOCK_SH|syscall.LOCK_NB)
	must(t, err)
	childs, err := syscall.Dup(int(f.Fd()))
	must(t, err)
	defer func() { _ = syscall.Close(childs) }()
	must(t, release(f))
	f, err = p.lock(useFile, syscall.LOCK_EX|syscall.LOCK_NB)
	must(t, err)
	must(t, release(f))
}

// TestCodexWorksOn: an app-server in which a turn runs is not ended, however long it is silent, with or without a
// connection. After the end of the turn it is.
func TestCodexWorksOn(t *testing.T) {
	a, p := playing(t)
	first := asked(t, a)
	must(t, os.WriteFile(filepath.Join(p.dir, "works"), nil, 0o600))
	ws := a.greet(t)
	told(t, ws, "thread/list")
	p.endUnused(t.Context(), time.Now().Add(2*unusedFor))
	if again := told(t, ws, "thread/list"); !strings.Contains(again, `"asked":2`) {
		t.Errorf("it does not go on: %q", again)
	}
	must(t, ws.Close())
	p.endUnused(t.Context(), time.Now().Add(4*unusedFor))
	if again := asked(t, a); again != first {
		t.Errorf("it was ended in the middle of its work: %s after %s", again, first)
	}
	must(t, os.Remove(filepath.Join(p.dir, "works")))
	p.endUnused(t.Context(), time.Now().Add(6*unusedFor))
	if again := asked(t, a); again == first {
		t.Error("it was not ended although nobody used it")
	}
}

// told returns a connection's answer to a method; "": the connection has ended.
func told(t *testing.T, ws *socket, method string) string {
	t.Helper()
	_ = ws.Write(fmt.Appendf(nil, `{"id":1,"method":%q,"params":{}}`, method)) // it may be over
	data, err := ws.Read()
	if err != nil {
		return ""
	}
	return string(data)
}

// TestAgentThatEnds: an agent that ends at once is started again, after longer and longer pauses, and the error names
// its log.
func TestAgentThatEnds(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CODEX_HOME", dir)
	a := installed(t, dir, "echo it is broken; exit 3")
	for _, want := range []string{"ended at once (exit status 3)", "ended at once (exit status 3)", "is started again in"} {
		if _, err := a.all()[0].dial(t.Context()); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "codex.log") {
			t.Errorf("told %v, want %q", err, want)
		}
	}
	if log, err := os.ReadFile(filepath.Join(dir, "codex.log")); err != nil || !strings.Contains(string(log), "it is broken") {
		t.Errorf("the log has %q, %v", log, err)
	}
	if _, err := a.reach(t.Context(), joined.Opening{Agent: "/etc/passwd"}); err == nil {
		t.Error("something was reached that is no agent")
	}
}

// TestSlowAgent: an agent that needs longer than whoever wants it waits is not started a second time by the next one.
func TestSlowAgent(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CODEX_HOME", dir)
	own, err := os.Executable()
	must(t, err)
	a := installed(t, dir, `echo started; cd `+dir+`; while [ ! -e ready ]; do sleep 0.02; done; `+agentEnv+`=1 exec `+own+` "$@"`)
	t.Cleanup(func() { a.end() })
	for range 2 {
		brief, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if _, err := a.all()[0].dial(brief); err == nil {
			t.Error("it listens already")
		}
		cancel()
	}
	must(t, os.WriteFile(filepath.Join(dir, "ready"), nil, 0o600))
	asked(t, a)
	if log, err := os.ReadFile(filepath.Join(dir, "codex.log")); err != nil || strings.Count(string(log), "started") != 1 {
		t.Errorf("the log has %q, %v", log, err)
	}
}

// TestUnrecordedAgent: an agent does not go on if its process could not be noted, since nobody could end it.
func TestUnrecordedAgent(t *testing.T) {
	_, p := playing(t)
	must(t, os.Mkdir(filepath.Join(p.dir, "codex"+processFile), 0o700))
	if _, err := p.dial(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot be started") {
		t.Errorf("told %v", err)
	}
	for {
		all, err := exec.Command("ps", "-A", "-o", "args").Output()
		must(t, err)
		if !strings.Contains(string(all), p.socket) {
			return
		}
		if p.listens() {
			must(t, exec.Command("pkill", "-f", p.socket).Run())
			t.Fatal("it goes on")
		}
	}
}

// TestMissingForAMoment: what is known of an agent is kept while its program is missing.
func TestMissingForAMoment(t *testing.T) {
	a, p := playing(t)
	asked(t, a)
	bin := p.setting.Command[0]
	must(t, os.Rename(bin, bin+".new"))
	if all := a.all(); len(all) != 1 || all[0] != p {
		t.Error("it is taken for another one while its program is missing")
	}
	must(t, os.Rename(bin+".new", bin))
	if all := a.all(); len(all) != 1 || all[0] != p {
		t.Error("it is taken for another one")
	}
}

// TestPipe: a client by ssh reaches an agent once it is told so. Pipe returns when the client has gone, and the agent
// goes on.
func TestPipe(t *testing.T) {
	a, p := playing(t)
	ours, theirs := net.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Pipe(t.Context(), a.cfg, Wanted{Agent: "codex"}, theirs, theirs, func() error {
			_, err := theirs.Write([]byte("!"))
			return err
		})
	}()
	mark := make([]byte, 1)
	if _, err := ours.Read(mark); err != nil || mark[0] != '!' {
		t.Fatalf("told %q", mark)
	}
	ws, err := open(t.Context(), ours)
	must(t, err)
	told(t, ws, "initialize")
	if got := told(t, ws, "thread/list"); !strings.Contains(got, `"pid"`) {
		t.Errorf("answered %q", got)
	}
	must(t, ws.Close())
	must(t, <-ended)
	if !p.listens() {
		t.Error("the agent has ended with its client")
	}
}

// TestTooLate: whoever waited for the agent until their time was over does not start a second one.
func TestTooLate(t *testing.T) {
	a, p := playing(t)
	first := asked(t, a)
	pid := readRecord(p.dir, "codex").PID
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) }) // it has ended, unless the test fails
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, dial := range []func(context.Context) (net.Conn, error){p.dial, p.start} {
		if _, err := dial(over); !errors.Is(err, context.Canceled) {
			t.Errorf("told %v", err)
		}
	}
	if again := asked(t, a); again != first {
		t.Errorf("it was started twice: %s and %s", first, again)
	}
}
