//go:build !unix

package transport

import "os/exec"

// ownGroup does nothing: there are no process groups on this system.
func ownGroup(*exec.Cmd) {}

// terminate ends a child.
func terminate(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// groupLives returns false: there are no process groups on this system.
func groupLives(*exec.Cmd) bool { return false }

// kill ends a child.
func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
