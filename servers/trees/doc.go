// Package trees makes worktrees of git for sessions, and removes them: each on a branch of its own, in a directory
// beside the repository's.
//
// It decides which commands of git are run, and reads what they print. How a command reaches the machine is the matter
// of a [Git], and the package must not know any way to a machine: the kinds of agents have one for each way to their
// machines, and each of them checks again, with [Check], what it is given. A list of a few forms says what may pass.
// No shell is ever involved, and the only arguments that vary are names and directories that Switchboard made, and ids
// of commits.
//
// Nothing is lost by a removal. git itself refuses to remove a worktree with changes or new files, and a branch that
// is not merged: nothing here forces it.
//
// The package keeps no state, and starts no goroutine.
package trees
