package servers

import (
	"context"
	"time"

	"switchboard/handoff"
)

// Dial opens a connection to one agent server and completes its handshake. Errors are [*handoff.Error].
// The context bounds the dial alone.
type Dial func(ctx context.Context) (*Link, error)

// A Link is one live connection to an agent server.
type Link struct {
	Conn    Conn            // Set once
	Catalog Catalog         // Set once
	Done    <-chan struct{} // closed when the connection is lost or closed
	Version string          // of the server, "" when it does not tell
	Note    string          // what its agents may do, in a sentence; "" when it does not tell
	// SignedIn asks whether its agent can use its model: a fault of [handoff.CodeNotSignedIn] says that it cannot. nil:
	// its kind does not tell before it works.
	SignedIn func(context.Context) error
	// Changed tells that something is no more as it was listed or asked: an older thread got another name, was put
	// away or brought back, or what Asked gives is different. One word stands for any number of changes. nil: its
	// kind does not tell, and what was listed gets old by itself.
	Changed <-chan struct{} // capacity 1
	// Exclusive says that this connection holds what the next one needs, such as the threads of a child process:
	// the next is dialled only when this one is closed.
	Exclusive bool
}

// Conn attaches threads. It is safe for concurrent use. The Target of what it returns has only a Thread.
type Conn interface {
	// Attach resumes a thread by its full id, subscribes, and returns exactly that thread.
	Attach(ctx context.Context, thread string) (handoff.Attached, error)
	// Create makes a fresh thread in a directory of the server ("" for the server's own default).
	Create(ctx context.Context, dir string) (handoff.Attached, error)
	// Close ends the connection and returns when its goroutines have ended.
	Close() error
}

// A Forker is a [Conn] that can copy a thread, as [handoff.Forker] says. What it returns is the copy,
// attached.
type Forker interface {
	Fork(ctx context.Context, thread string, last handoff.TurnID) (handoff.Attached, error)
}

// An Ephemeral is a [Conn] that can make threads of which nothing is kept, as [handoff.Ephemeral] says.
type Ephemeral interface {
	CreateEphemeral(ctx context.Context, dir string) (handoff.Attached, error)
	ForkEphemeral(ctx context.Context, thread string, last handoff.TurnID) (handoff.Attached, error)
}

// Catalog lists and reads threads without attaching them. It is safe for concurrent use.
type Catalog interface {
	// List returns the newest threads first, at most limit. With an error it may return the newest of them. Nothing but
	// ctx bounds how long it takes.
	List(ctx context.Context, limit int) ([]Thread, error)
	// Read returns the newest lines of a thread, oldest first, and how many were left out.
	Read(ctx context.Context, thread string, lines int) (Text, error)
}

// An Archiver is a [Catalog] that can put threads away, and bring them back.
type Archiver interface {
	Archive(ctx context.Context, thread string, on bool) error
}

// A Renamer is a [Catalog] that can give threads names.
type Renamer interface {
	Rename(ctx context.Context, thread, name string) error
}

// An Overhearer is a [Catalog] that hears what agents ask those who began their work elsewhere.
type Overhearer interface {
	// Asked returns the open questions of such work in threads that are attached, oldest first.
	Asked() []Asked
}

// Asked is a question that is answered where its work was begun, never here.
type Asked struct {
	Thread string // id
	Title  string
	Text   string // the command, or the question in words
	At     time.Time
}

// A Thread is one conversation as its server lists it.
type Thread struct {
	ID      string
	Title   string // its name, else its first words
	Dir     string
	Branch  string
	Created time.Time // zero: its server does not tell
	Updated time.Time
	Status  handoff.SessionStatus
}

// A Text is the readable part of a thread.
type Text struct {
	Thread Thread
	Lines  []handoff.Line
	More   int
}
