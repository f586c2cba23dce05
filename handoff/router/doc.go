// Package router has agents do the work that a caller asks for. A router serves one caller. It owns the caller's runs,
// their records, the questions of their agents, and the work that an earlier life of the process left unfinished. It
// publishes what happens: a front reads the events of one run ([handoff.Runs]), or those of all runs. Fronts come and
// go while a run goes on.
//
// It must not know any call, tool or adapter: no voice, no WebSocket, no Codex, no Redis, no HTTP.
//
// # Concurrency
//
// Each run has one goroutine, which owns its state. [Router.Run] starts these goroutines and waits for them, and lasts
// as long as the home. Each part of the caller's state has its own lock. Nobody waits while holding one.
//
// # Failure
//
// Every accepted request has exactly one outcome. An outcome that nobody heard waits in the outbox. A turn is sent
// once. Only the process that sent a turn sends it again, once, and only if the agent proves that it never ran. An
// interrupted turn is never run again. Instances that share a store start one turn at a time in a thread, by its start
// gate ([Gates]): while the store is away, no turn starts. When an agent is lost, the router reconnects, and follows
// the same turn to its end.
//
// The key of a request names the same run also after a restart. The run begins anew only if nothing of it was sent to
// an agent and nobody stopped it. A request that waits is kept whole until it is sent or dropped.
package router
