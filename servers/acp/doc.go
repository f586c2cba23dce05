// Package acp talks to one agent of the Agent Client Protocol, version 1: JSON-RPC, an object a line, over whatever
// transport carries lines, which is a child process.
//
// It implements [servers.Dial]: it makes, opens, lists, reads and copies sessions, gives them prompts, and follows,
// steers, stops and answers these. What an agent can do is what it says in its answer to initialize; its name is never
// looked at.
//
// It must not know voice, calls, callers or other servers. The agent is offered neither files nor terminals: it uses
// its own.
//
// # Turns
//
// The protocol has no id for a turn: a prompt is answered when its turn ends, and the answer is lost with the
// connection. So the words of a prompt are followed by a block with its key (see mark), which stands in the history
// of the session. A turn has the id of its start, also in a history that is read by another process; a prompt
// without a key is somebody else's. A history tells that a prompt began, and never how it ended: a turn whose answer
// was lost is read, and ends as interrupted.
//
// What comes while no prompt of ours is in flight (a replayed history, work that the agent began by itself) belongs
// to no turn, is written to the history, and is never reported.
//
// # Layers
//
// A [servers.Wire] moves whole lines. A peer is JSON-RPC on a wire. A connection routes what the agent says to
// sessions; each sorts it into its running turn and its history, with the bookkeeping of [turns].
//
// # Concurrency
//
// A connection has one reader and one writer. The reader never waits for anybody. What changes a session in the agent
// (open, prompt, close) is done under its gate, one at a time.
package acp
