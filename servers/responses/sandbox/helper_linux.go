package sandbox

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// helper sets up the sandbox around itself, runs the command in it and returns its exit code. It is the first process
// of its process namespace: when it ends, the kernel kills all others.
func helper(service io.ReadWriter) (int, error) {
	runtime.LockOSThread() // processes inherit the privileges of the thread that starts them
	spec := bufio.NewReader(service)
	line, err := spec.ReadBytes('\n')
	if err != nil {
		return 0, err
	}
	var c wire
	if err := json.Unmarshal(line, &c); err != nil {
		return 0, err
	}
	if err := enterSandbox(c); err != nil {
		return 0, err
	}
	if _, err := io.WriteString(service, ready); err != nil || c.Probe {
		return 0, err
	}
	if _, err := spec.ReadByte(); err != nil { // the service watches now
		return 0, err
	}
	go func() {
		_, _ = spec.ReadByte() // it fails when the service is gone
		os.Exit(killed)
	}()
	code, err := run(c.Command)
	if err != nil { // as a shell reports it
		fmt.Fprintln(os.Stderr, "the command cannot be started:", err)
		return 126, nil
	}
	return code, nil
}

// enterSandbox sets up the sandbox around this process.
func enterSandbox(c wire) error {
	// If memory runs out, the kernel kills the command first.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts: %w", err)
	}
	hidden, err := targets(c.Hidden)
	if err != nil {
		return err
	}
	if c.Mode == Full {
		err = unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	} else {
		err = buildRoot(c.Command)
	}
	if err != nil {
		return err
	}
	// Hiding comes last, over everything that shows the files.
	if err := cmp.Or(hide(hidden), os.Chdir(c.Dir)); err != nil || c.Mode == Full {
		return cmp.Or(err, dropPrivileges())
	}
	// In a user namespace of its own, a command would have privileges there.
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
		return fmt.Errorf("user namespaces: %w", err)
	}
	if err := cmp.Or(loopback(), dropPrivileges()); err != nil {
		return err
	}
	return restrictCalls()
}

// loopback brings up the loopback of this network namespace.
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

// dropPrivileges drops all privileges, for good.
func dropPrivileges() error {
	for capability := uintptr(0); ; capability++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); errors.Is(err, unix.EINVAL) {
			break // this was the last one
		} else if err != nil {
			return fmt.Errorf("rights: %w", err)
		}
	}
	none := [2]unix.CapUserData{}
	err := errors.Join(unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0),
		unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]),
		unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
		// Processes of the same user must not inspect this process, whose other threads still have privileges.
		unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0), unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}))
	if err != nil {
		return fmt.Errorf("rights: %w", err)
	}
	return nil
}

// limitScript is a shell script that limits the number of processes of this user namespace, which the command alone
// uses, and then becomes the command's shell. This process must not limit itself: it would crash when it needs another
// thread. In dash the option is -p.
const limitScript = `ulimit -u "$1" 2>/dev/null || ulimit -p "$1" || exit 126; exec "$0" -c "$2"`

// run runs the command and waits for it. Meanwhile it also reaps the orphans of the namespace.
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
	pid, err := syscall.ForkExec(shell,
		[]string{shell, "-c", limitScript, shell, strconv.Itoa(c.Limits.Processes), c.Line},
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
