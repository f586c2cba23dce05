package sessionstest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

// A Takeover is one store in two lives. The latter life is opened after the former one has lost its lock or lease
// without noticing.
type Takeover struct {
	Former Store
	Latter func(t *testing.T) (s Store, end func()) // opens the latter life; called once
}

// TestFence: after a later life has opened the store, every step of the former life and all its other writes for
// callers are refused, also after the later life has ended.
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
	c := handoff.Caller{Principal: "owner"}
	kept := sessions.Document{Owner: c, ID: "kept", Body: []byte("kept"), Ends: time.Now().Add(time.Hour)}
	sticky := handoff.Sticky{Target: handoff.Target{Server: "s", Thread: "kept"}, Since: time.Now().UTC()}
	line := sessions.Said{ID: "kept", At: time.Now(), Who: "you", Text: "kept"}
	Must(t, over.Former.PutDocument(t.Context(), kept))
	Must(t, over.Former.Set(t.Context(), c, sticky))
	Must(t, over.Former.AddSaid(t.Context(), c, []sessions.Said{line}))
	latter, end := over.Latter(t)
	opened(t, latter, before...)
	before = append(before, walk(latter, "k5", handoff.StatusAccepted))
	refused := func() {
		t.Helper()
		again := LedgerStep("k2", "a", handoff.StatusDispatching)
		again.Attempt = 2
		made := LedgerStep("k6", "a", handoff.StatusCompleted) // an entry that was never in the ledger
		made.New = true
		for _, s := range []ledger.Step{
			LedgerStep("k6", "a", handoff.StatusAccepted), LedgerStep("k6", "a", handoff.StatusDispatching), made,
			LedgerStep("k1", "a", handoff.StatusDispatching), again, LedgerStep("k2", "a", handoff.StatusStarted),
			LedgerStep("k3", "a", handoff.StatusCompleted), LedgerStep("k4", "a", handoff.StatusDelivered),
			LedgerStep("k1", "a", handoff.StatusAccepted), // as it was written before
			LedgerStep("k5", "a", ""),
		} {
			if _, err := over.Former.Advance(t.Context(), s); handoff.CodeOf(err) != handoff.CodeShutdown {
				t.Errorf("the former life wrote %s to %q: %v", s.Key, s.To, err)
			}
		}
	}
	others := func() {
		t.Helper()
		another, other, more := kept, sticky, line
		another.ID, other.Target.Server, more.ID = "another", "another", "another"
		_, errDrop := over.Former.DropDocument(t.Context(), c, kept.ID)
		for what, err := range map[string]error{
			"a document": over.Former.PutDocument(t.Context(), another), "no document": errDrop,
			"a sticky thread": over.Former.Set(t.Context(), c, other), "no sticky thread": over.Former.Clear(t.Context(), c,
				sticky.Target),
			"a line":   over.Former.AddSaid(t.Context(), c, []sessions.Said{more}),
			"no lines": over.Former.DropSaid(t.Context(), c),
		} {
			if handoff.CodeOf(err) != handoff.CodeShutdown {
				t.Errorf("the former life wrote %s: %v", what, err)
			}
		}
	}
	refused()
	others()
	opened(t, latter, before...)
	list, errList := latter.List(t.Context(), c)
	said, errSaid := latter.Said(t.Context(), c, sessions.SaidQuery{})
	_, there, errKept := latter.Document(t.Context(), c, "kept")
	_, made, errMade := latter.Document(t.Context(), c, "another")
	Must(t, errors.Join(errList, errSaid, errKept, errMade))
	if len(list) != 1 || list[0] != sticky || len(said.Lines) != 1 || said.Lines[0].ID != "kept" || !there || made {
		t.Errorf("what is kept has changed: %v, %v, %v, %v", list, said.Lines, there, made)
	}
	end()
	refused()
	others()
}
