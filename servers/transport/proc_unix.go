//go:build unix

package transport

import (
	"os/exec"
	"syscall"
)

// ownGroup puts a child into a process group of its own, so that a Ctrl-C at the terminal does not reach it, and so
// that its own children can be killed with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate sends SIGTERM to the group of a child.
func terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// groupLives reports whether the group of a child has any process left.
func groupLives(cmd *exec.Cmd) bool { return syscall.Kill(-cmd.Process.Pid, 0) == nil }

// kill sends SIGKILL to the group of a child.
func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
