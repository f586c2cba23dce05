// Package router has agents do the work that a caller asks for. A router serves one caller. It is the shell of
// [switchboard/handoff/work.State], which decides: one loop owns the state, and jobs beside it talk to agents and to
// the store. Fronts ask the loop, and read the events of one handoff ([handoff.Handoffs]), or those of all handoffs.
// Fronts come and go while a handoff goes on.
//
// It must not know any call, tool or adapter: no voice, no WebSocket, no Codex, no Redis, no HTTP.
//
// # Concurrency
//
// [Router.Run] is the loop, and lasts as long as the home. It never waits for anything but its next event. Whoever asks
// waits until the loop has taken their event. A job posts what came of it, once, and ends; what it does ends with the
// handoff, or when another job replaces it. Before and after the loop, the state is guarded by a mutex. Queues, owners,
// rates and counts are shared by all routers of a process, and safe by themselves.
//
// # Failure
//
// Every accepted request has exactly one outcome. An outcome that nobody heard waits in the outbox. A turn is sent
// once. Only the process that sent a turn sends it again, once, and only if the agent proves that it never ran. An
// interrupted turn is never run again. Instances that share a store start one turn at a time in a thread, by its start
// gate ([Gates]): while the store is away, no turn starts. When an agent is lost, the router reconnects, and follows
// the same turn to its end.
//
// The key of a request names the same handoff also after a restart. The handoff begins anew only if nothing of it was
// sent to an agent and nobody stopped it. A request that waits is kept whole until it is sent or dropped.
package router
