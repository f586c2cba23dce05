// Package verbs is what a person, or a script, does with a running Switchboard from a terminal: it looks at
// machines and sessions, gives work and follows it, and answers what agents ask. It is a client of the API like any
// other, and shows what that says.
//
// It must not know how the service is reached, nor decide about work: the service does, also about errors, whose
// words are passed on.
//
// # Concurrency
//
// A [Terminal] is for one verb at a time. Its methods return when that is done or its context ends; they leave no
// goroutine behind.
package verbs

import (
	"context"
	"io"
)

// A Terminal shows a person what a service says.
type Terminal struct {
	Client
	Out  io.Writer // what was asked for, to be passed on
	Err  io.Writer // what goes on meanwhile, for people
	JSON bool      // Out gets the API's own JSON instead, a line for each
	Name string    // of the program, for commands that are told

	// Sure asks whoever sits there for a yes. nil: nobody does, and a question is named by its id.
	Sure func(ctx context.Context, prompt string) (bool, error)
}
