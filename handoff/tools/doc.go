// Package tools is the one table of what can be asked of Switchboard: each tool's name, description, schema,
// typed arguments with their bounds, typed result with its limit, whether it only reads, and what it does if it
// needs no call for that. The voice, the fleet's HTTP API and other fronts mount the same table.
//
// It must not know a router, a call or HTTP: it declares interfaces for what it needs from them.
package tools
