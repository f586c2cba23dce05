package tools

import (
	"context"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/wording"
)

// lookTimeout bounds a question to the fleet. It is longer than the directory's own deadline for one server, so
// that a dead one costs its entry and not the answer.
const lookTimeout = 5 * time.Second

// A Doer is what a tool is asked for and what needs no more than a [Backend]. The other tools give work or
// answer for the caller: how that is done, and when it is told, is up to who mounts the table.
type Doer interface {
	Arguments
	// Do asks or changes what a grant allows, and returns once that is done, at most after some seconds.
	Do(ctx context.Context, b Backend, g handoff.Grant) (Result, error)
}

// A Backend is what the tools look at and act on. What a tool does not need may be nil.
type Backend struct {
	Directory handoff.Directory
	Resolver  Resolver
	Work      Work
}

// A Resolver finds what a name means.
type Resolver interface {
	Resolve(ctx context.Context, g handoff.Grant, t handoff.Target) (handoff.Target, error)
}

// Work is what callers asked for. Lists hold what the grant may see.
type Work interface {
	// Handoffs returns a caller's work, newest first. With an error it returns what is known, and there may be more.
	Handoffs(g handoff.Grant) ([]handoff.Record, error)
	Questions(g handoff.Grant) []handoff.RecordQuestion
	// Stop returns at once. Work that somebody else began is not stopped: [handoff.CodeJoined].
	Stop(ctx context.Context, g handoff.Grant, id string) error
}

// A Result is what a tool gives back. Its JSON is the output.
type Result interface {
	// within cuts long texts and leaves out whole entries until the JSON has at most limit bytes, where it has more.
	within(limit int) Result
}

// Answer is the result of a tool that does something: a sentence, and what else there is to know.
type Answer struct{ wording.Answer }

// StatusUnclear marks an answer that asks the caller which work they mean.
const StatusUnclear = "unclear"

func (a Answer) within(int) Result { return a }
