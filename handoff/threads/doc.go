// Package threads decides which steps are valid in the threads of agents that Switchboard runs itself: who may begin a
// turn and where (claims), when a thread is copied instead (forks), and whose writes still count (fences). It declares
// the [Store] that keeps threads, and has a store in memory for threads that must leave nothing behind.
//
// A store reads a [View], asks [Decide], and writes the [Change] that it gets, whole or not at all. So all stores
// decide alike.
//
// It must not know how a store works, a model or what items mean: an item is JSON that only its writer reads.
package threads
