package handoff

import (
	"errors"
	"strings"
	"testing"
)

// TestStoreDown: the error says which of the reasons it was and what to do about that one, and its detail where.
func TestStoreDown(t *testing.T) {
	nexts := map[string]bool{}
	for why := range storeNext {
		e := StoreDown(StoreFault("Redis at 10.0.0.5:6379", why, "refused"))
		if again := StoreDown(e); again != e {
			t.Errorf("%s: it is wrapped in %v", why, again)
		}
		if e.Code != CodeStoreDown || !strings.HasSuffix(e.Spoken(), "did nothing: "+why+".") ||
			e.Detail != "Redis at 10.0.0.5:6379: refused" || strings.Contains(e.Spoken()+e.NextStep(), "6379") {
			t.Errorf("%s: %q, %q, %q", why, e.Spoken(), e.NextStep(), e.Detail)
		}
		nexts[e.NextStep()] = true
	}
	if len(nexts) != len(storeNext) {
		t.Errorf("%d reasons have %d next steps", len(storeNext), len(nexts))
	}
	for _, e := range []*Error{
		Fault(CodeStoreDown, "", ""), StoreDown(errors.New("EOF")), StoreDown(Fault(CodeUnreachable, "bigpc", "")),
	} {
		if !strings.Contains(e.Spoken(), WhyStoreAway) || e.NextStep() != storeNext[WhyStoreAway] {
			t.Errorf("%v says %q, %q", e, e.Spoken(), e.NextStep())
		}
	}
}
