// Package workspace is what an agent can do in one directory: read it and, if it is trusted, change it and run
// commands there. The limits are enforced here: [Workspace.Run] refuses a tool that may not be used, whoever offered
// it, and no path leads out of the directory, whatever links are in it.
//
// It must not know a model, a wire or a turn. It is given the name of a tool and its arguments, and gives back words.
package workspace
