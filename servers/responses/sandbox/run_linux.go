package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// helperFlag tells this program that it was started for a command. Whoever forgot [Main] does not know it, and ends.
const helperFlag = "-switchboard-sandbox"

// reportPipe is where the helper says that the sandbox stands, or why it does not.
const reportPipe = 3

// standing is what it says when the sandbox stands.
const standing = "standing"

// wire is a command as the helper is told it.
type wire struct {
	Command
	Probe   bool
	Without layer
}

// Run runs a command and returns its exit code when nothing of it runs any more: it has ended, its time is over
// ([ErrTime]), or ctx has ended. Any other error means that it never began. A command that a signal ended has 128 and
// the signal's number.
func Run(ctx context.Context, c Command) (int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Time, ErrTime)
	defer cancel()
	spec, told, err := os.Pipe() // it stays open: the helper ends with us
	if err != nil {
		return 0, err
	}
	defer func() { _ = spec.Close(); _ = told.Close() }()
	report, reports, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer func() { _ = report.Close(); _ = reports.Close() }()
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = []string{"switchboard", helperFlag}
	cmd.Env, cmd.Stdin, cmd.ExtraFiles = append([]string{}, c.Env...), spec, []*os.File{reports}
	cmd.Stdout, cmd.Stderr = c.Output, c.Output
	cmd.SysProcAttr = attributes(c)
	cmd.WaitDelay = time.Second // nothing can hold the pipe; see to it nevertheless
	if err := cmd.Start(); err != nil {
		return 0, unmade(err)
	}
	_, _ = spec.Close(), reports.Close()
	if err := json.NewEncoder(told).Encode(wire{c, c.probe, c.without}); err != nil {
		_ = cmd.Process.Kill()
	}
	said, _ := io.ReadAll(io.LimitReader(report, 4096))
	err = cmd.Wait()
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case string(said) != standing:
		return 0, unmade(errors.New(cmp.Or(string(said), "its helper does not answer")))
	case ended:
		return codeOf(exit.Sys().(syscall.WaitStatus)), nil
	}
	return 0, err
}

// attributes are the namespaces of a command. In a user namespace of its own, with nobody in it but its user, the
// helper may make the others; what it runs may not.
func attributes(c Command) *syscall.SysProcAttr {
	flags := uintptr(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID)
	if c.Mode != Full {
		flags |= unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	}
	return &syscall.SysProcAttr{
		Cloneflags:  flags,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP},
		Setpgid:     true, // a Ctrl-C at our terminal is not theirs
	}
}

// unmade says why there is no sandbox, and what mends it where that is known.
func unmade(err error) error {
	text := "there is no sandbox for commands: " + strings.TrimSpace(err.Error())
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENOSPC) || strings.Contains(text, unix.EPERM.Error()) {
		text += "; unprivileged user namespaces are switched off here (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns, or the container's profile)"
	}
	return errors.New(text)
}

func codeOf(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

// Main never returns in a process that was started for a command. Everywhere else it does nothing.
func Main() {
	if len(os.Args) != 2 || os.Args[1] != helperFlag {
		return
	}
	code, err := helper(os.Stdin)
	if err != nil {
		_, _ = os.NewFile(reportPipe, "report").WriteString(err.Error())
		code = 1
	}
	syscall.Exit(code) // at once: there is nothing to tidy up
}
