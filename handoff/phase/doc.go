// Package phase is the life of one handoff as a pure function: [State.Step] takes a [Fact] and gives the next
// state and the actions that follow. Whoever owns a handoff carries the actions out and hands back facts. How each
// phase handles a fact is in step.go. What follows once it is known whether a lost start ran is decided there, in
// reconciling; [handoff.Reconciler] says how a server finds that out, and the router asks it again and again
// (router/run_watch.go).
//
// It must not know time, threads, servers or the store: a fact holds all that matters. Every reachable state
// and fact is in testdata/phases.golden.
package phase
