// Package simulator is a simulated voice model: it speaks OpenAI's GA Realtime protocol over WebSocket, and over WebRTC
// if it is given an [Answer]. It understands typed sentences about machines and sessions, calls the tools of its
// session, and says what they answer. It runs when no voice model is configured; tests script it.
//
// Its sound has no words: it sends near-silent frames for as long as its words would take, and notices that somebody
// speaks, but not what they say.
//
// It must not know the router, servers or the page: it decides from the conversation and the session's
// tools alone, as a model would. It uses gorilla.
//
// The protocol's state ([session] and what it owns) is pure: it is given events with the time at which they came, and
// leaves the events to send. Each connection has one goroutine that owns it, one that reads the socket or the browser,
// and one that writes to it.
package simulator
