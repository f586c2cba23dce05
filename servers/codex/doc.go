// Package codex talks to one Codex app-server: JSON-RPC over whatever transport reaches it.
//
// It implements [servers.Dial]: it attaches, lists and reads threads, gives them turns, and follows, steers and
// interrupts these. How it finds out whether a start ran whose acknowledgement was lost is in reconcile.go.
//
// It must not know voice, calls, callers or other servers, and it is never a raw proxy: the methods of [client] are
// all that can be sent.
//
// # Layers
//
// A [servers.Wire] moves whole frames. A peer is JSON-RPC on a wire: it matches responses to requests. A client is the
// closed set of methods. A [connection] routes what the server says to threads; each thread sorts it by turn and keeps
// it for whoever follows, with the bookkeeping of [turns]. Classification and policy are pure.
//
// # Concurrency
//
// A connection has one reader and one writer. The reader sorts frames into bounded buffers and never waits
// for anybody, so a slow follower cannot make the server queue. What depends on the order of frames (a
// resumed thread's snapshot, the id of a started turn) is taken over by the reader itself, before it reads
// the next frame.
//
// # Facts
//
// Protocol facts are those of codex 0.169.0, from its generated schema and from recorded transcripts
// (testdata).
package codex
