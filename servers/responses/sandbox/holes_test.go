//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// sandboxed are the modes with a sandbox.
var sandboxed = []Mode{ReadOnly, WorkspaceWrite}

// needPython skips the test without Python, with which unusual system calls are made. In CI that is a failure.
func needPython(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil && os.Getenv("CI") == "true" {
		t.Fatal(err)
	} else if err != nil {
		t.Skip(err)
	}
}

// python returns a command line that runs a program. It exits with 1 if the program raises.
func python(program string) string { return "python3 - <<'END'\n" + program + "\nEND\n" }

// TestFamilies: a command can make sockets of its own network and pairs of Unix sockets, and no others, by any system
// call.
func TestFamilies(t *testing.T) {
	needPython(t)
	s := newSite(t)
	const program = `import ctypes, socket as s
for may in [(s.AF_INET, s.SOCK_STREAM), (s.AF_INET, s.SOCK_DGRAM), (s.AF_INET6, s.SOCK_STREAM)]: s.socket(*may)
s.socket(s.AF_NETLINK, s.SOCK_RAW)
a, b = s.socketpair(); a.send(b"x"); b.recv(1)
calls = ctypes.CDLL(None, use_errno=True)
def refused(f):
    try: f()
    except OSError as e: return e.errno == 1
for family in range(1, 50):
    for kind in [s.SOCK_STREAM, s.SOCK_DGRAM, s.SOCK_RAW, s.SOCK_SEQPACKET]:
        if family not in (s.AF_INET, s.AF_INET6, s.AF_NETLINK): assert refused(lambda: s.socket(family, kind)), family
for kind in [s.SOCK_DGRAM, s.SOCK_RAW]: assert refused(lambda: s.socketpair(s.AF_UNIX, kind))
for call in [425, 426, 427]: assert calls.syscall(call, 1, 0, 0, 0) == -1 and ctypes.get_errno() == 1
# The kernel cuts the family off to 32 bits.
assert calls.syscall(ctypes.c_long(41), ctypes.c_long(1 << 32 | 1), ctypes.c_long(1), 0) == -1`
	for _, s.Mode = range sandboxed {
		s.may(true, python(program), "echo x | cat")
	}
	s.Mode = Full
	s.may(true, python("import socket; socket.socket(socket.AF_UNIX)"))
}

// TestCalls: system calls that are not on the list are refused: keyrings, namespaces, mounts, and what else of the
// kernel no build or test needs.
func TestCalls(t *testing.T) {
	needPython(t)
	s := newSite(t)
	const program = `import ctypes, platform
if platform.machine() != "x86_64": raise SystemExit # the numbers are others
calls = ctypes.CDLL(None, use_errno=True)
zero = ctypes.c_long(0)
def refused(call, *args):
    ctypes.set_errno(0)
    return calls.syscall(ctypes.c_long(call), *args, zero, zero, zero, zero) == -1 and ctypes.get_errno() == 1
for name, call in dict(add_key=248, request_key=249, keyctl=250, unshare=272, setns=308, userfaultfd=323, bpf=321, mount=165,
        umount2=166, pivot_root=155, chroot=161, perf_event_open=298, name_to_handle_at=303, open_by_handle_at=304,
        fanotify_init=300, move_mount=429, fsopen=430, open_tree=428, mount_setattr=442, init_module=175, kexec_load=246,
        reboot=169, swapon=167, syslog=103, acct=163, quotactl=179, lookup_dcookie=212, pidfd_getfd=438,
        process_madvise=440, memfd_secret=447, uselib=134, modify_ldt=154, iopl=172, none=900).items():
    assert refused(call), name
assert calls.syscall(ctypes.c_long(56), ctypes.c_long(0x10000000 | 17), zero, zero, zero, zero) == -1`
	for _, s.Mode = range sandboxed {
		s.may(true, python(program), "test $(cat /proc/sys/user/max_user_namespaces) = 0")
		s.may(false, "echo 9 > /proc/sys/user/max_user_namespaces")
	}
}

// TestUnixSockets: a command cannot connect to a server that listens in a visible directory.
func TestUnixSockets(t *testing.T) {
	needPython(t)
	s := newSite(t)
	s.Readable = []string{s.out}
	for _, at := range []string{filepath.Join(s.Workspace, "sock"), filepath.Join(s.out, "sock")} {
		l, err := net.Listen("unix", at)
		must(t, err)
		t.Cleanup(func() { _ = l.Close() })
		must(t, os.Chmod(at, 0o777))
		line := fmt.Sprintf("import socket; socket.socket(socket.AF_UNIX).connect(%q)", at)
		for _, s.Mode = range sandboxed {
			s.may(false, python(line))
		}
		s.Mode = Full
		s.may(true, python(line))
	}
}

// TestLoopback: a command reaches its own servers at the addresses of its loopback.
func TestLoopback(t *testing.T) {
	needPython(t)
	s := newSite(t)
	s.may(true, python(`import socket; l = socket.create_server(("127.0.0.1", 0)); `+
		`socket.create_connection(l.getsockname())`),
		python(`import socket; l = socket.create_server(("::1", 0), family=socket.AF_INET6); `+
			`socket.create_connection(l.getsockname()[:2])`))
}

// TestHelperIsClosed: a command reaches nothing of the process that made its sandbox.
func TestHelperIsClosed(t *testing.T) {
	s := newSite(t)
	for _, mode := range []Mode{ReadOnly, WorkspaceWrite, Full} {
		s.Mode = mode
		s.may(false, "echo x > /proc/1/fd/3", "echo x > /proc/1/fd/0", "ls -l /proc/1/fd", "cat /proc/1/environ",
			"head -c1 /proc/1/mem", "cat /proc/1/maps", "test -w /proc/1/mem")
		for line, want := range map[string]int{"echo x > /proc/1/fd/3; exit 7": 7, "kill -KILL 1; exit 7": 7} {
			if out, code := s.run(line); code != want {
				t.Errorf("%q exits %d: %s", line, code, out)
			}
		}
	}
}

// TestRoot: as root this program runs no command without a user for commands, and then runs it as that user.
func TestRoot(t *testing.T) {
	s := newSite(t)
	if os.Geteuid() == 0 {
		as := s.User
		s.User = nil
		if err := Probe(t.Context(), s.Command); err == nil || !strings.Contains(err.Error(), "runs as root") ||
			!strings.Contains(err.Error(), "setting user") {
			t.Errorf("as root: %v", err)
		}
		s.User = as
	}
	for _, mode := range []Mode{ReadOnly, WorkspaceWrite, Full} {
		s.Mode = mode
		s.may(false, "cat /etc/shadow", `test "$(id -u)" = 0`, `id -G | grep -qw 0`)
	}
	for name, want := range map[string]string{"no-such-user": "no user", "root": "is root", "0": "is root"} {
		if _, err := LookupUser(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if u, err := LookupUser("nobody"); err != nil || u.UID == 0 {
		t.Errorf("%+v, %v", u, err)
	}
}

// TestGroups: if a control group for memory and processes was delegated, a command gets one beside ours, with its
// limits; else none.
func TestGroups(t *testing.T) {
	was := groups
	groups = t.TempDir()
	defer func() { groups = was }()
	unit := filepath.Join(groups, "user.slice", "switchboard.service")
	must(t, os.MkdirAll(unit, 0o755))
	const own = "1:name=systemd:/\n0::/user.slice/switchboard.service/main\n"
	for _, c := range []struct{ given, own, want string }{
		{"", own, ""}, {"cpu memory", own, ""}, {"memory pids", "1:name=systemd:/x\n", ""}, {"cpu memory pids", own, unit},
	} {
		for name, text := range map[string]string{"cgroup.subtree_control": c.given, "cgroup.procs": ""} {
			must(t, os.WriteFile(filepath.Join(unit, name), []byte(text), 0o644))
		}
		if got := groupParent(c.own); got != c.want {
			t.Errorf("%q in %q: %q", c.given, c.own, got)
		}
	}
	group := openGroup(unit, "commands", Limits{Processes: 7, Memory: 9})
	if group == nil {
		t.Fatal("there is no group")
	}
	defer func() { _ = group.Close() }()
	for name, want := range map[string]string{"pids.max": "7", "memory.max": "9", "memory.oom.group": "1"} {
		if got, err := os.ReadFile(filepath.Join(unit, "commands", name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	for _, c := range []struct {
		events string
		want   bool
	}{{"", false}, {"low 0\nmax 3\noom 1\noom_kill 0\noom_group_kill 0\n", false},
		{"max 3\noom_kill 2\noom_group_kill 1\n", true}} {
		must(t, os.WriteFile(filepath.Join(unit, "commands", "memory.events"), []byte(c.events), 0o600))
		if got := outOfMemory(group); got != c.want {
			t.Errorf("%q: out of memory: %t", c.events, got)
		}
	}
	if outOfMemory(nil) {
		t.Error("out of memory without a group")
	}
	if openGroup("", "x", Limits{}) != nil || openGroup(filepath.Join(unit, "none"), "x", Limits{}) != nil {
		t.Error("there is a group without a parent")
	}
}

// TestLimits: a command that uses too much is stopped or killed, and what it left in /tmp does not harm the next one.
func TestLimits(t *testing.T) {
	needPython(t)
	s := newSite(t)
	for _, mode := range []Mode{WorkspaceWrite, Full} {
		s.Mode, s.Limits = mode, Limits{Processes: 60}
		const fork = `import os, time
for n in range(200):
    try:
        if os.fork() == 0: time.sleep(60); os._exit(0)
    except BlockingIOError: break
print(n)`
		out, code := s.run(python(fork))
		if n, err := strconv.Atoi(strings.TrimSpace(out)); err != nil || n < 30 || n > 60 || code != 0 {
			t.Errorf("%s: 200 processes where 60 may be: %d, %q", mode, code, out)
		}
		s.Limits = Limits{Memory: 64 << 20}
		for what, program := range map[string]string{
			"its own": `x = bytearray(192 << 20); import time; time.sleep(60)`,
			"with its watch hindered": `import os, resource, time
resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))
for n in range(100):
    try: os.kill(1, 19); os.setpriority(os.PRIO_PROCESS, 1, 19); os.sched_setaffinity(1, {0})
    except OSError: pass
x = bytearray(192 << 20); time.sleep(60)`,
			"shared": `import mmap, time; m = mmap.mmap(-1, 192 << 20); m.write(bytes(192 << 20)); time.sleep(60)`,
		} {
			if out, code := s.run(python(program)); code != 137 ||
				!strings.HasSuffix(out, "\nThe command used more than 64 MiB of memory and was ended, with everything that it "+
					"had begun.\n") {
				t.Errorf("%s: 192 MiB of memory, %s: %d, %q", mode, what, code, out)
			}
		}
		s.may(true, python("x = bytearray(16 << 20)"))
	}
	s.Mode, s.Limits = WorkspaceWrite, Limits{Tmp: 16 << 20}
	for _, line := range []string{
		"head -c 64M /dev/zero > /tmp/x; sleep 60", "head -c 64M /dev/zero > /tmp/x",
		"mkdir -p /tmp/a/b && head -c 64M /dev/zero > /tmp/a/b/x && chmod 0 /tmp/a/b /tmp/a && sleep 60",
		"exec 3> /tmp/x; chmod 0 /tmp; head -c 64M /dev/zero >&3; sleep 60",
		"head -c 64M /dev/zero > x; chmod 0 x .; sleep 60", "for i in $(seq 5000); do : > $i; done; sleep 60",
	} {
		s.Line, s.Output = line, &strings.Builder{}
		if code, err := Run(t.Context(), s.Command); !errors.Is(err, ErrTmp) || code != 0 {
			t.Errorf("%q: %d, %v", line, code, err)
		}
		s.may(true, `test -z "$(ls -A /tmp)"`)
	}
	s.may(true, "head -c 8M /dev/zero > /tmp/x")
}
