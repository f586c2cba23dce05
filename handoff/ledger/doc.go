// Package ledger decides which transitions are valid in the store of handoffs: one table of edges, which Go, Redis
// and SQLite all use. It declares the [Ledger] that the stores implement, and what is kept of a handoff
// while it is open and after it has become [History].
//
// It must not know a store, a server or a call. To it, owners are only names.
package ledger
