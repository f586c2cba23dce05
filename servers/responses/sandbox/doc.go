// Package sandbox runs the commands of an agent so that they reach only what they may, and so that no process of
// theirs is left when they end.
//
// Each command gets its own namespaces: one of processes, so that killing the first process kills all; one of mounts,
// with only the directories that it may see; one of the network, with nothing but a loopback; one of users, in which
// no further ones can be made. It works on an overlay of its workspace: nothing that it writes reaches the workspace
// itself, and [Scratch.Changed] returns what it changed. seccomp allows the listed system calls alone, and no socket
// that reaches a program outside. All of this needs Linux. If a part is missing, or this program is root and has no
// user for commands, [Probe] says so and no command runs.
//
// [Limits] bound its processes, its memory and its /tmp. The kernel counts processes; memory and files are measured
// from outside ten times a second, so a command can exceed them for a moment; one that cannot be measured is ended.
//
// The kernel puts a whole process into a sandbox, so this program starts itself again: [Main] must be the first call
// of its main function. This package must not know agents, models or turns.
package sandbox
