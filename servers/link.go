package servers

import (
	"context"
	"time"

	"switchboard/handoff"
	"switchboard/servers/trees"
)

// Dial opens a connection to one agent server and completes its handshake. Errors are [*handoff.Error]. The context
// bounds the dial only, not the connection.
type Dial func(ctx context.Context) (*Link, error)

// A Link is one live connection to an agent server.
type Link struct {
	Conn    Conn            // Set once
	Catalog Catalog         // Set once
	Done    <-chan struct{} // closed when the connection is lost or closed
	Version string          // of the server; "": not known
	Note    string          // a sentence about what its agents can or cannot do; ""
	// Check finds out whether the agent can work: [handoff.CodeNotSignedIn] says that it cannot use its model, and
	// [handoff.CodeRefused] that it refuses every session or runs no commands. nil: it cannot be checked.
	Check func(context.Context) error
	// Unfit returns why the agent refuses every new session, as far as somebody has tried. nil: it is not known to.
	Unfit func() *handoff.Error
	// Changed has a token after changes: an older thread was renamed, archived or restored, or the result of
	// [Overhearer.ForeignQuestions] has changed. nil: the kind reports no changes, and only the age of a list
	// says whether it is used again.
	Changed <-chan struct{} // capacity 1
	// Exclusive says that the next connection needs something that this one holds, such as the threads of a child
	// process: the next one is dialled only when this one is closed.
	Exclusive bool
}

// Conn attaches threads. It is safe for concurrent use. The Target of what it returns has only a Thread.
type Conn interface {
	// Attach resumes a thread by its full id, subscribes, and returns exactly that thread.
	Attach(ctx context.Context, thread string) (handoff.Attached, error)
	// Create makes a new thread in a directory of the server; "": the server's own default.
	Create(ctx context.Context, dir string) (handoff.Attached, error)
	// Close ends the connection and returns when its goroutines have ended.
	Close() error
}

// A Forker is a [Conn] that can copy a thread, as [handoff.Forker] says. It returns the copy, attached.
type Forker interface {
	Fork(ctx context.Context, thread string, last handoff.TurnID) (handoff.Attached, error)
}

// An Ephemeral is a [Conn] that can make threads that are not stored, as [handoff.Ephemeral] says.
type Ephemeral interface {
	CreateEphemeral(ctx context.Context, dir string) (handoff.Attached, error)
	ForkEphemeral(ctx context.Context, thread string, last handoff.TurnID) (handoff.Attached, error)
}

// A Gitter is a [Conn] that can run git on the machine of its agents. Git is a [trees.Git]: it runs only what
// [trees.Check] allows, and changes nothing where agents may only read.
type Gitter interface {
	Git(ctx context.Context, dir string, args []string) (trees.Ran, error)
}

// Catalog lists and reads threads without attaching them. It is safe for concurrent use.
type Catalog interface {
	// List returns at most limit threads, the newest first. With an error it may return a part of them. Only ctx bounds
	// how long it takes.
	List(ctx context.Context, limit int) ([]Thread, error)
	// Read returns the newest lines of a thread, oldest first, and how many older ones there are.
	Read(ctx context.Context, thread string, lines int) (Text, error)
}

// An Archiver is a [Catalog] that can archive threads, and restore them.
type Archiver interface {
	Archive(ctx context.Context, thread string, on bool) error
}

// A Renamer is a [Catalog] that can rename threads.
type Renamer interface {
	Rename(ctx context.Context, thread, name string) error
}

// An Overhearer is a [Catalog] that knows the questions of agents about work that other clients began.
type Overhearer interface {
	// ForeignQuestions returns the open questions of such work in attached threads, oldest first.
	ForeignQuestions() []ForeignQuestion
}

// A ForeignQuestion is a question about work that another client began. It is answered there, never here.
type ForeignQuestion struct {
	Thread string // id
	Title  string
	Text   string // the command, or the question in words
	At     time.Time
}

// A Thread is one conversation in the list of its server.
type Thread struct {
	ID      string
	From    string // the thread of which it is a copy; "": none, or not known: lists of Codex do not say it
	Title   string // its name, or else its first words
	Dir     string
	Branch  string
	Created time.Time // zero: not known
	Updated time.Time
	Status  handoff.SessionStatus
}

// A Text is the readable part of a thread.
type Text struct {
	Thread Thread
	Lines  []handoff.Line
	More   int // older lines that were left out
}
