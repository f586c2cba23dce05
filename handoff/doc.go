// Package handoff is the language of Switchboard and its router.
//
// A caller talks to a voice model; the voice model calls a tool; the router turns that request into a
// turn on the right thread of the right agent server, and brings what the agent says back into the call.
// This package owns the words for that (call, request, handoff, server, thread, turn, update, remark,
// note, answer, sticky), the phases of a handoff, the tools the voice model gets, and the [Router] that
// runs them.
//
// It must not know any adapter: no WebSocket, no Codex, no Redis, no HTTP. Adapters implement its small
// interfaces ([Voice], [Fleet], [Agent], [Controls], [Stickies], [Directory]); if it knew one of them,
// every adapter would know every other.
//
// # Concurrency
//
// One loop a call ([Router.Serve]) owns what that call still has to answer. One goroutine a handoff owns
// its [State]; [Router.Run] starts and awaits them, and lives as long as the process, so that a handoff
// outlives its call. The decisions ([State.Step], target and argument checks, wording) are pure functions
// without time, sockets or locks.
//
// # Failure
//
// Every request gets exactly one answer on every path. A result that nobody heard is kept for the
// caller's next call. A turn is started by one try. The same process sends it once more
// only when the agent proves that the first try never ran; an interrupted turn is never run again. Agents
// that are lost are looked for, and the same turn is followed to its end.
package handoff
