// Package sandbox runs the commands of an agent so that they reach only what they may, and so that no process of
// theirs is left when they end.
//
// Each command gets its own namespaces: one of processes, so that killing the first kills all; one of mounts, with
// only the directories that it may see; one of the network, without any connection. In addition, Landlock forbids it
// to write elsewhere. Both need Linux; if either is missing, [Probe] says so and no command runs.
//
// The kernel puts a whole process into a sandbox, so this program starts itself again: [Main] must be the first thing
// that it does. It must not know agents, models or turns.
package sandbox
