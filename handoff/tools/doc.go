// Package tools is what the voice model can call: names, descriptions, schemas, arguments, and the results
// of those that look around, as JSON below its limit.
//
// It must not know a router, a call or HTTP.
package tools
