//go:build !unix

package transport

import "os/exec"

// ownGroup does nothing where there are no process groups.
func ownGroup(*exec.Cmd) {}

// terminate ends a child.
func terminate(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// groupLives reports that nothing is known of a group.
func groupLives(*exec.Cmd) bool { return false }

// kill ends a child.
func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
