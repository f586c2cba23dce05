// Package router takes requests to agents and brings what comes of them back into calls. It owns the runs,
// what is known of each caller, open questions, the calls' loops, and what a former life of the process left.
//
// It must not know any adapter: no WebSocket, no Codex, no Redis, no HTTP.
//
// # Concurrency
//
// One loop a call ([Router.Serve]) owns what that call still has to answer. One goroutine a handoff owns its
// state; [Router.Run] starts and awaits them, and lives as long as the process, so that a handoff outlives
// its call.
//
// # Failure
//
// Every request gets exactly one answer on every path. A result that nobody heard is kept for the caller's
// next call. A turn is started by one try. The same process sends it once more only when the agent proves
// that the first try never ran; an interrupted turn is never run again. Agents that are lost are looked for,
// and the same turn is followed to its end.
package router
