// Package workspace is what an agent can do in one directory: read there, and, where the directory is trusted, more.
// What may be done is enforced where it is done: a tool that may not be used is refused by [Workspace.Run], whoever
// offered it, and no path leads out of the directory, whatever links stand in it.
//
// It must not know a model, a wire or a turn. It is given the name of a tool and its arguments, and gives back words.
package workspace
