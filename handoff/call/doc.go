// Package call is one voice call: what is owed to the voice model, what is said and when, and what of the caller's
// words counts as an answer. It has the one clock by which function calls are answered.
//
// It must not know how work is done: it asks [handoff.Runs], hears of what becomes of it as a listener, and is told
// the rest through the small interfaces in [Config]. It never imports the router.
//
// # Concurrency
//
// One loop a call ([Calls.Serve]) owns what that call still has to answer. It never waits: what has to ask somebody
// does so in a goroutine of its own and posts what came of it.
//
// # Failure
//
// Every function call gets exactly one answer while its call lasts. What was not said when the call ends goes back
// to whoever gave it: an outcome that nobody heard waits in the outbox.
package call
