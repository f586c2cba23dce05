// Package sessions is what the stores share that remember what outlives a call: how callers, sticky threads
// and pages of history are written down, the state directory and who holds it, and the logins of the page.
// The stores are package redis and package sqlite below it; both keep the sticky threads of callers, so that
// "go on there" still means the same thread tomorrow, the ledger of handoffs, so that nothing is lost or done
// twice when a process dies, and the history of what was heard. An [Audit] keeps the decisions of people for
// good, in a file of its own.
//
// What all instances share is a [Record] of a kind of its own, and what a front keeps for a caller is a [Document]: a
// new one needs no change in a store. Anything else is an interface here, both stores, their suite (sessionstest) and a
// line in cmd/switchboard/store.go.
//
// It must not know voice, servers or HTTP: it only remembers what the router tells it, in the words of
// package handoff.
//
// # What a store promises
//
// It is safe for concurrent use. What it acknowledged survives the end of the process, however that comes. A
// step of the ledger is decided by the table of package ledger and is written whole or not at all; repeating
// it is safe. A store that cannot take something now gives an error with code unreachable. One process at a
// time uses a store; a second one is told who has it. What cannot be read is an error, never an empty store.
package sessions
