// Package simulator is a voice model without a model: it speaks OpenAI's GA Realtime protocol over WebSocket, and over
// WebRTC where somebody answers browsers for it. It understands typed sentences about machines and sessions, calls the
// tools that its session has, and says what they answer. It runs when no voice model is configured; tests script it.
//
// Sound is real on the wire and empty inside: it sends near-silent frames for as long as its words would
// take, and hears that somebody speaks, not what they say.
//
// It must not know the router, servers or the page: it decides from the conversation and the session's
// tools alone, as a model would. It uses gorilla.
//
// The protocol's state ([session] and what it owns) is pure: it gets events with the time they came and
// leaves events to send. Each connection has one goroutine that owns it, one that reads the
// socket or the browser, and one that writes it.
package simulator
