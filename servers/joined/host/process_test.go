package host

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"switchboard/servers/joined"
	"switchboard/servers/joined/keeper"
)

// agentEnv makes the test binary be an agent server that tells its process to whoever connects.
const agentEnv = "TEST_HOST_AGENT"

func TestMain(m *testing.M) {
	keeper.Main()
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
		_, _ = fmt.Fprintln(conn, os.Getpid())
		_ = conn.Close()
	}
}

// installed are the agents of a machine with this program as its codex. Its home has never seen a codex.
func installed(t *testing.T, dir, script string) *agents {
	t.Helper()
	bin := filepath.Join(dir, "codex")
	must(t, os.WriteFile(bin, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	return newAgents(Config{
		Dir: dir, Log: zap.NewNop(),
		Policy: Policy{Agents: []Setting{{Name: "codex", Kind: "codex", Command: []string{bin}}}, Dirs: []string{dir}},
	})
}

// asked connects to the agent of a machine and returns what it tells.
func asked(t *testing.T, a *agents) string {
	t.Helper()
	conn, err := a.all()[0].dial(t.Context())
	must(t, err)
	defer conn.Close()
	text, err := io.ReadAll(conn)
	must(t, err)
	return string(text)
}

// TestAgentOutlivesUs: an agent is started when it is needed, is found again by the next process of ours, and ends when
// it is told to, or when nobody used it for a day.
func TestAgentOutlivesUs(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CODEX_HOME", filepath.Join(dir, "never", "used"))
	own, err := os.Executable()
	must(t, err)
	script := agentEnv + "=1 exec " + own + ` "$@"`
	first := installed(t, dir, script)
	t.Cleanup(first.end)
	pid := asked(t, first)
	if again := asked(t, first); again != pid {
		t.Errorf("it was started twice: %s and %s", pid, again)
	}
	next := installed(t, dir, script)
	if again := asked(t, next); again != pid {
		t.Errorf("it was not found again: %s and %s", pid, again)
	}
	next.all()[0].endUnused(time.Now().Add(unusedFor / 2))
	if again := asked(t, next); again != pid {
		t.Error("it was ended although it was used")
	}
	next.all()[0].endUnused(time.Now().Add(2 * unusedFor))
	if again := asked(t, next); again == pid {
		t.Error("it was not ended although nobody used it")
	}
	next.end()
	if _, err := connect(t.Context(), next.all()[0].socket); err == nil {
		t.Error("it was not ended")
	}
}

// TestAgentThatEnds: an agent that ends at once is started again later and later, and the reason says where to look.
func TestAgentThatEnds(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CODEX_HOME", dir)
	a := installed(t, dir, "echo it is broken; exit 3")
	for _, want := range []string{"ended at once (exit status 3)", "is started again in"} {
		if _, err := a.all()[0].dial(t.Context()); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "codex.log") {
			t.Errorf("told %v, want %q", err, want)
		}
	}
	if log, err := os.ReadFile(filepath.Join(dir, "codex.log")); err != nil || !strings.Contains(string(log), "it is broken") {
		t.Errorf("the log has %q, %v", log, err)
	}
	if _, err := a.dial(t.Context(), joined.Opening{Agent: "/etc/passwd"}); err == nil {
		t.Error("something was reached that is no agent")
	}
}
