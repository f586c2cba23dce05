// Package sandbox runs the commands of an agent so that they reach only what they may, and so that no process of
// theirs is left when they end.
//
// Each command gets its own namespaces: one of processes, so that killing the first kills all; one of mounts, with
// only the directories that it may see; one of the network, with a loopback and nothing else. In addition, Landlock
// forbids it to write elsewhere, and seccomp leaves it no socket that reaches a program outside. All need Linux; if one
// is missing, or this program is root and is not told as whom commands run, [Probe] says so and no command runs.
//
// [Limits] bound its processes, its memory and its /tmp. The kernel counts processes; memory and /tmp are looked at
// ten times a second, so a command can take more for a moment.
//
// The kernel puts a whole process into a sandbox, so this program starts itself again: [Main] must be the first thing
// that it does. It must not know agents, models or turns.
package sandbox
