package handoff

import "strings"

// Reasons why the store cannot be used. They are said after the phrase of [CodeStoreDown].
const (
	WhyStoreAway    = "my store does not answer"
	WhyStoreCopy    = "the replica of my store does not confirm what is written"
	WhyStoreFull    = "my store is full"
	WhyStoreLocked  = "another program has locked my store"
	WhyStoreClosed  = "my store takes no writes"
	WhyStoreReading = "what was done before is still being read"
	WhyStoreAudit   = "my audit takes no writes"
)

// storeNext says for each reason what to do. Set once.
var storeNext = map[string]string{
	WhyStoreAway: "Look whether the store runs and can be reached; work that runs goes on.",
	WhyStoreCopy: "Look at the replica. After a few seconds without it, work is taken all the same; work that runs " +
		"goes on.",
	WhyStoreFull:    "Make room there: on the disk, or in the memory of the Redis. Work that runs goes on.",
	WhyStoreLocked:  "End that program, or wait for it; work that runs goes on.",
	WhyStoreClosed:  "Look at the disk and the state of the store; work that runs goes on.",
	WhyStoreReading: "Try again in a moment; work that runs goes on.",
	WhyStoreAudit:   "Look at audit.jsonl in the state directory, and at its disk. A no counts all the same.",
}

// StoreFault returns the error of a store at a place that cannot be used now, for one of the reasons of [WhyStoreAway].
func StoreFault(where, why, detail string) *Error {
	return &Error{Code: CodeUnreachable, Subject: where, Why: why, Detail: detail, Next: storeNext[why]}
}

// StoreDown returns the error with [CodeStoreDown] about what a store, or what waits for it, returned.
func StoreDown(err error) *Error {
	cause := AsError(err)
	if cause.Code == CodeStoreDown {
		return cause
	}
	why := WhyStoreAway
	if storeNext[cause.Why] != "" {
		why = cause.Why
	}
	return Fault(CodeStoreDown, why, strings.Trim(cause.Subject+": "+cause.Detail, ": "))
}
