// Package keeper keeps an agent of the Agent Client Protocol alive behind a socket. Such an agent speaks on its
// standard streams and ends with them; the keeper is a process in a session of its own that owns these streams, so that
// the agent outlives every client, the service and the supervisor of its machine.
//
// It must not know who is attached, nor what may be done: who starts it holds its clients to that.
//
// # What clients see
//
// A client is of an instance of the service, which its initialize names as `switchboard.instance` in the _meta of
// clientInfo, or of the only one, which has no name. The next client of an instance takes the place of the one before,
// and one without a name that of all: nothing that the earlier one has sent is read any more. Clients of several
// instances share the agent. Of a prompt hear those who have given or adopted it; they may answer what it asks, where
// the first answer counts, and stop it. Others cannot open its session while it runs, and have no say in it. What the
// agent says outside prompts goes to who opens the session, or worked in it last. Who opens a session that another is
// opening waits for that, for two minutes at most, and for the end of its history, which one agent tells after its
// answer: so each hears it once. A session is closed in the agent once nobody has it open.
//
// To a client the keeper is the agent, with three differences:
//
//   - initialize is answered with what the agent said the first time, and says `_meta.switchboard.keeps`.
//   - A prompt goes on when its client is gone. What the agent says of it meanwhile waits. `_switchboard/adopt
//     {sessionId}` gives the newest prompt of a session to a client that did not send it: before its answer, which is
//     {found}, come `_switchboard/prompted {sessionId, cwd, prompt, gap}`, all that the agent has said since then, the
//     requests of the agent that nobody has answered, and, when the prompt was answered, `_switchboard/answered
//     {sessionId, result | error, ended}`. An answer that is still to come is told in the same way. Who had the prompt
//     keeps it: that one may be dead and not known to be, or work beside who adopts it.
//   - Nothing is heard of a prompt that another client sent until it is adopted.
//
// What waits is at most 16 MiB. When there is no room, finished prompts are forgotten, the oldest first; then what was
// said of the running one is dropped, which `gap` tells whoever adopts it: that is to be read from the session.
//
// # Layers
//
// A book is what is known of the agent, of its sessions and of requests on their way. It decides what each message
// leads to and is pure. The keeper is the loop around it, which owns it.
package keeper
