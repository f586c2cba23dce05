// Package sandbox runs the commands of an agent so that they reach what they may and nothing else, and so that nothing
// of them is left when they end.
//
// Each command gets namespaces of its own: of processes, so that killing the first kills all; of mounts, in which only
// the directories stand that it may see; of the network, in which there is nobody. On top of that Landlock forbids it
// to write elsewhere. Both need Linux; where either is missing, [Probe] says so and nothing is run.
//
// The kernel puts a whole process into a sandbox, so this program starts itself again: [Main] must be the first thing
// that it does. It must not know agents, models or turns.
package sandbox
