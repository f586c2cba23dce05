// Package ledgertest checks traces: given what was sent to a ledger, to agents and to callers, it says where
// a promise was broken, such as a turn that was started twice or an outcome that was told twice.
// A [Search] visits every state of a model of such promises.
//
// It must not know how the trace came about.
package ledgertest
