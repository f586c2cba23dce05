// Package ledger decides what may follow what in the store of handoffs: one table of edges, which Go, Redis
// and SQLite all use. It declares the [Ledger] that the stores implement, and what is kept of a handoff
// while it is open and when it is [History].
//
// It must not know a store, a server or a call. Owners are names; who they are does not matter.
package ledger
