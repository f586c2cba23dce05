package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/sessions"
)

// TestAuditVerb reads the audit with the verb: before there is one, beside what appends to it, and after a line
// was changed.
func TestAuditVerb(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	env := func(name string) string { return map[string]string{"XDG_STATE_HOME": base}[name] }
	verify := func(wantCode int, want string) {
		t.Helper()
		var out, wrong strings.Builder
		if code := run(t.Context(), []string{"audit"}, env, &out, &wrong); code != wantCode || !strings.Contains(out.String()+wrong.String(), want) {
			t.Errorf("%d, %q, %q; want %d, %q", code, out.String(), wrong.String(), wantCode, want)
		}
	}
	verify(0, "no decisions yet")
	dir := filepath.Join(base, "switchboard")
	a, err := sessions.OpenAudit(dir)
	must(t, err)
	for _, who := range []string{"owner", "guest", "owner"} {
		must(t, a.Audit(t.Context(), handoff.AuditRecord{Who: who, Decision: "accept"}))
	}
	verify(0, "decisions 1 to 3 are as they were written")
	must(t, a.Close())
	file := filepath.Join(dir, "audit.jsonl")
	data, err := os.ReadFile(file)
	must(t, err)
	write(t, file, strings.Replace(string(data), "guest", "owner", 1))
	verify(exitFailed, "audit.jsonl: line 2 was changed")
}
