package host

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/zap"
)

// TestEndsAllAgents: an agent that was started under settings that are gone is ended too, and what is kept of one that
// is called joined is not what is kept of the service.
func TestEndsAllAgents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sleeper := exec.Command("sleep", "600")
	sleeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	must(t, sleeper.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = sleeper.Wait() // it is ended by a signal
	}()
	must(t, keep(dir, "joined"+processFile, found{sleeper.Process.Pid, beganAt(sleeper.Process.Pid)}))
	if _, there, err := ReadPlace(dir); there || err != nil {
		t.Errorf("a service that was joined: %v, %v", there, err)
	}
	newAgents(Config{Dir: dir, Log: zap.NewNop()}).end()
	select {
	case <-ended:
	default:
		if beganAt(sleeper.Process.Pid) != "" {
			t.Error("it goes on")
			must(t, sleeper.Process.Kill())
		}
		<-ended
	}
}

// TestDaemonOfUsualAgentAlone: who asks for an agent with a command of its own gets no other program.
func TestDaemonOfUsualAgentAlone(t *testing.T) {
	home := t.TempDir()
	t.Setenv("CODEX_HOME", home)
	must(t, os.Mkdir(filepath.Join(home, "app-server-control"), 0o700))
	daemon, err := net.Listen("unix", filepath.Join(home, "app-server-control", "app-server-control.sock"))
	must(t, err)
	defer daemon.Close()
	a := newAgents(Config{Dir: t.TempDir(), Log: zap.NewNop()})
	for name, command := range map[string][]string{"codex": usual()[0].Command, "newer": {"/nowhere/codex", "app-server"}} {
		p, err := a.process(Setting{Name: name, Kind: "codex", Command: command})
		must(t, err)
		conn, err := p.dial(t.Context())
		if name == "codex" && err != nil {
			t.Errorf("the daemon is not used: %v", err)
		}
		if name == "newer" && (err == nil || !strings.Contains(err.Error(), "/nowhere/codex")) {
			t.Errorf("another program answers: %v", err)
		}
		if err == nil {
			must(t, conn.Close())
		}
	}
}
