// Package call serves voice calls. It decides when each function call of the voice model is answered and with what,
// what is said and when, and which of the caller's words count as an answer to a question.
//
// It must not know how work is done: it starts runs by [handoff.Handoffs], listens to their events, and does the rest
// through the small interfaces in [Config]. It never imports the router.
//
// # Concurrency
//
// Each call has one loop ([Calls.Serve]), which owns the call's state. The loop never waits: I/O is done in goroutines
// beside it, which post their results to the loop.
//
// # Failure
//
// Every function call gets exactly one answer while its voice call lasts. An outcome that nobody heard when
// the voice call ends waits in the outbox, for the next one.
package call
