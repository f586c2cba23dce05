// Package responses is the kind of agents that Switchboard runs itself, on any API that is compatible with OpenAI's
// Responses. A [Server] is one configured agent: it gives a model the words and the tools of a workspace, runs the
// tools that the model calls, and goes on until the model has its answer. Its turns run in [Server.Run], which
// outlives connections.
//
// Pure functions decide what the model is asked ([plan] and the request made from it), what is kept when the context
// is full, and what the stream of an answer means.
//
// It must not know voice, nor another kind of server.
package responses
