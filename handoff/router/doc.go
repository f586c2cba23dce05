// Package router has agents do the work that a caller asks for. A router serves one caller: it owns their runs, what is
// known of them, the questions of their agents, and what the process left behind of theirs when it last ended. It
// publishes what happens: a front reads the events of one run ([handoff.Runs]), or those of all runs. Fronts come and
// go while a run goes on.
//
// It must not know any call, tool or adapter: no voice, no WebSocket, no Codex, no Redis, no HTTP.
//
// # Concurrency
//
// Each run has one goroutine, which owns its state; [Router.Run] starts these goroutines and waits for them, and lasts
// as long as the home. What is known of the caller has its own locks. Nobody waits while holding one.
//
// # Failure
//
// Every accepted request has exactly one outcome. An outcome that nobody heard waits in the outbox. A turn is sent
// once. Instances that share a store start one turn at a time in a thread, by its start gate ([Gates]): a store that is
// away refuses the start. Only the process that sent it sends it again, once, and only if the agent proves that it
// never ran. An interrupted turn is never run again. When an agent is lost, the router looks for it, and follows the
// same turn to its end.
//
// The key of a request names the same run also after a restart. The run begins anew only if nothing of it was sent to
// an agent and nobody stopped it. Words that wait are kept whole until they are sent or dropped.
package router
