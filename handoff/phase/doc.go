// Package phase is the life of one handoff as a pure function: [State.Step] takes a [Fact] and gives the next
// state and the actions that follow. Whoever owns a handoff carries the actions out and hands back facts. What
// each phase makes of a fact is in step.go; what becomes of a lost start is in its reconciling.
//
// It must not know time, threads, servers or the store: a fact says all that counts. Every reachable state
// and fact is in testdata/phases.golden.
package phase
