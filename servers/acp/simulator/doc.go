// Package simulator plays agents of the Agent Client Protocol, with the odd cases that real ones have: a [Profile] says
// which. What an agent does is scripted with the steps of the simulated machines.
//
// It must not know the client: what it reads and writes are lines. Several processes share one [World], as real ones
// share a disk.
package simulator
