package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/handoff"
	"switchboard/handoff/homes"
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

// TestAuditsOfSeveral reads the audits of two instances: each is a chain of its own, one that was changed is named and
// the other is read all the same, and what they decided is in one order.
func TestAuditsOfSeveral(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dirs := []string{filepath.Join(base, "a"), filepath.Join(base, "b")}
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for i, dir := range dirs {
		a, err := sessions.OpenAudit(dir)
		must(t, err)
		by := homes.AuditOf(a, "instance-"+filepath.Base(dir), int64(7+i))
		for n := range 2 {
			must(t, by.Audit(t.Context(), handoff.AuditRecord{Who: "owner", Server: "bigpc", Decision: "accept", By: "page",
				At: at.Add(time.Duration(2*n+i) * time.Minute)}))
		}
		must(t, a.Close())
	}
	verb := func() (int, string) {
		var out strings.Builder
		code := run(t.Context(), append([]string{"audit", "--show"}, dirs...), func(name string) string {
			return map[string]string{"XDG_STATE_HOME": base}[name]
		}, &out, &out)
		return code, out.String()
	}
	code, text := verb()
	if code != 0 {
		t.Fatal(code, text)
	}
	var got []string
	for line := range strings.Lines(text) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		dirs[0] + ": decisions 1 to 2 are as they were written", dirs[1] + ": decisions 1 to 2 are as they were written",
		"WHEN INSTANCE EPOCH WHO SERVER WHAT BY",
		"2026-11-22T10:00:00Z instance-a 7 owner bigpc accept page", "2026-11-22T10:01:00Z instance-b 8 owner bigpc accept page",
		"2026-11-22T10:02:00Z instance-a 7 owner bigpc accept page", "2026-11-22T10:03:00Z instance-b 8 owner bigpc accept page",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	file := filepath.Join(dirs[0], "audit.jsonl")
	data, err := os.ReadFile(file)
	must(t, err)
	write(t, file, strings.Replace(string(data), `"epoch":7`, `"epoch":8`, 1))
	if code, text := verb(); code != exitFailed || !strings.Contains(text, "cannot verify the audit in "+dirs[0]) ||
		!strings.Contains(text, "line 1 was changed") || strings.Count(text, "instance-b") != 2 {
		t.Errorf("%d, %q", code, text)
	}
}
