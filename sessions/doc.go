// Package sessions is what the two stores share. A store remembers what outlives a call: the current threads of
// callers, so that "go on there" still means the same thread tomorrow; their open handoffs, so that nothing is lost or
// done twice when a process dies; the history of what was heard; and the logins of the page. The stores are package
// redis and package sqlite below it. This package says how callers and pages of history are written down, and owns the
// state directory with its lock. An [Audit] keeps the decisions of people for good, in files of its own.
//
// A store keeps two things and decides nothing about them. [Callers] and [Pages] keep the state of each caller as
// documents, with the texts and the past of their work; [Archive] is the history over them. [Values] keeps what belongs
// to no caller, each value by kind and name; [Keyed] is the logins, machines, programs and records over them. Something
// new becomes a document or a value, and needs no change in a store. A [Document] holds data that a front keeps for a
// caller.
//
// It must not know voice, servers or HTTP: it only remembers what the router tells it, in the words of package
// handoff.
//
// # What a store promises
//
// It is safe for concurrent use. What it acknowledged survives the end of the process, however the process ends. A
// batch of a caller is written whole or not at all, if the state is still the one that it was decided from; so
// repeating it is safe. A store that cannot write at the moment returns an error with code unreachable. One process at
// a time uses a store; a second one gets an error that names the first. Data that cannot be read is an error, never an
// empty store.
package sessions
