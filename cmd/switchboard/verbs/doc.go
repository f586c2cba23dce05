// Package verbs implements what a person or a script does with a running Switchboard from a terminal: look at
// machines and sessions, give work and follow it, and answer agents' questions. It is an ordinary client of the API
// and shows what the API says.
//
// It must not know how the service is reached, nor decide about work: the service decides, and also words the errors.
//
// A verb is a struct with its flags, its help and its ask in cmd/switchboard/verbs.go, its field of options
// (config_flags.go), and a method of [Terminal]. A verb that needs no running service has a line in do (main.go)
// instead of ask and the method.
//
// # Concurrency
//
// A [Terminal] runs one verb at a time. Its methods return when the verb is done or its context ends; they leave no
// goroutine behind.
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
