// Package verbs implements what a person or a script does with a running Switchboard from a terminal: look at
// machines and sessions, give work and follow it, and answer agents' questions. It is an ordinary client of the API
// and shows what the API says.
//
// It must not know how the service is reached, nor decide about work: the service decides, and also words the errors.
//
// A verb is one file: a function that returns its [cli.Verb], with its flags, its help and what it does at a
// [Terminal]. cmd/switchboard lists it in commands.go, among the verbs that need no running service.
//
// # Concurrency
//
// A [Terminal] runs one verb at a time. A verb returns when it is done or its context ends, and leaves no goroutine
// behind.
package verbs

import (
	"context"
	"io"
)

// A Terminal shows a person what a service says.
type Terminal struct {
	Client
	Out  io.Writer // gets the result, for people or for another program
	Err  io.Writer // gets progress, for people
	JSON bool      // Out gets the API's own JSON instead, on one line each
	Live bool      // Out is a terminal: messages are printed while they are written
	Name string    // of the program, for commands in texts

	// Ask lets somebody at the terminal type a line. nil: it is a script, which has to name a question by its id.
	Ask func(ctx context.Context, prompt string) (string, error)
}
