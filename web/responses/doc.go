// Package responses shows the fleet as OpenAI's Responses API: a server, or one of its projects, is a model, and a
// response is a run of it. It is a front over [handoff.Runs] as a voice call is one, with the same ledger, rights,
// questions and outbox, so that work begun by voice goes on from an SDK, and the other way round.
//
// It must not know calls, servers or how a run is carried out. What an agent does itself is shown as mcp_call, never
// as function_call: SDKs would try to run that.
//
// # Concurrency
//
// An [API] is safe for concurrent use. Each open response has one goroutine; only that goroutine follows its run and
// writes its events ([emitter]). Readers of the response read them from a bounded log. It outlives the request
// that began it, and ends with [API.Run].
//
// # Failure
//
// Errors before the first byte are HTTP answers with {"error": {…}} and OpenAI's codes; after it they are
// response.failed. A stored response is written before it is shown and again when it ends; if the process is
// killed in between, whoever asks for it gets what the ledger knows of its run. A request that is sent again under
// its key gets the same response under the same id, also when its run never began and begins now.
package responses
