// Package router does the work that callers ask for: it owns the runs, what is known of each caller, the questions of
// agents, and what a former life of the process left. What happens to a run is published; whoever wants to hear of it
// follows it, or attends for its caller. Fronts come and go while a run goes on.
//
// It must not know any call, tool or adapter: no voice, no WebSocket, no Codex, no Redis, no HTTP.
//
// # Concurrency
//
// One goroutine a run owns its state; [Router.Run] starts and awaits them, and lives as long as the process. What is
// known of a caller has its own lock, which is never held over anything that waits.
//
// # Failure
//
// Every request that was promised has exactly one outcome. One that nobody heard waits in the outbox. A turn is
// started by one try. The same process sends it once more only when the agent proves that the first try never ran; an
// interrupted turn is never run again. Agents that are lost are looked for, and the same turn is followed to its end.
package router
