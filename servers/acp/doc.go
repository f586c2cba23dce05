// Package acp talks to one agent of the Agent Client Protocol, version 1: JSON-RPC, an object a line, over whatever
// transport carries lines, which is a child process.
//
// It implements [servers.Dial]: it makes, opens, lists, reads and copies sessions, sends them prompts, and follows,
// steers, stops and answers these. The capabilities of an agent are those in its answer to initialize; its name is
// never looked at.
//
// It must not know voice, calls, callers or other servers. The agent is offered neither files nor terminals: it uses
// its own.
//
// # Turns
//
// The protocol has no id for a turn: a prompt is answered when its turn ends, and the answer is lost with the
// connection. So the text of a prompt ends with a block that has the turn's id (see mark), and with it stands in the
// session's history. The turn has the same id when another process reads the history. A prompt without such a block is
// somebody else's. A history says that a prompt began, but not how it ended: if the answer to a prompt was lost, what
// the turn did is read from the history, and the turn ends as interrupted.
//
// Messages that come while no prompt of ours runs (a replayed history, work that the agent began by itself) belong to
// no turn. They are written to the history and never reported.
//
// # Layers
//
// A [servers.Wire] moves whole lines. A peer is JSON-RPC on a wire. A connection routes the agent's messages to
// sessions. A session sorts them into its running turn and its history, by the reducer and buffer of [turns].
//
// # Concurrency
//
// A connection has one reader and one writer. The reader never waits. Requests that change a session in the agent
// (open, prompt, close) are made one at a time, under the session's gate.
package acp
