// Package tools has the one table of Switchboard's tools: each tool's name, description, schema, typed arguments with
// their bounds, what it does, and its typed result with a limit. A voice call and MCP look up every tool in it; the
// fleet's HTTP API calls the Do of the typed arguments directly.
//
// A front does four things with a tool call:
//
//	tool, err := tools.Find(grant, name)        // a tool that the grant lacks is not found
//	args, err := tool.Parse(raw)                // the error says what is wrong with the arguments
//	result, err := args.Do(ctx, backend, front, grant)
//	tool.Bounded(result)                        // within the tool's limit: its JSON and its Text are each complete
//
// [handoff.Tool]'s ReadOnly says that a tool changes nothing, [Tool.InCall] that it is about a voice call and offered
// nowhere else, and [Tool.Slow] that Do may take seconds: a loop that must not wait calls it in a goroutine. Errors are
// [*handoff.Error]: their Spoken sentence and their NextStep are for the caller, or for the model that asks.
//
// [Backend] has what all fronts share. A [Front] has what differs between them, for one request: how work is begun and
// how long the front waits for it, how an answer to an agent counts, and where a speech level is set. [Direct] is the
// front of a program that waits for its answer; a voice call has its own front, which answers later.
//
// The front gives each request a key ([handoff.Request.Key]; [Direct] by Complete), so that a repeated request is the
// same work. A front that stops waiting, or goes away, never stops work. An outcome counts as told once the front calls
// [handoff.Handoffs.Heard]. A new front is a package such as web/mcp; the doc of package web says how it is mounted. A
// front that gets no requests, such as a program that polls a service for messages, is a stage in
// cmd/switchboard/service.go, and makes the [handoff.Grant] of each person itself, from its settings. Either gets its
// Backend from the function backend there, and needs a row in the import table
// (cmd/switchboard/hygiene_imports_test.go).
//
// It must not know a router, a call or HTTP: it declares interfaces for what it needs from them.
package tools
