// Package tools is the one table of what can be asked of Switchboard: each tool's name, description, schema, typed
// arguments with their bounds, what it does, and its typed result with a limit. The voice, the fleet's HTTP API and
// other fronts mount the same table.
//
// A front does four things with a tool call:
//
//	tool, err := tools.Find(grant, name)        // for a grant that lacks a tool there is none
//	args, err := tool.Parse(raw)                // the error names what is wrong with the arguments
//	result, err := args.Do(ctx, backend, front, grant)
//	tool.Bounded(result)                        // as JSON and as Text, each complete by itself
//
// [Tool.ReadOnly] says that a tool changes nothing, [Tool.InCall] that it is about a voice call and offered nowhere
// else, and [Tool.Slow] that Do itself may take seconds, so that a loop which must not wait calls it in a goroutine.
// Errors are [*handoff.Error]: their Spoken sentence and the Next of their Meaning are meant for whoever asked.
//
// [Backend] holds what all fronts share. A [Front] is what differs between them, for one request: how work is begun and
// how long is waited for it, how an answer to an agent counts, and who is told of a level. [Direct] is the front of a
// program that waits for its answer; a voice call brings its own, which answers later.
//
// That the same request is one piece of work is held by [handoff.Request.Key], and the front gives the key: [Direct]
// does so in Complete. Who stops waiting, or goes away, never stops work. An outcome that is given on counts as told
// only when the front says so with [handoff.Runs.Heard].
//
// It must not know a router, a call or HTTP: it declares interfaces for what it needs from them.
package tools
