package sessionstest

import (
	"slices"
	"testing"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// A Takeover is one store in two lives: the latter was opened when the former had lost what kept others out, and
// the former does not know.
type Takeover struct {
	Former ledger.Ledger
	Latter func(t *testing.T) (l ledger.Ledger, end func()) // opens it, once
}

// TestFence: from when another life has the store, a step of the former one is refused, whatever it is of and
// also when the latter has ended meanwhile.
func TestFence(t *testing.T, open func(t *testing.T) Takeover) {
	over := open(t)
	walk := func(l ledger.Ledger, key string, to handoff.Status) (e ledger.Entry) {
		for _, status := range ledgerPath[:slices.Index(ledgerPath, to)+1] {
			var err error
			if e, err = l.Advance(t.Context(), LedgerStep(key, "a", status)); err != nil {
				t.Fatalf("%s to %s: %v", key, status, err)
			}
		}
		return e
	}
	before := []ledger.Entry{
		walk(over.Former, "k1", handoff.StatusAccepted), walk(over.Former, "k2", handoff.StatusDispatching),
		walk(over.Former, "k3", handoff.StatusStarted), walk(over.Former, "k4", handoff.StatusCompleted),
	}
	latter, end := over.Latter(t)
	opened(t, latter, before...)
	before = append(before, walk(latter, "k5", handoff.StatusAccepted))
	refused := func() {
		t.Helper()
		again := LedgerStep("k2", "a", handoff.StatusDispatching)
		again.Attempt = 2
		made := LedgerStep("k6", "a", handoff.StatusCompleted) // of what was never in the ledger
		made.New = true
		for _, s := range []ledger.Step{
			LedgerStep("k6", "a", handoff.StatusAccepted), LedgerStep("k6", "a", handoff.StatusDispatching), made,
			LedgerStep("k1", "a", handoff.StatusDispatching), again, LedgerStep("k2", "a", handoff.StatusStarted),
			LedgerStep("k3", "a", handoff.StatusCompleted), LedgerStep("k4", "a", handoff.StatusDelivered),
			LedgerStep("k1", "a", handoff.StatusAccepted), // as it was written before
			LedgerStep("k5", "a", ""),
		} {
			if _, err := over.Former.Advance(t.Context(), s); err == nil || handoff.AsError(err).Code != handoff.CodeShutdown {
				t.Errorf("the former life wrote %s to %q: %v", s.Key, s.To, err)
			}
		}
	}
	refused()
	opened(t, latter, before...)
	end()
	refused()
}
