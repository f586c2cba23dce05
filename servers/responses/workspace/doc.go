// Package workspace is what an agent can do in one directory: read it and, if it is trusted, change it and run
// commands there. The limits are enforced here: [Workspace.Run] refuses a tool that may not be used, whoever offered
// it, and no path leads out of the directory, whatever links are in it.
//
// What other programs run later (package risk lists it) a command only reads, at any depth; what it makes of that is
// renamed when it has ended. An edit of it asks. Edits and commands of a workspace, and of those that overlap with it,
// have their turn one after the other.
//
// It must not know a model, a wire or a turn. It is given the name of a tool and its arguments, and gives back words.
package workspace
