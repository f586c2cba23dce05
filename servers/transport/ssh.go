package transport

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
)

// An SSH reaches the Codex of another machine by the ssh program of this one, with its user's settings and known
// hosts. At the other end it runs [connectThere]. The stream carries the WebSocket of an app-server, which outlives
// the ssh.
type SSH struct {
	Destination string `yaml:"ssh"`
}

// BySSH returns the transport of a server that is reached by ssh.
func BySSH() servers.Transport {
	return servers.Transport{
		Row: "ssh", New: func() servers.Way { return new(SSH) },
		Takes: func(address string) (string, bool) {
			if strings.HasPrefix(address, "ssh://") { // ssh accepts this form
				return address, true
			}
			return strings.CutPrefix(address, "ssh:")
		},
	}
}

// destination matches the destinations that we pass to ssh: no options, and nothing that a shell in the user's
// settings could expand.
var destination = regexp.MustCompile(`^(ssh://)?([A-Za-z0-9_][A-Za-z0-9_.+-]*@)?([A-Za-z0-9_][A-Za-z0-9_.-]*|\[?[0-9A-Fa-f:]+(%[A-Za-z0-9]+)?\]?)(:[0-9]+)?/?$`)

// Check implements [servers.Way].
func (s *SSH) Check(to servers.Report, _ servers.Files) {
	if s.Destination != "" && !destination.MatchString(s.Destination) { // an empty one was reported
		to.Bad("ssh", "%q is no destination of ssh, such as me@mini.local, a name of ~/.ssh/config, or ssh://me@mini.local:2222",
			s.Destination)
	}
}

// Describe implements [servers.Way]. Work on the machine goes on without us.
func (s *SSH) Describe(spec *servers.Spec) {
	spec.Remote = true
	spec.About.Address = "ssh:" + s.Destination
	host := strings.TrimPrefix(s.Destination, "ssh://")
	if _, after, ok := strings.Cut(host, "@"); ok {
		host = after
	}
	spec.Host, _, _ = strings.Cut(host, ":")
}

// Open implements [servers.Way].
func (s *SSH) Open(ctx context.Context, end servers.End) (servers.Wire, error) {
	conn, err := s.run(ctx, end, "codex", connectThere, nil)
	if err != nil {
		return nil, err
	}
	dial := func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	wire, err := OverSocket(ctx, end.Server, "ws://localhost/", nil, dial)
	if err != nil {
		return nil, conn.fault(ctx, err)
	}
	return wire, nil
}

// sshOptions are the options of every ssh: it never prompts, and ends after 30 s of silence. Set once.
var sshOptions = []string{
	"-T", "-x", "-a", "-e", "none",
	"-o", "BatchMode=yes", "-o", "ConnectTimeout=8", "-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3",
	"-o", "ControlMaster=no", // it may use a master of the user, but does not become one
	"-o", "ClearAllForwardings=yes", "-o", "PermitLocalCommand=no", "-o", "RemoteCommand=none", "-o", "LogLevel=ERROR",
}

// Mark is the line after which the output is that of our script; the login may print other lines before it.
const Mark = "switchboard-ssh-1"

// maxBefore bounds what a login may print before the mark, in bytes.
const maxBefore = 64 << 10

// Exit codes of our scripts at the other end.
const (
	exitOldSwitchboard = 2   // its switchboard has no join --stdio
	exitUsage          = 64  // its codex has no app-server proxy
	exitNoSwitchboard  = 66  // switchboard is needed and missing
	exitNotStarted     = 69  // the app-server does not start
	ExitNotFound       = 127 // the agent is missing; also used by join --stdio
	exitSSH            = 255 // ssh itself failed
)

// findThere sets a PATH with the usual directories of our programs. loginThere adds the PATH of a login shell, which
// ssh often does not run for a command.
const (
	findThere = `PATH=$PATH:$HOME/.local/bin:$HOME/bin:$HOME/go/bin:/usr/local/bin:/opt/homebrew/bin; export PATH; umask 077; ` +
		`has() { command -v "$1" >/dev/null 2>&1; }; `
	loginThere = `PATH=$PATH:$("${SHELL:-sh}" -lc "env" </dev/null 2>/dev/null | sed -n "s/^PATH=//p" | tail -n 1); `
)

// connectThere connects the standard streams with the Codex of that machine: through switchboard, which looks after
// it, or else with the app-server on its control socket, which it starts if need be and leaves running.
const connectThere = findThere + `has codex && has switchboard || ` + loginThere +
	`if has switchboard; then exec switchboard join --stdio; fi; ` +
	`has codex || exit 127; ` +
	`answers() { codex app-server proxy </dev/null >/dev/null 2>&1; }; ` +
	`if ! answers; then ` +
	`codex app-server proxy --help </dev/null >/dev/null 2>&1 || exit 64; ` +
	`home=${CODEX_HOME:-$HOME/.codex}; mkdir -p "$home"; ` +
	`(nohup codex app-server --listen unix:// </dev/null >"$home/switchboard-app-server.log" 2>&1 &); ` +
	`n=0; until answers; do n=$((n+1)); if [ $n -gt 25 ]; then tail -n 2 "$home/switchboard-app-server.log" >&2; exit 69; fi; sleep 0.2 2>/dev/null || sleep 1; done; fi; ` +
	`echo ` + Mark + `; exec codex app-server proxy`

// arguments returns the arguments of ssh. The destination stands after "--", so it cannot be an option. sh runs the
// script, whatever shell the user has there; our scripts have no single quotes.
func (s *SSH) arguments(script string) []string {
	return append(append([]string{}, sshOptions...), "--", s.Destination, "exec sh -c '"+script+"'")
}

// run runs a script at the other end, writes first to it, and returns when it has printed its mark. program is the
// program that must exist there, for errors.
func (s *SSH) run(ctx context.Context, end servers.End, program, script string, first []byte) (*sshConn, error) {
	if !destination.MatchString(s.Destination) { // again: not every caller has called Check
		return nil, &handoff.Error{
			Code: handoff.CodeUnreachable, Subject: end.Server, Detail: "no destination", Reason: handoff.ReasonSSHSettings,
		}
	}
	own := Child{Command: append([]string{"ssh"}, s.arguments(script)...)}
	running, err := own.start(servers.End{Server: end.Server, Passes: []string{"SSH_AUTH_SOCK", "KRB5*"}, Log: end.Log})
	if err != nil {
		fault := servers.DialFault(end.Server, err)
		if errors.Is(err, exec.ErrNotFound) {
			fault.Reason = handoff.ReasonSSHMissing
		}
		return nil, fault
	}
	c := &sshConn{
		child: running, r: bufio.NewReaderSize(running.stdout, 32<<10),
		server: end.Server, to: s.Destination, program: program,
	}
	stop := context.AfterFunc(ctx, func() { kill(running.cmd) })
	if len(first) > 0 { // less than the capacity of a pipe: the write does not block
		_, _ = running.stdin.Write(first) // if ssh has ended, await returns why
	}
	err = c.await()
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, c.fault(ctx, err)
	}
	return c, nil
}

// An sshConn is a connection over the standard streams of a program at the other end.
type sshConn struct {
	child               *child        // Set once
	r                   *bufio.Reader // Owned by Read
	server, to, program string        // Set once
}

// await reads up to and including the mark.
func (c *sshConn) await() error {
	for left := maxBefore; left > 0; {
		line, err := c.r.ReadSlice('\n')
		left -= len(line)
		switch {
		case strings.TrimSpace(string(line)) == Mark:
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
	return errors.New("the login there prints without end")
}

func (c *sshConn) Read(p []byte) (int, error)  { return c.r.Read(p) }
func (c *sshConn) Write(p []byte) (int, error) { return c.child.stdin.Write(p) }
func (c *sshConn) Close() error                { return c.child.Close() }
func (c *sshConn) LocalAddr() net.Addr         { return &net.UnixAddr{Name: "ssh", Net: "unix"} }
func (c *sshConn) RemoteAddr() net.Addr        { return &net.UnixAddr{Name: c.to, Net: "unix"} }
func (c *sshConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}
func (c *sshConn) SetReadDeadline(t time.Time) error  { return c.child.stdout.SetReadDeadline(t) }
func (c *sshConn) SetWriteDeadline(t time.Time) error { return c.child.stdin.SetWriteDeadline(t) }

// fault closes the connection and returns why it failed: as ssh says, or else as err says.
func (c *sshConn) fault(ctx context.Context, err error) *handoff.Error {
	late := ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded)
	_ = c.Close() // err is the error that matters
	code, stderr := c.child.cmd.ProcessState.ExitCode(), c.child.lastStderr()
	fault := &handoff.Error{Code: handoff.CodeUnreachable, Subject: c.server, Detail: lastLine(stderr)}
	switch {
	case late:
		fault.Reason, fault.Detail = handoff.ReasonAsleep, "it did not answer in time"
	case code <= 0 && !errors.Is(err, io.EOF):
		return servers.DialFault(c.server, err)
	default:
		fault.Reason = sshReason(code, stderr)
	}
	switch fault.Reason {
	case handoff.ReasonAgentMissing:
		fault.Detail = c.program
	case handoff.ReasonHostKeyChanged:
		fault.Detail = knownAs(c.to)
	case handoff.ReasonOutdated:
		fault.Code, fault.Detail = handoff.CodeOutdated, "its codex knows no app-server proxy; 0.150 is needed"
		if code == exitOldSwitchboard {
			fault.Detail = "the switchboard there is too old to be reached by ssh"
		}
		fault.Subject = c.server + ": " + fault.Detail
	}
	return fault
}

// knownAs returns a destination as the known hosts file of ssh has it.
func knownAs(to string) string {
	to, port := strings.TrimSuffix(to, "/"), ""
	to, isURL := strings.CutPrefix(to, "ssh://")
	_, host, ok := strings.Cut(to, "@")
	if !ok {
		host = to
	}
	if at := strings.LastIndexByte(host, ':'); isURL && at > strings.LastIndexByte(host, ']') {
		host, port = host[:at], host[at:]
	}
	if port == "" || port == ":22" {
		return strings.Trim(host, "[]")
	}
	return "'[" + strings.Trim(host, "[]") + "]" + port + "'"
}

// sshReasons are the reasons of the errors of ssh, by words of OpenSSH, which has no other language. The first match
// counts. Set once.
var sshReasons = []struct {
	words  string
	reason handoff.Reason
}{
	{"HOST IDENTIFICATION HAS CHANGED", handoff.ReasonHostKeyChanged},
	{"Host key verification failed", handoff.ReasonHostKeyUnknown},
	{"host key is known for", handoff.ReasonHostKeyUnknown},
	{"Permission denied (", handoff.ReasonSSHKeyRefused},
	{"Too many authentication failures", handoff.ReasonSSHKeyRefused},
	{"Could not resolve hostname", handoff.ReasonNameUnknown},
	{"Connection refused", handoff.ReasonSSHNotRunning},
	{"No route to host", handoff.ReasonNoRoute},
	{"Network is unreachable", handoff.ReasonNoRoute},
	{"timed out", handoff.ReasonAsleep}, // "Connection timed out" and "Operation timed out"
	{"not responding", handoff.ReasonAsleep},
	{"Bad configuration option", handoff.ReasonSSHSettings},
	{"bad configuration options", handoff.ReasonSSHSettings},
	{"Bad owner or permissions", handoff.ReasonSSHSettings},
	{"Can't open user config file", handoff.ReasonSSHSettings},
	{"Connection closed", handoff.ReasonCut},
	{"Connection reset", handoff.ReasonCut},
	{"kex_exchange_identification", handoff.ReasonCut},
}

// sshReason returns the reason why an ssh ended, by its exit code and its stderr.
func sshReason(code int, stderr string) handoff.Reason {
	switch code {
	case ExitNotFound:
		return handoff.ReasonAgentMissing
	case exitNoSwitchboard:
		return handoff.ReasonSwitchboardMissing
	case exitUsage:
		return handoff.ReasonOutdated
	case exitOldSwitchboard:
		if strings.Contains(stderr, "unknown flag") {
			return handoff.ReasonOutdated
		} // otherwise its configuration is wrong
	case exitSSH:
		for _, row := range sshReasons {
			if strings.Contains(stderr, row.words) {
				return row.reason
			}
		}
		return handoff.ReasonUnknown
	case 0:
		return handoff.ReasonCut
	}
	return handoff.ReasonAgentEnded // also exitNotStarted
}

// lastLine returns the last line of a text that is not empty.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// There is what [SSH.Look] finds at the other end; "" for what is missing.
type There struct {
	System, Processor  string // as printed by uname
	Codex, Switchboard string // as printed by --version
}

// A RemoteWay is a way to an agent of a machine that is reached by ssh.
type RemoteWay interface {
	SSH() *SSH
	// Lacks returns the program that the machine needs and has not, and the fault that says so; "": it has it.
	Lacks(there There) (program string, fault *handoff.Error)
}

// SSH implements [RemoteWay].
func (s *SSH) SSH() *SSH { return s }

// Lacks implements [RemoteWay]: the switchboard of the machine is used where there is one.
func (s *SSH) Lacks(there There) (program string, fault *handoff.Error) {
	if there.Codex != "" {
		return "", nil
	}
	return "codex", &handoff.Error{Code: handoff.CodeUnreachable, Detail: "codex", Reason: handoff.ReasonAgentMissing}
}

// lookThere prints the system, the processor, and the versions of codex and switchboard, a line each.
const lookThere = findThere + `has codex && has switchboard || ` + loginThere + `echo ` + Mark + `; uname -s; uname -m; ` +
	`if has codex; then codex --version </dev/null 2>/dev/null | head -n 1; else echo; fi; ` +
	`if has switchboard; then switchboard --version </dev/null 2>/dev/null | head -n 1; fi`

// Look logs in and returns what is there.
func (s *SSH) Look(ctx context.Context, end servers.End) (There, error) {
	conn, err := s.run(ctx, end, "", lookThere, nil)
	if err != nil {
		return There{}, err
	}
	defer context.AfterFunc(ctx, func() { kill(conn.child.cmd) })()
	text, err := io.ReadAll(io.LimitReader(conn, maxBefore))
	lines := append(strings.Split(strings.TrimSpace(string(text)), "\n"), "", "", "", "")
	if err != nil || lines[1] == "" {
		return There{}, conn.fault(ctx, cmp.Or(err, io.ErrUnexpectedEOF))
	}
	for i := range lines {
		lines[i] = handoff.Clip(strings.TrimSpace(lines[i]), maxDetail)
	}
	return There{System: lines[0], Processor: lines[1], Codex: lines[2], Switchboard: lines[3]}, conn.Close()
}

// Install copies a program there, as ~/.local/bin/switchboard. It replaces an older one only after the copy is
// complete.
func (s *SSH) Install(ctx context.Context, end servers.End, program io.Reader, size int64) error {
	conn, err := s.run(ctx, end, "", `umask 077; d=$HOME/.local/bin; mkdir -p "$d" || exit 1; echo `+Mark+`; n=$d/.switchboard.new; cat >"$n"; `+
		fmt.Sprintf(`[ $(wc -c <"$n") -eq %d ] && chmod 755 "$n" && mv -f "$n" "$d/switchboard" && echo installed`, size), nil)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { kill(conn.child.cmd) })()
	_, err = io.Copy(conn.child.stdin, program)
	if err = errors.Join(err, conn.child.stdin.Close()); err != nil {
		return conn.fault(ctx, err)
	}
	if answer, err := io.ReadAll(io.LimitReader(conn, maxBefore)); err != nil || strings.TrimSpace(string(answer)) != "installed" {
		return conn.fault(ctx, cmp.Or(err, io.ErrUnexpectedEOF))
	}
	return conn.Close()
}
