package transport

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/serverstest"
	"switchboard/sessions/sessionstest"
)

// playPipe acts as codex app-server proxy: it connects the standard streams with a socket.
func playPipe(socket string) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		os.Exit(1)
	}
	go func() {
		_, _ = io.Copy(os.Stdout, conn)
		os.Exit(0)
	}()
	_, _ = io.Copy(conn, os.Stdin)
}

// echo is a WebSocket that echoes. It returns how that ended.
func echo(w http.ResponseWriter, r *http.Request) error {
	conn, err := new(websocket.Upgrader).Upgrade(w, r, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	for kind, frame := 0, []byte(nil); err == nil; {
		if kind, frame, err = conn.ReadMessage(); err == nil {
			err = conn.WriteMessage(kind, frame)
		}
	}
	return err
}

// echoes serves echoing WebSockets on a socket.
func echoes(t *testing.T) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	must(t, err)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = echo(w, r) })
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: handler}}
	server.Start()
	t.Cleanup(server.Close)
	return socket
}

// proxyScript acts as a codex whose app-server runs.
func proxyScript(t *testing.T, socket string) string {
	t.Helper()
	own, err := os.Executable()
	must(t, err)
	return fmt.Sprintf("#!/bin/sh\n[ \"$1 $2\" = \"app-server proxy\" ] || exit 9\n%s=pipe:%s exec %s\n", playEnv, socket, own)
}

func echoed(t *testing.T, wire servers.Wire, words string) {
	t.Helper()
	must(t, wire.Write([]byte(words)))
	if got, err := wire.Read(); err != nil || string(got) != words {
		t.Fatalf("%.40q, %v", got, err)
	}
}

// TestSSH: frames pass through a real ssh unchanged, whatever a login prints. When an ssh is lost, the wire ends, and
// the next ssh reaches the same app-server. Each missing program has its own reason.
func TestSSH(t *testing.T) {
	far := serverstest.StartSSHD(t, sessionstest.FreePort)
	t.Setenv("PATH", far.Path())
	way, agent := servers.Way(&SSH{Destination: "box"}), &SSHAgent{Destination: "box", Command: []string{"fake-acp", "it's $HOME"}}
	end := servers.End{Server: "mini", Log: zap.NewNop()}
	refusedBy := func(way servers.Way, reason handoff.Reason) {
		t.Helper()
		wire, err := way.Open(t.Context(), end)
		if err == nil {
			_ = wire.Close()
		}
		if err == nil || handoff.AsError(err).Reason != reason {
			t.Errorf("%v, want %s", err, reason)
		}
	}
	refused := func(reason handoff.Reason) { t.Helper(); refusedBy(way, reason) }
	refused(handoff.ReasonAgentMissing)
	refusedBy(agent, handoff.ReasonSwitchboardMissing)
	far.Install("fake-acp", "") // and switchboard only in the PATH of a login shell
	profile, opt := filepath.Join(far.Home, ".profile"), filepath.Join(far.Home, "opt")
	must(t, errors.Join(os.Mkdir(opt, 0o700), os.WriteFile(profile, []byte("export PATH=$HOME/opt:$PATH\n"), 0o600)))
	serverstest.WriteProgram(t, filepath.Join(opt, "switchboard"), []byte("#!/bin/sh\nexit 127\n"))
	refusedBy(agent, handoff.ReasonAgentMissing)
	far.Install("codex", "#!/bin/sh\necho no such model >&2\nexit 1\n")
	refused(handoff.ReasonAgentMissing) // said by switchboard, whose owner's word holds wherever codex is found
	must(t, os.Remove(profile))
	refused(handoff.ReasonOutdated) // without the proxy command
	far.Install("codex", proxyScript(t, echoes(t)))
	must(t, os.WriteFile(filepath.Join(far.Home, ".bashrc"), []byte("echo welcome home\n"), 0o600))

	wire, err := way.Open(t.Context(), end)
	must(t, err)
	echoed(t, wire, "hello")
	echoed(t, wire, strings.Repeat("x", 1<<20))
	ssh := wire.(*socket).conn.NetConn().(*handoff.Handshake).Conn.(*sshConn)
	must(t, syscall.Kill(ssh.child.cmd.Process.Pid, syscall.SIGKILL))
	if _, err := wire.Read(); err == nil {
		t.Error("a lost ssh goes on")
	}
	must(t, wire.Close())
	wire, err = way.Open(t.Context(), end)
	must(t, err)
	echoed(t, wire, "again")
	must(t, wire.Close())

	far.Install("switchboard", "#!/bin/sh\necho 'unknown flag --stdio' >&2\nexit 2\n")
	refused(handoff.ReasonOutdated)
	refusedBy(agent, handoff.ReasonOutdated)
	far.Install("switchboard", "#!/bin/sh\necho there is no such agent >&2\nexit 127\n")
	refusedBy(agent, handoff.ReasonAgentMissing)
	far.Install("switchboard", "#!/bin/sh\n[ \"$*\" = \"join --stdio --chosen\" ] || exit 9\necho "+Mark+"\nexec cat\n")
	for _, end.Apart = range []bool{true, false} { // the arguments arrive unchanged, without a shell expanding them
		wire, err = agent.Open(t.Context(), end)
		must(t, err)
		var told Chosen
		line, err := wire.Read()
		if must(t, errors.Join(err, json.Unmarshal(line, &told))); told.Apart != end.Apart || !slices.Equal(told.Command, agent.Command) {
			t.Errorf("asked for %s", line)
		}
		echoed(t, wire, strings.Repeat("x", 1<<20))
		must(t, wire.Close())
	}
	far.Install("switchboard", "#!/bin/sh\necho "+Mark+"\n"+strings.TrimPrefix(strings.ReplaceAll(proxyScript(t, echoes(t)), "app-server proxy", "join --stdio"), "#!/bin/sh\n"))
	wire, err = way.Open(t.Context(), end)
	must(t, err)
	echoed(t, wire, "by switchboard")
	must(t, wire.Close())

	far.Forget("authorized_keys")
	refused(handoff.ReasonSSHKeyRefused)
	far.UserKey()
	far.Forget("known_hosts")
	refused(handoff.ReasonHostKeyUnknown)
	far.OtherHostKey()
	refused(handoff.ReasonHostKeyChanged)
	far.Stop()
	refused(handoff.ReasonSSHNotRunning)
	t.Setenv("PATH", t.TempDir())
	refused(handoff.ReasonSSHMissing)
}

// TestSSHReasons: each error message of ssh has one reason.
func TestSSHReasons(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]handoff.Reason{
		"ssh: Could not resolve hostname mini.local: Name or service not known":                                              handoff.ReasonNameUnknown,
		"ssh: connect to host mini.local port 22: Connection timed out":                                                      handoff.ReasonAsleep,
		"ssh: connect to host mini.local port 22: Operation timed out":                                                       handoff.ReasonAsleep,
		"Timeout, server mini.local not responding.":                                                                         handoff.ReasonAsleep,
		"ssh: connect to host mini.local port 22: No route to host":                                                          handoff.ReasonNoRoute,
		"ssh: connect to host mini.local port 22: Connection refused":                                                        handoff.ReasonSSHNotRunning,
		"me@mini.local: Permission denied (publickey,password).":                                                             handoff.ReasonSSHKeyRefused,
		"Received disconnect from 10.0.0.5 port 22:2: Too many authentication failures":                                      handoff.ReasonSSHKeyRefused,
		"No ED25519 host key is known for mini.local and you have requested strict checking.\nHost key verification failed.": handoff.ReasonHostKeyUnknown,
		"@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nHost key verification failed.":                         handoff.ReasonHostKeyChanged,
		"/home/me/.ssh/config: line 3: Bad configuration option: hots":                                                       handoff.ReasonSSHSettings,
		"Bad owner or permissions on /home/me/.ssh/config":                                                                   handoff.ReasonSSHSettings,
		"kex_exchange_identification: Connection closed by remote host":                                                      handoff.ReasonCut,
		"something new": handoff.ReasonUnknown,
	} {
		if got := sshReason(exitSSH, said); got != want {
			t.Errorf("%q: %s, want %s", said, got, want)
		}
	}
	for code, want := range map[int]handoff.Reason{
		exitNoSwitchboard: handoff.ReasonSwitchboardMissing,
		ExitNotFound:      handoff.ReasonAgentMissing, exitUsage: handoff.ReasonOutdated, exitNotStarted: handoff.ReasonAgentEnded,
		exitOldSwitchboard: handoff.ReasonOutdated, 1: handoff.ReasonAgentEnded, 0: handoff.ReasonCut,
	} {
		if got := sshReason(code, "switchboard: unknown flag --stdio; Connection refused"); got != want {
			t.Errorf("exit code %d: %s, want %s", code, got, want)
		}
	}
}

// TestKnownAs: the name with which a host key is removed is that of the known hosts, quoted for a shell.
func TestKnownAs(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		"mini": "mini", "me@mini.local": "mini.local", "ssh://me@mini.local": "mini.local", "ssh://mini/": "mini",
		"ssh://mini:22": "mini", "ssh://me@mini.local:2222": "'[mini.local]:2222'", "ssh://me@[fe80::1]:2222": "'[fe80::1]:2222'",
		"ssh://[::1]": "::1", "me@fe80::1": "fe80::1",
	} {
		if got := knownAs(to); got != want {
			t.Errorf("%s: %s, want %s", to, got, want)
		}
	}
}

// complaints are what a check reports.
type complaints struct {
	servers.Report
	all []string
}

func (c *complaints) Bad(_, format string, args ...any) {
	c.all = append(c.all, fmt.Sprintf(format, args...))
}

// TestSSHProgram: only plain names of programs become part of a script.
func TestSSHProgram(t *testing.T) {
	t.Parallel()
	none := connectAgent("")
	for program, want := range map[string]bool{
		"claude-agent-acp": true, "/opt/a.b/agent_1": true, "-x": false, "a b": false, "$(x)": false, "a;b": false, "a'b": false, "a\nb": false,
	} {
		if is := connectAgent(program) != none; is != want {
			t.Errorf("%q is in the script: %v", program, is)
		}
	}
}

// TestSSHDestinations: a destination that ssh, or a shell in its settings, could take for something else is refused.
// The destination stands after the end of the options.
func TestSSHDestinations(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"mini", "me@mini.local", "ssh://me@mini.local:2222", "me@10.0.0.5", "me@fe80::1%eth0", "ssh://[::1]:22"} {
		var told complaints
		if (&SSH{Destination: good}).Check(&told, nil); len(told.all) > 0 {
			t.Errorf("%q is refused: %q", good, told.all)
		}
		args := (&SSH{Destination: good}).arguments(connectThere)
		if i := slices.Index(args, good); args[i-1] != "--" || i != len(args)-2 {
			t.Errorf("%q", args)
		}
	}
	for _, bad := range []string{"-oProxyCommand=x", "me@-oProxyCommand=x", "ssh://-x", "a b", "a;b", "$(x)", "a`b`", "me@a'b", "a\nb", "a|b", "../x", "ssh://me@a/b"} {
		var told complaints
		if (&SSH{Destination: bad}).Check(&told, nil); len(told.all) != 1 {
			t.Errorf("%q is taken", bad)
		}
		if _, err := (&SSH{Destination: bad}).Open(t.Context(), servers.End{Server: "mini", Log: zap.NewNop()}); err == nil ||
			handoff.AsError(err).Reason != handoff.ReasonSSHSettings {
			t.Errorf("%q is run: %v", bad, err)
		}
	}
	if strings.Contains(connectThere+connectAgent("claude-agent-acp"), "'") {
		t.Error("the script ends the word that it stands in")
	}
}
