// Package ledger decides which transitions of a stored handoff are valid, by one table of edges; a store decides none.
// It declares the [Ledger] that package sessions implements over every store, the entry of an open handoff, and the
// [History] of those that are over.
//
// It must not know a store, a server or a call. Owners are only names here.
package ledger
