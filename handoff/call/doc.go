// Package call is one voice call: which answers the voice model still has to get, what is said and when, and which of
// the caller's words count as an answer. It has the one clock that decides when function calls are answered.
//
// It must not know how work is done: it asks [handoff.Runs], listens for the results, and learns the rest through the
// small interfaces in [Config]. It never imports the router.
//
// # Concurrency
//
// Each call has one loop ([Calls.Serve]), which owns what that call still has to answer. The loop never waits: whatever
// has to ask somebody does so in its own goroutine and posts the result to the loop.
//
// # Failure
//
// Every function call gets exactly one answer while its voice call lasts. An outcome that nobody heard when
// the voice call ends waits in the outbox, for the next one.
package call
