//go:build linux

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// probeEnv makes the test binary probe for a sandbox, runEnv makes it run a command until it is killed.
const (
	probeEnv = "TEST_SANDBOX_PROBE"
	runEnv   = "TEST_SANDBOX_RUN"
)

func TestMain(m *testing.M) {
	Main()
	scratch := os.Getenv(probeEnv) + os.Getenv(runEnv)
	if scratch == "" {
		os.Exit(m.Run())
	}
	dir := os.Getenv("DIR")
	c := Command{User: somebody(), Line: os.Getenv("LINE"), Dir: dir, Workspace: dir, Scratch: scratch,
		Mode: Mode(os.Getenv("MODE")), Time: time.Hour, Output: os.Stdout}
	if os.Getenv(probeEnv) != "" {
		fmt.Println(Probe(context.Background(), c))
		return
	}
	fmt.Println(Run(context.Background(), c))
}

// somebody is the user for commands if the tests are root, else nil.
func somebody() *User {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := LookupUser("nobody")
	if err != nil {
		panic(err)
	}
	return u
}

// give gives a directory and its content to the user for commands.
func give(t testing.TB, dir string) {
	t.Helper()
	u := somebody()
	if u == nil {
		return
	}
	err := filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(name, u.UID, u.GID))
	})
	must(t, err)
}

// A site has a workspace, and beside it files that commands must not reach.
type site struct {
	*testing.T
	Command
	out string // beside the workspace
}

func newSite(t *testing.T) site {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "switchboard-test-") // commands have a /tmp of their own
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, text := range map[string]string{"in/a.txt": "inside\n", "in/.git/config": "kept\n",
		"out/secret": "secret\n"} {
		name = filepath.Join(dir, name)
		must(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)))
	}
	must(t, os.Symlink("../out/secret", filepath.Join(dir, "in/link")))
	give(t, dir)
	scratch, err := NewScratch(somebody())
	must(t, err)
	t.Cleanup(func() { _ = scratch.Close() })
	s := site{T: t, out: filepath.Join(dir, "out"), Command: Command{
		User: somebody(), Dir: filepath.Join(dir, "in"),
		Workspace: filepath.Join(dir, "in"), Scratch: scratch.Dir, Mode: WorkspaceWrite,
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C"}, Time: time.Minute,
	}}
	if err := Probe(t.Context(), s.Command); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return s
}

// run runs a line and returns what it printed and its exit code.
func (s site) run(line string) (string, int) {
	s.Helper()
	var out bytes.Buffer
	s.Line, s.Output = line, &out
	code, err := Run(s.Context(), s.Command)
	if err != nil {
		s.Fatalf("%s: %v", line, err)
	}
	return out.String(), code
}

// may checks whether lines succeed.
func (s site) may(want bool, lines ...string) {
	s.Helper()
	for _, line := range lines {
		if out, code := s.run(line); (code == 0) != want {
			s.Errorf("%s: %q exits %d: %s", s.Mode, line, code, out)
		}
	}
}

// TestReach: a command reads the system and its workspace, writes in what it sees of the workspace, and reaches nothing
// else. The workspace itself stays as it was.
func TestReach(t *testing.T) {
	s := newSite(t)
	for _, mode := range []Mode{ReadOnly, WorkspaceWrite} {
		s.Mode = mode
		s.may(true, "cat a.txt", "ls -l", "cat .git/config", "cat /etc/hostname || cat /etc/passwd",
			"ls / > /dev/null; cat /dev/zero | head -c1", `test "$HOME" = /tmp && test "$TMPDIR" = /tmp && echo x > /tmp/x`,
			"cat /tmp/x")
		s.may(mode == WorkspaceWrite, "echo x > b.txt && mkdir -p d/e && mv b.txt d/e && rm -r d",
			"truncate -s 1 a.txt && echo inside > a.txt", "ln -s x y && rm y", "rm -r .git", "chmod 555 .")
		s.may(false, "cat "+s.out+"/secret", "cat link", "ls "+s.out, "echo x > "+s.out+"/x", "echo x > "+s.out+"/secret",
			"rm "+s.out+"/secret", "echo x >> /etc/hosts", "touch /usr/x", "ls /root/. ~root", "mv a.txt "+s.out,
			"ln "+s.out+"/secret hard")
	}
	for name, want := range map[string]string{"out/secret": "secret\n", "in/a.txt": "inside\n", "in/.git/config": "kept\n"} {
		if got, err := os.ReadFile(filepath.Join(filepath.Dir(s.out), name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	if all, err := os.ReadDir(s.Dir); err != nil || len(all) != 3 {
		t.Errorf("the workspace has %v, %v", all, err)
	}
}

// TestNoNetwork: a command reaches nobody, by any protocol or name.
func TestNoNetwork(t *testing.T) {
	s := newSite(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	abstract, err := net.Listen("unix", "@switchboard-sandbox-test-"+filepath.Base(s.Scratch))
	must(t, err)
	t.Cleanup(func() { _ = abstract.Close() })
	tcp := "exec 3<>/dev/tcp/" + strings.Replace(l.Addr().String(), ":", "/", 1)
	s.may(false, tcp, "echo x > /dev/udp/192.0.2.1/9", "grep -v '^Num' /proc/net/unix | grep -q switchboard")
	s.Mode = Full
	s.may(true, tcp, "grep -q switchboard-sandbox-test /proc/net/unix")
}

// TestNoRights: a command has no privileges and gets none, in a user namespace of its own either.
func TestNoRights(t *testing.T) {
	s := newSite(t)
	if out, _ := s.run("grep -E '^(Cap|NoNewPrivs)' /proc/self/status"); strings.Count(out, "0000000000000000") != 5 ||
		!strings.Contains(out, "NoNewPrivs:\t1") {
		t.Error(out)
	}
	s.may(false, "mount -t tmpfs x /tmp", "unshare -Ur true", "unshare -Urm mount -t tmpfs x /tmp", "umount .",
		"chroot /tmp true")
	s.Env = append(s.Env, "A=b")
	want := "A=b\nHOME=/tmp\nLANG=C\nPATH=/usr/local/bin:/usr/bin:/bin\nPWD=" + s.Dir +
		"\nSHLVL=1\nTMPDIR=/tmp\n_=/usr/bin/env\n"
	if out, _ := s.run("env | sort"); out != want {
		t.Errorf("the environment is %q", out)
	}
}

// TestHidden: a hidden directory or file is empty in every mode, by every name and even if a directory above it is
// shown, and stays so.
func TestHidden(t *testing.T) {
	s := newSite(t)
	dir := filepath.Dir(s.out)
	must(t, errors.Join(os.WriteFile(dir+"/key", []byte("secret\n"), 0o644), os.Symlink("key", dir+"/link"),
		os.WriteFile(s.Dir+"/token", []byte("secret\n"), 0o644), os.Mkdir(dir+"/closed", 0)))
	s.Readable = []string{dir}
	s.Hidden = []string{s.out, s.out + "-that-is-not-there", dir + "/link", s.Dir + "/token", dir + "/closed/key"}
	for _, mode := range []Mode{ReadOnly, WorkspaceWrite, Full} {
		s.Mode = mode
		secret := s.out + "/secret"
		s.may(true, `test -d `+s.out+` && test -z "$(ls -A `+s.out+`)"`)
		s.may(false, "cat "+secret, "cat link", "cat /proc/1/root"+secret, "echo x > "+secret, "umount "+s.out,
			"unshare -Urm sh -c 'umount "+s.out+"; cat "+secret+"'", "umount "+dir+"/key")
		for _, name := range []string{dir + "/key", dir + "/link", "token", "../key"} {
			s.may(false, "grep . "+name)
		}
		s.may(false, "mv "+dir+"/key /tmp/key && grep . /tmp/key", "cp "+dir+"/key /tmp/key && grep . /tmp/key")
	}
	for _, name := range []string{s.out + "/secret", dir + "/key", s.Dir + "/token"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != "secret\n" {
			t.Errorf("outside %s is %q, %v", name, got, err)
		}
	}
}

func TestExit(t *testing.T) {
	s := newSite(t)
	for _, mode := range []Mode{ReadOnly, WorkspaceWrite, Full} {
		s.Mode = mode
		for line, want := range map[string]int{"true": 0, "exit 3": 3, "kill -TERM $$": 143, "kill -SEGV $$": 139,
			"no-such-program": 127, "exec 1>&-; exit 4": 4} {
			if out, code := s.run(line); code != want {
				t.Errorf("%q exits %d: %s", line, code, out)
			}
		}
		if out, _ := s.run("echo to stdout; echo to stderr >&2; cat"); out != "to stdout\nto stderr\n" {
			t.Errorf("it printed %q", out)
		}
	}
}

// marked counts the processes that have a word among their arguments.
func marked(word string) int {
	n := 0
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), word) {
			n++
		}
	}
	return n
}

// gone waits until no process has a word among its arguments.
func gone(t *testing.T, word string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); marked(word) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d processes are left", marked(word))
		}
	}
}

// TestNothingLeft: however a command ends, none of its processes is left when [Run] returns.
func TestNothingLeft(t *testing.T) {
	const hide = "setsid nohup sleep %[1]s >/dev/null 2>&1 & (sleep %[1]s & sleep %[1]s &) ; trap '' TERM INT HUP; "
	for i, mode := range []Mode{WorkspaceWrite, Full} {
		s := newSite(t)
		s.Mode = mode
		word := fmt.Sprintf("98%d.%d", os.Getpid(), i)
		s.run(fmt.Sprintf(hide, word))
		if n := marked(word); n > 0 {
			t.Errorf("%s: %d processes outlive their command", mode, n)
		}
		s.Line, s.Time = fmt.Sprintf(hide+"echo; sleep %[1]s", word), 200*time.Millisecond
		s.Output = &bytes.Buffer{}
		if code, err := Run(t.Context(), s.Command); !errors.Is(err, ErrTime) || code != 0 || marked(word) > 0 {
			t.Errorf("%s: its time is over: %d, %v, %d are left", mode, code, err, marked(word))
		}
		why := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		s.Time, s.Output = time.Hour, writer(func() { cancel(why) })
		if _, err := Run(ctx, s.Command); !errors.Is(err, why) || marked(word) > 0 {
			t.Errorf("%s: stopped: %v, %d are left", mode, err, marked(word))
		}
		cancel(nil)
	}
}

// A writer calls a function at each write.
type writer func()

func (w writer) Write(p []byte) (int, error) { w(); return len(p), nil }

// TestKilledParent: when this program is killed, its commands end too.
func TestKilledParent(t *testing.T) {
	for i, mode := range []Mode{WorkspaceWrite, Full} {
		s := newSite(t)
		word := fmt.Sprintf("97%d.%d", os.Getpid(), i)
		parent := exec.Command("/proc/self/exe")
		parent.Env = append(os.Environ(), runEnv+"="+s.Scratch, "DIR="+s.Dir, "MODE="+string(mode), "LINE=echo on; sleep "+word)
		out, err := parent.StdoutPipe()
		if err == nil {
			err = parent.Start()
		}
		must(t, err)
		if _, err := out.Read(make([]byte, 1)); err != nil || marked(word) == 0 {
			t.Errorf("the command does not run: %v", err)
		}
		_ = parent.Process.Kill()
		_ = parent.Wait()
		gone(t, word)
	}
}

// TestFull: without a sandbox a command can do what its user can.
func TestFull(t *testing.T) {
	s := newSite(t)
	s.Mode, s.Env = Full, append(s.Env, "HOME=/somewhere")
	s.may(true, "cat link", "echo x > "+s.out+"/x", "echo x > .git/x", `test "$HOME" = /somewhere`)
	s.may(false, "mount -t tmpfs x /mnt", "chroot / true")
}

// TestNowhere: without the possibility of a sandbox no command runs, and the error says what to do.
func TestNowhere(t *testing.T) {
	s := newSite(t)
	self, err := os.Executable()
	must(t, err)
	program, err := os.ReadFile(self)
	if err == nil {
		self = filepath.Join(s.out, "self") // readable for the user of the command
		// A child that is just starting would have the file open for writing, so that it could not be run.
		syscall.ForkLock.RLock()
		err = os.WriteFile(self, program, 0o755)
		syscall.ForkLock.RUnlock()
	}
	must(t, err)
	s.Readable = []string{s.out}
	s.Env = append(s.Env, probeEnv+"=/tmp", "DIR="+s.Dir, "MODE="+string(WorkspaceWrite))
	out, _ := s.run("mkdir -p /tmp/root /tmp/tmp /tmp/layer; " + self)
	if !strings.HasPrefix(out, "there is no sandbox for commands: ") ||
		!strings.Contains(out, "user.max_user_namespaces") {
		t.Errorf("in a sandbox there is a sandbox: %q", out)
	}
	for err, want := range map[error]string{unix.ENODEV: "Linux 5.11", unix.EPERM: "Linux 5.11", unix.EINVAL: "TMPDIR"} {
		if got := noOverlay(err); !strings.Contains(got.Error(), want) {
			t.Errorf("%v: %v", err, got)
		}
	}
	outside := s.Scratch
	s.Scratch = filepath.Join(s.Workspace, "scratch") // no overlay can write below what it shows
	for _, name := range []string{"tmp", "layer", "root"} {
		must(t, os.MkdirAll(filepath.Join(s.Scratch, name), 0o755))
	}
	give(t, s.Scratch)
	s.Line, s.Output = "echo ran > ran; echo ran > /tmp/ran", &bytes.Buffer{}
	if _, err := Run(t.Context(), s.Command); err == nil || !strings.Contains(err.Error(), "outside of the workspace") {
		t.Errorf("without an overlay: %v", err)
	}
	if _, err := os.Stat(filepath.Join(s.Scratch, "tmp/ran")); err == nil {
		t.Error("a command ran without an overlay")
	}
	s.Scratch = outside
	s.Workspace = filepath.Join(s.out, "nowhere")
	s.Dir = s.Workspace
	if err := Probe(t.Context(), s.Command); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a workspace that is not there: %v", err)
	}
	if _, err := Run(t.Context(), s.Command); err == nil {
		t.Error("a command ran nowhere")
	}
}

// BenchmarkRun measures a command, beside the shell alone.
func BenchmarkRun(b *testing.B) {
	scratch, err := NewScratch(somebody())
	must(b, err)
	b.Cleanup(func() { _ = scratch.Close() })
	c := Command{User: somebody(), Line: "true", Dir: "/tmp", Workspace: "/usr/share", Scratch: scratch.Dir,
		Mode: WorkspaceWrite, Time: time.Minute, Output: &bytes.Buffer{}}
	c.Dir = c.Workspace
	if err := Probe(b.Context(), c); err != nil {
		b.Skip(err)
	}
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			must(b, exec.Command("/bin/bash", "-c", "true").Run())
		}
	})
	b.Run("sandbox", func(b *testing.B) {
		for b.Loop() {
			if code, err := Run(b.Context(), c); err != nil || code != 0 {
				b.Fatal(code, err)
			}
		}
	})
}

// TestScratchOfTheDead: the directory of a killed process is removed when the next one starts; those of other
// processes and users stay.
func TestScratchOfTheDead(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	used, err := NewScratch(nil)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	dead, err := NewScratch(nil)
	must(t, err)
	must(t, errors.Join(unix.Flock(int(dead.lock.Fd()), unix.LOCK_UN), dead.lock.Close(),
		os.WriteFile(filepath.Join(dead.Dir, "tmp", "x"), []byte("left"), 0o600)))
	other := filepath.Join(os.TempDir(), "switchboard-123")
	must(t, os.Mkdir(other, 0o700))
	next, err := NewScratch(nil)
	must(t, err)
	for dir, stays := range map[string]bool{used.Dir: true, next.Dir: true, other: true, dead.Dir: false} {
		if _, err := os.Stat(dir); (err == nil) != stays {
			t.Errorf("%s: %v, and should be there: %v", dir, err, stays)
		}
	}
	must(t, errors.Join(used.Close(), next.Close()))
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), scratchPrefix+"*")); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

// TestScratchesAtOnce: makers of scratch directories take none from each other.
func TestScratchesAtOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	made := make(chan *Scratch, 40)
	var work sync.WaitGroup
	for range cap(made) {
		work.Go(func() {
			if s, err := NewScratch(nil); err != nil {
				t.Error(err)
			} else {
				made <- s
			}
		})
	}
	work.Wait()
	close(made)
	for s := range made {
		if _, err := os.Stat(filepath.Join(s.Dir, "tmp")); err != nil {
			t.Error(err)
		}
		must(t, s.Close())
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// must ends a test that cannot go on after err.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
