// Package mux is a multiplexer, a mux, of an agent of the Agent Client Protocol: its clients share the agent by a
// socket, and the agent goes on without them. Such an agent speaks on its standard streams and ends with them; the mux
// is a process in a session of its own that owns these streams, so that the agent outlives every client, the service
// and the supervisor of its machine.
//
// It must not know who its clients are, nor what they may do: the supervisor's gates judge that.
//
// # What clients see
//
// Each client belongs to an instance of the service. Its initialize names the instance, as `switchboard.instance` in
// the _meta of clientInfo; without a name it is the only instance. The next client of an instance replaces the one
// before, and a client without a name replaces all others: what the earlier ones have sent is read no more. Clients of
// several instances share the agent.
//
// The clients that have sent or adopted a prompt get its messages. They may stop it, and answer the agent's questions
// in it; the first answer counts. Other clients cannot open its session while it runs, and cannot act in it. What the
// agent says outside prompts goes to the client that opens the session, or else to the one that worked in it last.
//
// A client that opens a session which another client is opening waits for the end of that, at most two minutes, and for
// the end of its history: so each client gets the history once. (One agent sends the history after its answer.) A
// session is closed in the agent once no client has it open.
//
// To a client the mux is the agent, with three differences:
//
//   - initialize is answered with what the agent said the first time, and says `_meta.switchboard.keeps`.
//   - A prompt goes on when its client is gone, and the mux records the agent's messages of it. `_switchboard/adopt
//     {sessionId}` gives the newest prompt of a session to a client that did not send it. Before the answer, {found},
//     the client gets `_switchboard/prompted {sessionId, cwd, prompt, gap}`, the recorded messages with those requests
//     of the agent that are not answered, and, if the prompt has ended, `_switchboard/answered {sessionId, result |
//     error, ended}`; else that comes when it ends. Other clients that have the prompt keep it: they may be dead
//     without a sign, or work beside the one that adopts it.
//   - A client gets nothing of a prompt that another client sent until it adopts it.
//
// What the agent says in prompts is one log of at most 16 MiB. When it is full, it loses the oldest, whatever prompt
// that is of: a prompt whose end is lost is forgotten, and one whose beginning is lost has a gap. `gap` says so to a
// client that adopts it, which gets nothing of the record then: it has to read the session's history.
//
// # Layers
//
// The broker is the state: the agent, its sessions, its clients and the requests that are not answered. It decides what
// each message leads to, without I/O. The mux owns the broker and does the I/O.
package mux
