package sessionstest

import (
	"errors"
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

// TestFence: after a later life has opened the store, every batch of the former life and all its other writes for
// callers are refused, also after the later life has ended.
func TestFence(t *testing.T, open func(t *testing.T) Takeover) {
	over := open(t)
	first := Put("k1", "k2")
	first.Now = "1"
	comesTo(t, over.Former, first, ledger.Written)
	kept := sessions.Document{Owner: owner, ID: "kept", Body: []byte("kept"), Ends: time.Now().Add(time.Hour)}
	line := sessions.Said{ID: "kept", At: time.Now(), Who: "you", Text: "kept"}
	Must(t, over.Former.PutDocument(t.Context(), kept))
	Must(t, over.Former.AddSaid(t.Context(), owner, []sessions.Said{line}))
	latter, end := over.Latter(t)
	WantOpen(t, latter, "k1", "k2")
	write(t, latter, owner, Put("k3"))
	now, err := latter.State(t.Context(), owner)
	Must(t, err)
	refused := func() {
		t.Helper()
		for what, b := range map[string]ledger.Batch{
			"a promise": Put("k4"), "what is over": Over(since, Entry("k1")), "no documents": {Drop: []string{"handoff:k1"}},
			"nothing": {}, "what it wrote before": first,
		} {
			for _, b.Was = range []string{"", "1", now.Version} {
				if _, err := over.Former.Commit(t.Context(), owner, b); handoff.CodeOf(err) != handoff.CodeShutdown {
					t.Errorf("the former life wrote %s after %q: %v", what, b.Was, err)
				}
			}
		}
		another, more := kept, line
		another.ID, more.ID = "another", "another"
		_, errDrop := over.Former.DropDocument(t.Context(), owner, kept.ID)
		for what, err := range map[string]error{
			"a document": over.Former.PutDocument(t.Context(), another), "no document": errDrop,
			"a line":   over.Former.AddSaid(t.Context(), owner, []sessions.Said{more}),
			"no lines": over.Former.DropSaid(t.Context(), owner),
		} {
			if handoff.CodeOf(err) != handoff.CodeShutdown {
				t.Errorf("the former life wrote %s: %v", what, err)
			}
		}
	}
	refused()
	WantOpen(t, latter, "k1", "k2", "k3")
	said, errSaid := latter.Said(t.Context(), owner, sessions.SaidQuery{})
	_, there, errKept := latter.Document(t.Context(), owner, "kept")
	_, made, errMade := latter.Document(t.Context(), owner, "another")
	Must(t, errors.Join(errSaid, errKept, errMade))
	if len(said.Lines) != 1 || said.Lines[0].ID != "kept" || !there || made {
		t.Errorf("what is kept has changed: %v, %v, %v", said.Lines, there, made)
	}
	end()
	refused()
}
