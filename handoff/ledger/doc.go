// Package ledger is what a store keeps of a caller: the [Entry] of a handoff as its document, the current threads, the
// rows of the [History], and the [Batch] in which they change. A store decides nothing about them.
//
// It must not know a store, a server or a call.
package ledger
