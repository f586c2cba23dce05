// Package simulator is a small world of simulated agent servers that speak the Codex app-server protocol
// on loopback. It is what runs when no server is configured, and what tests script.
//
// It speaks JSON-RPC over WebSocket as codex 0.169 does: the order of notifications, who receives what,
// and the texts of errors were taken from recorded conversations with it. What a client of the real one
// must survive (a connection cut after a start was received, approvals replayed on resume, a start on a
// busy thread that becomes a steer) it meets here too.
//
// The agent itself is no model: what it does for a prompt is a plan ([Step]s), made by a pure function of
// the world's state, or by a test. It must not know who dials it, and it never leaves the process.
package simulator
