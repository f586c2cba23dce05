// Package tools is the one table of what can be asked of Switchboard: each tool's name, description, schema,
// typed arguments with their bounds, typed result with its limit, whether it only reads, and what it does where
// that needs no call. The voice, the fleet's HTTP API and whatever comes later mount the same table.
//
// It must not know a router, a call or HTTP: it declares what it needs of them.
package tools
