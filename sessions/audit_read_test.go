package sessions_test

import (
	"testing"

	"switchboard/handoff"
)

// Who reads their decisions gets the newest first and nobody else's.
func TestAuditDecisions(t *testing.T) {
	dir := t.TempDir()
	writeAudit(t, dir, 3)
	a := openAudit(t, dir)
	other := auditRecord(9)
	other.Who = "somebody"
	if err := a.Audit(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	got, err := a.Decisions(handoff.Caller{Principal: "owner"}, 2)
	if err != nil || len(got) != 2 || got[0] != auditRecord(2) || got[1] != auditRecord(1) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := a.Decisions(handoff.Caller{Principal: "nobody"}, 2); err != nil || len(got) != 0 {
		t.Errorf("of nobody: %+v, %v", got, err)
	}
}
