// Package workspace has what an agent can do in one directory: read it and, if it is trusted, change it and run
// commands in it. The limits are enforced here: [Workspace.Run] refuses a tool that may not be used, whoever offered
// it, and no path leads out of the directory, whatever links it contains.
//
// A command sees an overlay of the workspace. When it has ended, each path that it changed goes through the gate of
// edits (package risk): plain files are taken over, and the rest is dropped and told, since other programs might run or
// obey it. What is new of the rest lies beneath the workspace for the next commands. In a workspace, one command or
// edit runs at a time; a file that somebody else changed meanwhile stays as they left it.
//
// It must not know a model, a wire or a turn. It gets the name of a tool and its arguments, and returns text.
package workspace
