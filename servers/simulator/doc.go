// Package simulator is a small world of simulated agent servers that speak the Codex app-server protocol on loopback.
// It runs when no server is configured, and tests script it.
//
// It speaks JSON-RPC over WebSocket as codex 0.169 does: the order of notifications, their receivers, and the texts of
// errors were taken from recorded conversations. It can also do what a client of the real one must survive: cut a
// connection after it received a start, replay approvals on resume, or turn a start on a busy thread into a steer.
//
// The agent is no model: for a prompt it follows steps ([Step]), which are made by a pure function of the state of a
// [Session], or by a test. A [Work] does the steps, in any protocol: the simulators of other kinds of agents use it as
// the app-server here does, and only say in their protocol what happens. The package must not know who dials it, and
// it never leaves the process.
package simulator
