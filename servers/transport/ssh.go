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

// An SSH reaches the Codex of another machine by the ssh program of this one, with the settings and known hosts of its
// user. At the other end runs [connectThere]; what comes through is the WebSocket of an app-server, which outlives the
// ssh.
type SSH struct {
	Destination string `yaml:"ssh" doc:"destination of ssh, such as me@mini.local or a name of ~/.ssh/config; its key must work without a password; or"`
}

// BySSH is the transport of a server that is reached by ssh.
func BySSH() servers.Transport {
	return servers.Transport{
		Row: "ssh", New: func() servers.Way { return new(SSH) },
		Takes: func(address string) (string, bool) {
			if strings.HasPrefix(address, "ssh://") { // which ssh takes as it is
				return address, true
			}
			return strings.CutPrefix(address, "ssh:")
		},
	}
}

// destination matches what ssh is given: no option, nothing that a shell in the user's settings could take for more
// than a name.
var destination = regexp.MustCompile(`^(ssh://)?([A-Za-z0-9_][A-Za-z0-9_.+-]*@)?([A-Za-z0-9_][A-Za-z0-9_.-]*|\[?[0-9A-Fa-f:]+(%[A-Za-z0-9]+)?\]?)(:[0-9]+)?/?$`)

// Check implements [servers.Way].
func (s *SSH) Check(to servers.Report, _ servers.Files) {
	if s.Destination != "" && !destination.MatchString(s.Destination) { // else that was reported
		to.Bad("ssh", "%q is no destination of ssh, such as me@mini.local, a name of ~/.ssh/config, or ssh://me@mini.local:2222",
			s.Destination)
	}
}

// Describe implements [servers.Way]. What its machine does goes on without us.
func (s *SSH) Describe(spec *servers.Spec) {
	spec.Remote = true
	spec.About.Address = "ssh:" + s.Destination
	host := strings.TrimPrefix(s.Destination, "ssh://")
	_, after, named := strings.Cut(host, "@")
	if named {
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

// sshOptions are those of every ssh: nobody is asked for anything, and one that goes silent ends after 30 s. Set once.
var sshOptions = []string{
	"-T", "-x", "-a", "-e", "none",
	"-o", "BatchMode=yes", "-o", "ConnectTimeout=8", "-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3",
	"-o", "ControlMaster=no", // it may use one of the user's, and is none itself
	"-o", "ClearAllForwardings=yes", "-o", "PermitLocalCommand=no", "-o", "RemoteCommand=none", "-o", "LogLevel=ERROR",
}

// Mark is the line after which the far end is what was asked for: what a login there prints comes before it.
const Mark = "switchboard-ssh-1"

// maxBefore bounds what a login may print before the mark, in bytes.
const maxBefore = 64 << 10

// How a script of ours ends at the other end.
const (
	exitOldSwitchboard = 2   // it knows no join --stdio
	exitUsage          = 64  // the codex there knows no app-server proxy
	exitNoSwitchboard  = 66  // our own program is needed and is not there
	exitNotStarted     = 69  // its app-server does not start
	ExitNotFound       = 127 // the agent is not there; also of join --stdio
	exitSSH            = 255 // ssh itself failed
)

// findThere looks for our programs where they usually are, and loginThere where the shell of a login finds them, which
// for a command of ssh is often not asked.
const (
	findThere = `PATH=$PATH:$HOME/.local/bin:$HOME/bin:$HOME/go/bin:/usr/local/bin:/opt/homebrew/bin; export PATH; umask 077; ` +
		`has() { command -v "$1" >/dev/null 2>&1; }; `
	loginThere = `PATH=$PATH:$("${SHELL:-sh}" -lc "env" </dev/null 2>/dev/null | sed -n "s/^PATH=//p" | tail -n 1); `
)

// connectThere connects the standard streams with the Codex of that machine: by our own program, which looks after it,
// else with the app-server of its control socket, which is started if need be and stays.
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

// remote makes one word of a script for whatever shell the user has there: our scripts have no single quote.
func remote(script string) string { return "exec sh -c '" + script + "'" }

// arguments are those of ssh. The destination stands after the last option: it can be none.
func (s *SSH) arguments(script string) []string {
	return append(append([]string{}, sshOptions...), "--", s.Destination, remote(script))
}

// run runs a script at the other end, gives it first, and returns when it says its mark. program is the one that must
// be there.
func (s *SSH) run(ctx context.Context, end servers.End, program, script string, first []byte) (*sshConn, error) {
	if !destination.MatchString(s.Destination) { // also where nobody has checked
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
	if len(first) > 0 { // less than a pipe holds: it does not wait
		_, _ = running.stdin.Write(first) // an ssh that is gone says why
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

// An sshConn is the standard streams of what runs at the other end, as a connection.
type sshConn struct {
	child               *child
	r                   *bufio.Reader // Owned by Read
	server, to, program string        // Set once
}

// await reads up to the mark.
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

// fault closes the connection, and says why it came to nothing: as ssh tells, else as err does.
func (c *sshConn) fault(ctx context.Context, err error) *handoff.Error {
	late := ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded)
	_ = c.Close() // it is gone either way
	code, said := c.child.cmd.ProcessState.ExitCode(), c.child.saidLast()
	fault := &handoff.Error{Code: handoff.CodeUnreachable, Subject: c.server, Detail: lastLine(said)}
	switch {
	case late:
		fault.Reason, fault.Detail = handoff.ReasonAsleep, "it did not answer in time"
	case code <= 0 && !errors.Is(err, io.EOF):
		return servers.DialFault(c.server, err)
	default:
		fault.Reason = sshReason(code, said)
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

// knownAs is how the known hosts of ssh have a destination.
func knownAs(to string) string {
	to, port := strings.TrimSuffix(to, "/"), ""
	to, is := strings.CutPrefix(to, "ssh://")
	_, host, named := strings.Cut(to, "@")
	if !named {
		host = to
	}
	if at := strings.LastIndexByte(host, ':'); is && at > strings.LastIndexByte(host, ']') {
		host, port = host[:at], host[at:]
	}
	if port == "" || port == ":22" {
		return strings.Trim(host, "[]")
	}
	return "'[" + strings.Trim(host, "[]") + "]" + port + "'"
}

// sshReasons are the reasons of what ssh says when it fails, the first that fits first. Its words are those of OpenSSH,
// which speaks no other language. Set once.
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
	{"timed out", handoff.ReasonAsleep}, // of "Connection timed out" and "Operation timed out"
	{"not responding", handoff.ReasonAsleep},
	{"Bad configuration option", handoff.ReasonSSHSettings},
	{"bad configuration options", handoff.ReasonSSHSettings},
	{"Bad owner or permissions", handoff.ReasonSSHSettings},
	{"Can't open user config file", handoff.ReasonSSHSettings},
	{"Connection closed", handoff.ReasonCut},
	{"Connection reset", handoff.ReasonCut},
	{"kex_exchange_identification", handoff.ReasonCut},
}

// sshReason finds the reason of an ssh that ended with a code and said something on its standard error.
func sshReason(code int, said string) handoff.Reason {
	switch code {
	case ExitNotFound:
		return handoff.ReasonAgentMissing
	case exitNoSwitchboard:
		return handoff.ReasonSwitchboardMissing
	case exitUsage:
		return handoff.ReasonOutdated
	case exitOldSwitchboard:
		if strings.Contains(said, "unknown flag") {
			return handoff.ReasonOutdated
		} // else a file of settings there is wrong
	case exitSSH:
		for _, row := range sshReasons {
			if strings.Contains(said, row.words) {
				return row.reason
			}
		}
		return handoff.ReasonUnknown
	case 0:
		return handoff.ReasonCut
	}
	return handoff.ReasonAgentEnded // also exitNotStarted
}

// lastLine is the last line of a text that is not empty.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// There is what [SSH.Look] finds at the other end; "" is nothing.
type There struct {
	System, Processor  string // as uname tells them
	Codex, Switchboard string // what their --version says
}

// lookThere tells what a machine is, and what is installed there, a line each.
const lookThere = findThere + `has codex && has switchboard || ` + loginThere + `echo ` + Mark + `; uname -s; uname -m; ` +
	`if has codex; then codex --version </dev/null 2>/dev/null | head -n 1; else echo; fi; ` +
	`if has switchboard; then switchboard --version </dev/null 2>/dev/null | head -n 1; fi`

// Look logs in, and says what is there.
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

// Install copies a program there, as ~/.local/bin/switchboard. One that is there stays whole until the new one is.
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
