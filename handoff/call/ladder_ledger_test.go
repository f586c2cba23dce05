package call

import (
	"context"
	"slices"
	"strings"

	"switchboard/handoff"
)

// Notify records what is told outside of calls.
func (w *world) Notify(n handoff.Notice) {
	w.record("page", "notice", string(n.Kind)+" "+n.Handoff+" "+n.Text)
}

// Audit records decisions before they are given.
func (w *world) Audit(ctx context.Context, rec handoff.AuditRecord) error {
	if err := w.World.Audit(ctx, rec); err != nil {
		return err
	}
	w.record("agent", "audit", strings.TrimSpace(string(rec.Decision)+" by "+rec.By+" "+rec.Tier))
	return nil
}

// inLedger tells how the ledger stands at the end.
func (w *world) inLedger() string {
	var out []string
	for _, e := range w.ledger.Entries() {
		out = append(out, strings.TrimSpace(e.ClientID+" "+string(e.Status)+" "+string(e.Outcome)))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
