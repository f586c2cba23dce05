// Package simulator simulates agents of the Agent Client Protocol, with the peculiarities of real ones that a [Profile]
// lists. The work of an agent is scripted with the steps of servers/simulator.
//
// It must not know the client: it reads and writes lines. Several processes share one [World], as real ones share a
// disk.
package simulator
