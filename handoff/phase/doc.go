// Package phase is the life of one handoff as a pure state machine: [State.Step] takes a [Fact] and returns the next
// state and the actions that follow. The handoff carries the actions out and returns facts. How each phase handles a
// fact is in step.go.
//
// A start counts as lost when its connection is lost, or, with codex, when no answer came within startTimeout
// (servers/codex/client.go). Then the router asks the server whether it ran ([handoff.Reconciler]), until it gets an
// answer (router/run_watch.go, router/agents.go). What follows from the answer is decided here, in reconciling.
//
// It must not know time, threads, servers or the store: a fact has all that matters. Every reachable state and fact is
// in testdata/phases.golden.
package phase
