// Package ledgertest checks traces of what was sent to a ledger, to agents and to callers: it finds broken promises,
// such as a turn that was started twice or an outcome that was told twice. A [Search] visits every state of a model.
//
// It must not know how a trace was made.
package ledgertest
