// Package responses has the agents that Switchboard runs itself, on any API that is compatible with OpenAI's
// Responses. A [Server] is one configured agent: it sends a model the words of a person and the tools of a workspace,
// runs the tools that the model calls, and goes on until the model has its answer. Its turns run in [Server.Run], so
// they outlive connections.
//
// Pure functions decide what a request sends ([plan] and the request made from it), what is kept when the context is
// full, and what the stream of an answer means.
//
// It must not know voice, nor another kind of server.
package responses
