package host

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/zap"
)

// TestEndsAllAgents: an agent that was started under earlier settings is ended too, and the record of an agent that is
// called "joined" is not mixed up with the file about the service.
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
	record := processRecord{sleeper.Process.Pid, kindCodex, beganAt(sleeper.Process.Pid)}
	must(t, writeJSON(dir, "joined"+processFile, record))
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

// TestStarted: a client by ssh names an allowed agent by its command. Any other command runs only if the owner has
// written no policy file at all.
func TestStarted(t *testing.T) {
	t.Parallel()
	own, other := []string{"/opt/claude", "--acp"}, []string{"sh", "-c", "id"}
	usual := usual()[slices.IndexFunc(usual(), func(s Setting) bool { return s.Kind == kindACP })]
	codex := []Setting{{Name: "codex"}}
	for _, row := range []struct {
		policy  Policy
		command []string
		want    string // how the name begins; "": it is refused
	}{
		{Policy{AnyAgent: true}, other, "acp-"}, {Policy{AnyAgent: true}, usual.Command, usual.Name}, {Policy{AnyAgent: true}, nil, ""},
		{Policy{}, other, ""}, {Policy{}, usual.Command, usual.Name}, {Policy{Ceiling: "read-only"}, other, ""},
		{Policy{Agents: codex}, other, ""}, {Policy{Agents: codex}, usual.Command, ""},
		{Policy{Agents: []Setting{{Name: "mine", Kind: kindACP, Command: own}}}, own, "mine"},
		{Policy{Agents: []Setting{{Name: "mine", Kind: kindACP, Command: own}}}, own[:1], ""},
		{Policy{Agents: []Setting{{Name: "newer", Kind: "codex", Command: own}}}, own, ""},
	} {
		s, err := row.policy.acpAgent(row.command)
		if (err == nil) != (row.want != "") || !strings.HasPrefix(s.Name, row.want) || err == nil && !slices.Equal(s.Command, row.command) {
			t.Errorf("%+v, %q: %+v, %v", row.policy, row.command, s, err)
		}
	}
}

// TestDaemonOfUsualAgentAlone: the daemon stands in only for the usual command, not for a command that the owner named.
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
