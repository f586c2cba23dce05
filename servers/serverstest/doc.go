// Package serverstest is the conformance suite for kinds of agent servers: it tests the contracts of [servers.Dial],
// [servers.Conn], [servers.Catalog], [handoff.Agent] and [handoff.Controls].
//
// It must not know any kind of server. A kind brings a [Harness]: a way to dial a server whose agent does what the
// prompts of this package say.
package serverstest

import (
	"time"

	"switchboard/servers"
)

// Prompts that the agent of a harness must know. To any other prompt it may answer anything.
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
	// PromptMind is sent to a waiting agent, which gets it at once or when it is released. Released, it says
	// [TextMinded] last, and ends.
	PromptMind = "mind this too"
	// PromptFail: the turn fails with [DetailFail].
	PromptFail = "fail"
	// PromptInput: the agent asks [InputQuestion] with the options [InputOptions], waits for the answer in words, and
	// says [TextInput] and the answer. Only agents that take answers in words need to know it.
	PromptInput = "ask me which"
	// PromptPermit: the agent asks for permission to use the network. Granted, it says [TextAccepted]; refused, it says
	// [TextDeclined]. Only agents whose harness has Permits need to know it.
	PromptPermit = "ask for more"
)

// Texts, commands and files of the agent of a harness.
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

// A Harness is one agent server without threads. A function that this kind cannot offer is nil.
type Harness struct {
	Dial servers.Dial
	// Drop cuts all connections to the server, without a message. Turns go on.
	Drop func()
	// Release ends all waits of [PromptWait], now and from now on.
	Release func()
	// Starts returns the number of turns that were begun on the server.
	Starts func() int
	// Restart kills the server and starts it again. Running turns are interrupted.
	Restart func()
	// LoseStart makes the server lose the connection before it acknowledges the next start. runs says whether the turn
	// runs.
	LoseStart func(runs bool)
	// SlowStart makes the server acknowledge turns a moment before they begin.
	SlowStart func()
	// Unload makes the server unload threads without a running turn.
	Unload func()
	// Hold makes another process open every thread that is not loaded.
	Hold func()
	// Lie makes the server show turns as interrupted, for that long after they began and after they ended.
	Lie func(time.Duration)
	// Permits says that the agent knows [PromptPermit].
	Permits bool
	// Pictures returns the number of pictures that the model got.
	Pictures func() int
	// Command is the command of [PromptCommand]; "": [Command].
	Command string
	// OtherCommand is the second command of [PromptBoth]; "": [OtherCommand].
	OtherCommand string
	// Unstreamed says that the output of a short command may come only at its end.
	Unstreamed bool
	// Terse says that the output of a command comes without its last newline, and without the exit code.
	Terse bool
	// EndsUntold says that the history of a thread does not say how turns ended: a turn whose end was not heard is read
	// as interrupted, also if it was completed.
	EndsUntold bool
	// Lacks are the reasons for skipping cases, by their names.
	Lacks map[string]string
	// Gone is a full thread id that the server does not have.
	Gone string
	// Dir is a directory of the server in which threads may be made.
	Dir string
}
