package simulator

import "time"

// A Step is one action of a simulated agent in a turn: [Think], [Say], [Run], [Both], [Edit], [Ask], [Input],
// [Permit], [Pause], [Effect], [Fail] or [Hang]; of an agent that is no app-server also [Stray] or [Later].
type Step interface{ step() }

// Think is a reasoning item. Its text comes at once, and its end after For.
type Think struct {
	Text string
	For  time.Duration
}

// Say is a message of the agent. It streams word by word, one after each Every.
type Say struct {
	Text  string
	Every time.Duration
}

// Run is a shell command and its output.
type Run struct {
	Command string
	Lines   []Line
	Exit    int
}

// Both runs commands side by side: all begin at once, and then one after the other prints and ends.
type Both []Run

// A Line is a line of output, which comes After the line before it.
type Line struct {
	Text  string
	After time.Duration
}

// Edit changes files, and takes For.
type Edit struct {
	Changes []Change
	For     time.Duration
}

// A Change is one file of an edit, as a unified diff without its header.
type Change struct {
	Path string
	Diff string
	Add  bool // the file is new
}

// Ask asks for approval of a command, or of an edit when Changes are set, and waits for the answer. After a yes the
// act is done (Lines and Exit as in [Run]), and the turn goes on with Accepted; after a no it is not done, and the
// turn goes on with Declined. The steps after an Ask follow in both cases. With Person, only a person may decide: the
// request goes only to clients that promised to ask one, and cannot be accepted for the session.
type Ask struct {
	Command  string
	Person   bool
	Changes  []Change
	Reason   string
	Lines    []Line
	Exit     int
	Accepted []Step
	Declined []Step
}

// Input asks a person questions and waits for the answers in words. The turn goes on with the steps of Answered, which
// gets the answers in the order of the questions, "" for a missing one. Answered must return at once.
type Input struct {
	Queries  []Query
	Answered func(answers []string) []Step
}

// A Query is one question of an [Input].
type Query struct {
	Text    string
	Options []string
	Secret  bool
}

// Permit asks for more permissions, for the network or for writes, and waits for the answer.
type Permit struct {
	Reason  string
	Network bool
	Write   []string // paths
	Granted []Step
	Refused []Step
}

// Pause does nothing.
type Pause struct{ For time.Duration }

// Effect changes the world: what the agent knows, and the state of its repository.
type Effect struct{ Fact Fact }

// Fail ends the turn as failed.
type Fail struct{ Message string }

// Stray is text without an id, which is not the agent's.
type Stray struct{ Text string }

// Later is a message that the agent sends by itself after the turn.
type Later struct{ Text string }

// Hang waits for [World.Release], an interrupt or a steer.
type Hang struct{}

func (Think) step()  {}
func (Say) step()    {}
func (Run) step()    {}
func (Both) step()   {}
func (Edit) step()   {}
func (Ask) step()    {}
func (Input) step()  {}
func (Permit) step() {}
func (Pause) step()  {}
func (Effect) step() {}
func (Fail) step()   {}
func (Stray) step()  {}
func (Later) step()  {}
func (Hang) step()   {}

// A Fact is something that an agent makes true.
type Fact int

// The facts of the built-in world.
const (
	FactSawFailure  Fact = iota // this session ran the tests and one failed
	FactTestsPassed             // this session ran the tests and all passed
	FactFixed                   // the failing test was fixed
	FactPushed                  // the branch was pushed
	FactNotes                   // the release notes were written
	FactMeasured                // the benchmarks were run
	FactPublished               // the release notes were published
)
