// Package responses serves the fleet as OpenAI's Responses API: a server, or one of its projects, is a model, and a
// response is a handoff there. It is a front over [handoff.Handoffs], like voice calls, with the same ledger, rights,
// questions and outbox, so that an SDK can continue work that was begun by voice, and the other way round.
//
// It must not know calls, servers or how a handoff is carried out. What an agent does itself is shown as mcp_call,
// never as function_call, which SDKs would try to run.
//
// # Concurrency
//
// An [API] is safe for concurrent use. Each open response has one goroutine, which alone follows its handoff and writes
// its events ([emitter]); requests read the events from a bounded log. The goroutine outlives the request that began
// the response, and ends with [API.Run].
//
// # Failure
//
// Errors before the first byte are HTTP answers with {"error": {…}} and OpenAI's codes; later errors are the event
// response.failed. The room for a response is reserved before its handoff begins: what is refused began nothing. A
// response is stored before it is shown, and again when it ends. If the process is killed in between, the response is
// made of what the ledger knows of its handoff. Which requests are the same is known by the router: a response has the
// name of its handoff, so a repeated request gets the same response. Only before the router knows a request, equal ones
// wait for it here ([makings]).
package responses
