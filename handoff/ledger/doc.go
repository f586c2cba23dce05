// Package ledger decides which transitions are valid in the store of handoffs: one table of edges, which Go, Redis and
// SQLite all use. It declares the [Ledger] that the stores implement, the entry of an open handoff, and the [History]
// of those that are over.
//
// It must not know a store, a server or a call. Owners are only names here.
package ledger
