// Package workspace has what an agent can do in one directory: read it and, if it is trusted, change it and run
// commands in it. The limits are enforced here: [Workspace.Run] refuses a tool that may not be used, whoever offered
// it, and no path leads out of the directory, whatever links it contains.
//
// Files that other programs run or obey later (package risk lists them) can only be read by commands, at any depth; if
// a command makes such a file, the file is renamed when the command has ended. An edit of one asks a person first.
// Edits and commands of overlapping workspaces run one at a time.
//
// It must not know a model, a wire or a turn. It gets the name of a tool and its arguments, and returns text.
package workspace
