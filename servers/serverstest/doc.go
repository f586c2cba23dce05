// Package serverstest is what every kind of agent server must hold: the promises of [servers.Dial],
// [servers.Conn], [servers.Catalog], [handoff.Agent] and [handoff.Controls], as tests.
//
// It must not know any kind of server. A kind brings a [Harness]: a way to dial a server whose agent does
// what the prompts of this package say.
package serverstest

import (
	"time"

	"switchboard/servers"
)

// Prompts that the agent of a harness must know. To anything else it answers whatever it likes.
const (
	// PromptHello: the agent says [TextHello].
	PromptHello = "say hello"
	// PromptCommand: the agent runs [Command], which prints [CommandOutput] and exits with
	// [CommandExit], and then says [TextCommand].
	PromptCommand = "run the command"
	// PromptEdit: the agent changes the file [EditPath] and then says [TextEdit].
	PromptEdit = "change the file"
	// PromptAsk: the agent asks for approval to run [AskCommand]. Accepted, it runs it and says
	// [TextAccepted]; declined, it says [TextDeclined].
	PromptAsk = "ask me first"
	// PromptBoth: the agent runs [Command] and [OtherCommand] side by side, or one after the other where it
	// cannot, and then says [TextBoth].
	PromptBoth = "run both"
	// PromptWait: the agent says [TextWaiting] and works until it is interrupted or released. Released, it
	// says [TextBack] and ends.
	PromptWait = "wait for me"
	// PromptMind: given to a waiting agent, which hears it at once or when it is released. Either way it says
	// [TextMinded] last, when it is released, and ends.
	PromptMind = "mind this too"
	// PromptFail: the turn fails with [DetailFail].
	PromptFail = "fail"
	// PromptInput: the agent asks [InputQuestion] with the options [InputOptions], waits for the answer in
	// words and says it after [TextInput]. Only agents that take words need to know it.
	PromptInput = "ask me which"
	// PromptPermit: the agent asks for the network. Granted, it says [TextAccepted]; refused, it says
	// [TextDeclined]. Only kinds whose harness has Permits need to know it.
	PromptPermit = "ask for more"
)

// What the agent of a harness says and does.
const (
	TextHello     = "Hello there. This is a message of several words."
	Command       = "make check"
	CommandOutput = "first line\nsecond line\n"
	CommandExit   = 3
	TextCommand   = "The check failed."
	EditPath      = "notes.txt"
	TextEdit      = "Changed."
	AskCommand    = "make install"
	TextAccepted  = "Installed."
	TextDeclined  = "Not installed."
	TextWaiting   = "I wait."
	TextBack      = "I am back."
	TextMinded    = "I minded it."
	OtherCommand  = "make docs"
	OtherOutput   = "other line\n"
	TextBoth      = "Both are done."
	DetailFail    = "out of luck"
	InputQuestion = "Which of them?"
	TextInput     = "You said: "
)

// InputOptions are the options of [InputQuestion]. Set once.
var InputOptions = []string{"The left one", "The right one"}

// A Harness is one agent server with nothing on it.
type Harness struct {
	Dial servers.Dial
	// Drop cuts every connection to the server without a word. What runs there goes on.
	Drop func()
	// Release lets every agent that waits go on, and every one that would wait from now on.
	Release func()
	// Starts counts the turns that were begun on the server.
	Starts func() int
	// Restart kills the server and runs it again: what ran is interrupted. nil when this kind has none.
	Restart func()
	// LoseStart makes the server lose the next start together with the connection,
	// before it acknowledges it. runs says whether it takes effect. nil when that cannot be.
	LoseStart func(runs bool)
	// SlowStart makes the server acknowledge turns a moment before they begin. nil when that cannot be.
	SlowStart func()
	// Unload makes the server let go of threads that run nothing. nil when this kind knows no such thing.
	Unload func()
	// Hold makes another process hold every thread that is not loaded. nil when that cannot be.
	Hold func()
	// Lie makes the server show turns as interrupted for so long after they began and ended. nil when this
	// kind never does.
	Lie func(time.Duration)
	// Permits says that agents of this kind ask for rights.
	Permits bool
	// Pictures counts the pictures that the model was shown; nil when that cannot be told.
	Pictures func() int
	// Command is what [PromptCommand] runs where it is not [Command].
	Command string
	// OtherCommand is what [PromptBoth] runs beside it where it is not [OtherCommand].
	OtherCommand string
	// Unstreamed says that the output of a command that ends at once may come with its end alone.
	Unstreamed bool
	// Terse says that what a command printed comes without its last line end, and without its exit code.
	Terse bool
	// EndsUntold says that the record of a thread does not tell how its turns ended: one whose end was not heard is
	// read as interrupted, also when it came to its end.
	EndsUntold bool
	// Lacks names the cases that this kind cannot do, each with the reason.
	Lacks map[string]string
	// Gone is a full thread id that the server does not have.
	Gone string
	// Dir is a directory of the server where threads may be made.
	Dir string
}
