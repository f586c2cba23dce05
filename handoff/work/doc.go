// Package work is all that is known of one caller as one state: their handoffs, the sessions that they use, the
// questions of their agents, the outcomes that nobody heard, and what the store has of all that. [State.Step] takes an
// event, decides, and returns effects: what is to be done with agents and with the store. What came of an effect is the
// next event. Nothing else decides about a caller's work.
//
// The promises that hold of it are named in [Promises], each with the proof that holds it from outside; a test finds
// each proof. A proof in testdata/ladders of package call is named by its file.
//
// It must not know a store, a server, a call or a clock, nor wait for anything. Listeners and pages are told at once:
// they take what they are given, and never call back.
//
// # The life of a handoff
//
// Which phase follows which is decided by package phase. [State.asked] makes a handoff, [State.apply] moves it by a
// fact, and end.go gives it its outcome. A slow action is a [Job]: a handoff has one at a time, and what comes of a job
// that was replaced is void.
//
// # The store
//
// A handoff is one document, which is written whole whenever it has changed. One batch is on its way at a time; what
// changed meanwhile goes with a later one. What depends on the store waits for the acknowledgement of its batch: the
// promise that the words will be sent, the start of a turn, and for a second the telling of an outcome. A batch that
// meets another version than it was decided from shows that the store has lost what it had: then everything is written
// again.
package work
