package sandbox

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// helperFlag starts this program as the helper of a command. A program without [Main] does not know the flag and
// exits.
const helperFlag = "-switchboard-sandbox"

// ready is the line with which the helper reports that the sandbox is ready; any other line is why it is not.
const ready = "ready\n"

// wire is a command in the form in which the helper gets it.
type wire struct {
	Command
	Probe bool
}

// Run runs a command and returns its exit code. It returns when nothing of the command is left running: it has ended,
// its time is over ([ErrTime]), its /tmp is full ([ErrTmp]), or ctx has ended. Any other error means that it never
// began. The code of a command that a signal ended is 128 plus the signal's number; that of one that used too much
// memory is 137, and its output says so.
func Run(ctx context.Context, c Command) (int, error) {
	if os.Geteuid() == 0 && c.User == nil {
		return 0, noSandbox(errRoot)
	}
	if err := settle(c.Scratch); err != nil { // of a trial, say
		return 0, noSandbox(err)
	}
	c.Limits = c.Limits.filled()
	ctx, cancel := context.WithTimeoutCause(ctx, c.Time, ErrTime)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	helper, theirs := os.NewFile(uintptr(pair[0]), "helper"), os.NewFile(uintptr(pair[1]), "service")
	defer func() { _ = helper.Close(); _ = theirs.Close() }() // the helper ends when its own is closed
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = []string{"switchboard", helperFlag}
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = append([]string{}, c.Env...), theirs, c.Output, c.Output
	cmd.SysProcAttr = attributes(c)
	own, _ := os.ReadFile("/proc/self/cgroup")
	group := openGroup(groupParent(string(own)), filepath.Base(c.Scratch), c.Limits)
	if group != nil {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(group.Fd())
		defer func() { _ = group.Close(); _ = os.Remove(group.Name()) }()
	}
	cmd.WaitDelay = time.Second // in case anything still has the output open
	if err := cmd.Start(); err != nil {
		return 0, noSandbox(err)
	}
	_ = theirs.Close()
	if err := json.NewEncoder(helper).Encode(wire{c, c.probe}); err != nil {
		_ = cmd.Process.Kill()
	}
	report, _ := bufio.NewReader(io.LimitReader(helper, 4096)).ReadString('\n') // then it waits for our go-ahead
	var watching sync.WaitGroup
	if report == ready && !c.probe {
		processes, err := os.OpenRoot(fmt.Sprintf("/proc/%d/root/proc", cmd.Process.Pid))
		if err != nil {
			stop(noSandbox(fmt.Errorf("it cannot be watched: %w", err)))
		} else {
			defer func() { _ = processes.Close() }()
			watching.Go(func() { watch(ctx, stop, func() error { return tooMuchMemory(processes, c.Limits) }) })
			watching.Go(func() { watch(ctx, stop, c.wroteTooMuch) })
			_, _ = helper.Write([]byte("\n"))
		}
	}
	err = cmd.Wait()
	cause := context.Cause(ctx)
	stop(nil)
	watching.Wait()
	if full := c.tidy(); full != nil {
		return 0, full
	}
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case errors.Is(cause, errMemory), outOfMemory(group): // the kernel may be faster
		_, _ = fmt.Fprintf(c.Output, "\nThe command used more than %d MiB of memory and was ended, with everything that it "+
			"had begun.\n", c.Limits.Memory>>20)
		return killed, nil
	case cause != nil:
		return 0, cause
	case report != ready:
		return 0, noSandbox(errors.New(cmp.Or(report, "its helper does not answer")))
	case ended:
		return codeOf(exit.Sys().(syscall.WaitStatus)), nil
	}
	return 0, err
}

// attributes returns the namespaces and privileges of the helper. The user namespace has no user but the command's; in
// it the helper may make the other namespaces, and the command may not.
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
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN,
			unix.CAP_SYS_RESOURCE, unix.CAP_DAC_OVERRIDE},
		Setpgid: true, // a Ctrl-C at our terminal must not reach the command
	}
}

// noSandbox returns the error that there is no sandbox, with what to do about it if that is known.
func noSandbox(err error) error {
	text := "there is no sandbox for commands: " + strings.TrimSpace(err.Error())
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENOSPC) || strings.Contains(text, unix.EPERM.Error()) {
		text += "; unprivileged user namespaces are switched off here (sysctl user.max_user_namespaces, " +
			"kernel.apparmor_restrict_unprivileged_userns, or the container's profile)"
	}
	return errors.New(text)
}

// codeOf returns the exit code of a process, as a shell reports it.
func codeOf(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

// Main runs the helper, and never returns, in a process that was started for a command. Otherwise it does nothing.
func Main() {
	if len(os.Args) != 2 || os.Args[1] != helperFlag {
		return
	}
	code, err := helper(os.Stdin)
	if err != nil {
		_, _ = os.Stdin.WriteString(strings.ReplaceAll(err.Error(), "\n", "; ") + "\n")
		code = 1
	}
	syscall.Exit(code) // at once
}
