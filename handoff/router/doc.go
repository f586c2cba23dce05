// Package router does the work that callers ask for. It owns the runs, what is known of each caller, the questions of
// agents, and what the process left behind when it last ended. It publishes what happens to a run: a front follows the
// run, or attends for its caller. Fronts come and go while a run goes on.
//
// It must not know any call, tool or adapter: no voice, no WebSocket, no Codex, no Redis, no HTTP.
//
// # Concurrency
//
// Each run has one goroutine, which owns its state; [Router.Run] starts these goroutines and waits for them, and lasts
// as long as the process. What is known of a caller has its own lock, which is never held over anything that waits.
//
// # Failure
//
// Every accepted request has exactly one outcome. An outcome that nobody heard waits in the outbox. A turn is started
// by one try. The same process tries once more only when the agent proves that the first try never ran; an interrupted
// turn is never run again. When an agent is lost, the router looks for it, and follows the same turn to its end.
//
// A request with a key gives the same run in every life of the process. Only when nothing of it was ever sent to an
// agent, and that was nobody's wish, does it begin anew. Words that wait are kept whole until they are sent or
// dropped.
package router
