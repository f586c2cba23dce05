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
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// helperFlag tells this program that it was started for a command. A program without [Main] does not know the
// flag, and ends.
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
// ([ErrTime]), its /tmp is full ([ErrTmp]), or ctx has ended. Any other error means that it never began. A command that
// a signal ended has 128 and the signal's number; one that took too much memory says so at the end of its output, and
// has 137.
func Run(ctx context.Context, c Command) (int, error) {
	if os.Geteuid() == 0 && c.User == nil {
		return 0, unmade(errRoot)
	}
	c.Limits = c.Limits.filled()
	ctx, cancel := context.WithTimeoutCause(ctx, c.Time, ErrTime)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
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
	own, _ := os.ReadFile("/proc/self/cgroup")
	group := openGroup(groupParent(string(own)), filepath.Base(c.Scratch), c.Limits)
	if group != nil {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(group.Fd())
		defer func() { _ = group.Close(); _ = os.Remove(group.Name()) }()
	}
	cmd.WaitDelay = time.Second // nothing can hold the pipe; see to it nevertheless
	if err := cmd.Start(); err != nil {
		return 0, unmade(err)
	}
	_, _ = spec.Close(), reports.Close()
	if err := json.NewEncoder(told).Encode(wire{c, c.probe, c.without}); err != nil {
		_ = cmd.Process.Kill()
	}
	said, _ := io.ReadAll(io.LimitReader(report, 4096)) // it ends before the command begins
	var watch sync.WaitGroup
	watch.Go(func() { watchTmp(ctx, c, stop) })
	err = cmd.Wait()
	why := context.Cause(ctx)
	stop(nil)
	watch.Wait()
	if full := tidyTmp(c); full != nil {
		return 0, full
	}
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case why != nil:
		return 0, why
	case string(said) != standing:
		return 0, unmade(errors.New(cmp.Or(string(said), "its helper does not answer")))
	case outOfMemory(group): // before the helper looked
		tellMemory(c.Output, c.Limits)
		return killed, nil
	case ended:
		return codeOf(exit.Sys().(syscall.WaitStatus)), nil
	}
	return 0, err
}

// attributes are the namespaces of a command. In a user namespace of its own, with nobody in it but its user, the
// helper may make the others; what it runs may not.
func attributes(c Command) *syscall.SysProcAttr {
	u := User{UID: os.Getuid(), GID: os.Getgid()}
	var credential *syscall.Credential
	if c.User != nil {
		u = *c.User
		credential = &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID)}
	}
	flags := uintptr(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID)
	if c.Mode != Full {
		flags |= unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	}
	return &syscall.SysProcAttr{
		Cloneflags:                 flags,
		UidMappings:                []syscall.SysProcIDMap{{ContainerID: u.UID, HostID: u.UID, Size: 1}},
		GidMappings:                []syscall.SysProcIDMap{{ContainerID: u.GID, HostID: u.GID, Size: 1}},
		GidMappingsEnableSetgroups: c.User != nil, // root gives up its other groups
		Credential:                 credential,
		AmbientCaps:                []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN},
		Setpgid:                    true, // a Ctrl-C at our terminal is not theirs
	}
}

// unmade says why there is no sandbox, and what mends it where that is known.
func unmade(err error) error {
	text := "there is no sandbox for commands: " + strings.TrimSpace(err.Error())
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENOSPC) || strings.Contains(text, unix.EPERM.Error()) {
		text += "; unprivileged user namespaces are switched off here (sysctl user.max_user_namespaces, " +
			"kernel.apparmor_restrict_unprivileged_userns, or the container's profile)"
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
