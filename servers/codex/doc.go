// Package codex talks to one Codex app-server: JSON-RPC over whatever transport reaches it.
//
// It implements [servers.Dial]: it attaches, lists and reads threads, starts turns in them, and follows, steers and
// interrupts these. If the acknowledgement of a start is lost, reconcile.go finds out whether the turn ran.
//
// It must not know voice, calls, callers or other servers. It is never a raw proxy: only the methods of [client] can be
// sent.
//
// # Layers
//
// A [servers.Wire] moves whole frames. A peer is JSON-RPC on a wire: it matches responses to requests. A client is the
// closed set of methods. A [connection] routes the server's messages to threads. A thread sorts them by turn and keeps
// the updates for followers, by the reducer and buffer of [turns]. Classification and policy are pure.
//
// # Concurrency
//
// A connection has one reader and one writer. The reader sorts frames into bounded buffers and never waits, so that a
// slow follower cannot make the server queue. Results that depend on the order of frames (a resumed thread's snapshot,
// the id of a started turn) are applied by the reader itself, before it reads the next frame.
//
// # Facts
//
// Protocol facts are those of codex 0.169.0, from its generated schema and from recorded transcripts
// (testdata).
package codex
