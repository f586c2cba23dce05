package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"syscall"

	ll "github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// helper makes the sandbox around itself, runs the command in it and returns its exit code. It is the first process of
// its namespace: the kernel ends all others with it.
func helper(in io.Reader) (int, error) {
	runtime.LockOSThread() // rights that a thread gives up are missing in the processes that it starts
	told := bufio.NewReader(in)
	line, err := told.ReadBytes('\n')
	if err != nil {
		return 0, err
	}
	var c wire
	if err := json.Unmarshal(line, &c); err != nil {
		return 0, err
	}
	go func() { // the service that started us is gone
		_, _ = told.ReadByte()
		os.Exit(128 + int(syscall.SIGKILL))
	}()
	unix.CloseOnExec(reportPipe)
	if err := enclose(c); err != nil {
		return 0, err
	}
	report := os.NewFile(reportPipe, "report") // it is closed before the command could write to it
	if _, err := report.WriteString(standing); err != nil {
		return 0, err
	}
	if err := report.Close(); err != nil || c.Probe {
		return 0, err
	}
	go watchMemory(c.Limits)
	code, err := run(c.Command)
	if err != nil { // as a shell says it
		fmt.Fprintln(os.Stderr, "the command cannot be started:", err)
		return 126, nil
	}
	return code, nil
}

// enclose makes the sandbox.
func enclose(c wire) error {
	// The kernel ends the command before us when memory runs out.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts: %w", err)
	}
	if err := hide(c.Hidden); err != nil {
		return err
	}
	inside := c.Mode != Full && c.Without != mounts
	if inside {
		if err := house(c.Command); err != nil {
			return err
		}
		if err := loopback(); err != nil {
			return err
		}
	} else if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	if err := os.Chdir(c.Dir); err != nil {
		return err
	}
	if c.Mode != Full && c.Without != landlock {
		if err := forbid(c.Command, inside); err != nil {
			return fmt.Errorf("landlock: %w", err)
		}
	}
	if err := disarm(); err != nil {
		return err
	}
	if c.Mode == Full {
		return nil
	}
	return restrict()
}

// loopback switches on the network of this namespace, which has nothing but itself.
func loopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	defer func() { _ = unix.Close(s) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return nil
}

// forbid has Landlock refuse everything that is not read from the system or written to where the command may.
func forbid(c Command, inside bool) error {
	tmp := c.Scratch + "/tmp"
	if inside {
		tmp = "/tmp"
	}
	writable := []string{tmp}
	readable := append([]string{"/proc", c.Workspace}, c.Readable...)
	if c.Mode == WorkspaceWrite {
		writable = append(writable, c.Workspace)
	}
	// The third version knows truncation; older kernels have no sandbox that holds.
	return ll.V3.RestrictPaths(
		ll.RODirs(system...).IgnoreIfMissing(), ll.RODirs(readable...).IgnoreIfMissing(), ll.RWDirs(writable...).WithRefer(),
		ll.RWFiles(devices...).IgnoreIfMissing(), ll.RWDirs("/dev/shm").IgnoreIfMissing(),
	)
}

// disarm gives up every right that made the sandbox, for good.
func disarm() error {
	for right := uintptr(0); ; right++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, right, 0, 0, 0); errors.Is(err, unix.EINVAL) {
			break // there are no more
		} else if err != nil {
			return fmt.Errorf("rights: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("rights: %w", err)
	}
	none := [2]unix.CapUserData{}
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("rights: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("rights: %w", err)
	}
	// What a command runs as its user cannot look into this process, whose other threads have their rights.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("rights: %w", err)
	}
	return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
}

// limited has a shell bound the processes of this user namespace, which is the command's alone, and become the shell of
// the command. This process does not bind itself: it would crash when it needs a thread. In dash the option is -p.
const limited = `ulimit -u "$1" 2>/dev/null || ulimit -p "$1" || exit 126; exec "$0" -c "$2"`

// run runs the command and waits for it, and for every orphan that the namespace has meanwhile.
func run(c Command) (int, error) {
	shell := "/bin/bash"
	if _, err := os.Stat(shell); err != nil {
		shell = "/bin/sh"
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	env := os.Environ()
	if c.Mode != Full {
		env = append(env, "HOME=/tmp", "TMPDIR=/tmp")
	}
	pid, err := syscall.ForkExec(shell, []string{shell, "-c", limited, shell, strconv.Itoa(c.Limits.Processes), c.Line},
		&syscall.ProcAttr{
			Env: env, Files: []uintptr{null.Fd(), 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true},
		})
	if err != nil {
		return 0, err
	}
	for {
		var status syscall.WaitStatus
		switch ended, err := syscall.Wait4(-1, &status, 0, nil); {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, err
		case ended == pid:
			return codeOf(status), nil
		}
	}
}
