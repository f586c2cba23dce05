package ledgertest

import (
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// Statuses are the statuses of an entry, in order; the first means that there is no entry.
var Statuses = []handoff.Status{
	"", handoff.StatusAccepted, handoff.StatusDispatching, handoff.StatusStarted, handoff.StatusCompleted,
	handoff.StatusDelivered,
}

// StepTo returns a valid step of an owner to a status, for the entry "key"; to "" it adopts the entry.
func StepTo(owner string, to handoff.Status) ledger.Step {
	s := ledger.Step{
		Key: "key", Caller: handoff.Caller{Principal: "owner"}, Owner: owner, Args: "args", To: to,
		At: time.Date(2026, 5, 4, 12, 30, 15, 123456789, time.UTC),
	}
	switch to {
	case "":
		s.Adopt = true
	case handoff.StatusAccepted:
		s.New = true
	case handoff.StatusDispatching:
		s.Attempt = 1
		s.Set = ledger.Facts{ClientID: "key", Target: handoff.Target{Server: "bigpc", Thread: "t1"}, Watermark: "w"}
	case handoff.StatusStarted:
		s.Set.Turn = "turn-1"
	case handoff.StatusCompleted:
		s.Set.Outcome = handoff.OutcomeUnknown
	}
	return s
}
