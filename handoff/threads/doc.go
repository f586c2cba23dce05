// Package threads decides what may follow what in the threads of agents that Switchboard runs itself: who may begin
// a turn and where (claims), when a thread is copied instead (forks), and whose writes still count (fences and
// leases). It declares the [Store] that keeps threads, and has one in memory, which is what threads that must leave
// nothing behind are kept in.
//
// A store reads a [View], asks [Decide], and writes the [Change] that it gets, all or nothing. So every store decides
// alike.
//
// It must not know a store's technique, a model or what items mean: an item is JSON that only its writer reads.
package threads
