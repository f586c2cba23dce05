// Package sessions remembers what outlives a call: the sticky threads of callers, so that "go on there"
// still means the same thread tomorrow, and the ledger of handoffs, so that nothing is lost or done twice
// when a process dies. There is one implementation, on Redis. Without a Redis URL an embedded Redis serves
// inside the process and keeps itself in a snapshot file of the state directory. An [Audit] keeps the
// decisions of people for good, in a file of its own.
//
// It must not know voice, servers or HTTP: it only remembers what the router tells it, in the words of
// package handoff.
//
// # Concurrency
//
// A [Store] is safe for concurrent use. Every change that takes more than one command is one Lua script,
// so that no other client sees half of it. The Redis client never repeats a command: a repeated command
// whose first answer was lost may count twice. A step of the ledger may be repeated by who asked for it.
//
// # Failure
//
// A real Redis that does not answer gives errors with code unreachable within seconds, the ledger within
// one second, and works again when it is back. One that answers and takes nothing, because it is full or
// has become a replica, counts as one that does not answer. The embedded one is never away: a busy machine
// only makes it slow, so it is waited for. One process at a time uses a store: the embedded one is held by a lock on the
// state directory, a real Redis by a lease. A snapshot that cannot be read is an error, never an empty store.
package sessions
