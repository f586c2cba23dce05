package sessions_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

var _ handoff.Auditor = (*sessions.Audit)(nil)

func auditRecord(n int) handoff.AuditRecord {
	return handoff.AuditRecord{
		Who: "owner", Call: "c1", Server: "bigpc", Thread: "t", Turn: "u",
		Question:    handoff.QuestionID(fmt.Sprint("bigpc:1:", n)),
		CommandHash: "ab", Decision: handoff.DecisionAccept, Tier: "low", By: handoff.ByVoice, Transcript: "cd",
		At: time.Unix(1700000000, 0).UTC(),
	}
}

func openAudit(t *testing.T, dir string) *sessions.Audit {
	t.Helper()
	a, err := sessions.OpenAudit(dir)
	must(t, err)
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// writeAudit makes an audit with some records and returns its file.
func writeAudit(t *testing.T, dir string, records int) (file string, data []byte) {
	t.Helper()
	a := openAudit(t, dir)
	for i := range records {
		must(t, a.Audit(t.Context(), auditRecord(i)))
	}
	must(t, a.Close())
	file = filepath.Join(dir, "audit.jsonl")
	data, err := os.ReadFile(file)
	must(t, err)
	return file, data
}

func TestAuditGoesOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	file, _ := writeAudit(t, dir, 2)
	_, data := writeAudit(t, dir, 3) // another life
	n, err := sessions.VerifyAudit(bytes.NewReader(data))
	if n != 5 || err != nil {
		t.Fatalf("%d records, %v", n, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for _, want := range []string{`"who":"owner"`, `"question":"bigpc:1:1"`, `"decision":"accept"`, `"by":"voice"`,
		`"transcript_hash":"cd"`} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("no %s in %s", want, data)
		}
	}
}

func TestAuditManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	a := openAudit(t, dir)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := a.Audit(t.Context(), auditRecord(i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	data, _ := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if n, err := sessions.VerifyAudit(bytes.NewReader(data)); n != 20 || err != nil {
		t.Fatalf("%d records, %v", n, err)
	}
}

// TestAuditChanged changes every byte of a file, and drops and swaps lines: each change is noticed.
func TestAuditChanged(t *testing.T) {
	_, data := writeAudit(t, t.TempDir(), 3)
	lines := strings.SplitAfter(string(data), "\n")
	bad := map[string]string{
		"a line lost": lines[0] + lines[2], "the first lost": lines[1] + lines[2], "swapped": lines[1] + lines[0] + lines[2],
		"twice": lines[0] + lines[0], "no record": lines[0] + "{}\n", "not even JSON": "x\n",
		"too long":       lines[0] + strings.Repeat("x", 1<<17) + "\n",
		"one more field": strings.Replace(lines[0], `"n":1`, `"n":1,"m":2`, 1),
		"more after it":  strings.Replace(lines[0], "\n", ` {"n":1}`+"\n", 1),
		"spaces":         strings.Replace(lines[0], `"n":1`, `"n": 1`, 1),
	}
	for i, b := range data {
		if b == '\n' {
			continue
		}
		other := bytes.Clone(data)
		other[i] ^= 1
		if other[i] != '\n' {
			bad[fmt.Sprint("byte ", i)] = string(other)
		}
	}
	for name, text := range bad {
		if n, err := sessions.VerifyAudit(strings.NewReader(text)); err == nil {
			t.Errorf("%s: %d records, no error", name, n)
		}
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "audit.jsonl"), []byte(bad["a line lost"]), 0o600))
	if _, err := sessions.OpenAudit(dir); err == nil || !strings.Contains(err.Error(), "line 2") ||
		!strings.Contains(err.Error(), dir) {
		t.Errorf("opened: %v", err)
	}
}

// TestAuditTorn cuts the file at many bytes, as a power cut may: complete lines stay, an incomplete one is removed.
func TestAuditTorn(t *testing.T) {
	_, data := writeAudit(t, t.TempDir(), 2)
	for cut := 0; cut < len(data); cut += 7 {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "audit.jsonl"), data[:cut], 0o600))
		_, after := writeAudit(t, dir, 1)
		whole := uint64(bytes.Count(data[:cut], []byte("\n")))
		if n, err := sessions.VerifyAudit(bytes.NewReader(after)); n != whole+1 || err != nil {
			t.Fatalf("cut at %d: %d records, %v", cut, n, err)
		}
	}
}

func TestAuditOneProcess(t *testing.T) {
	dir := t.TempDir()
	first := openAudit(t, dir)
	if _, err := sessions.OpenAudit(dir); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Fatalf("opened twice: %v", err)
	}
	must(t, first.Close())
	if err := first.Audit(t.Context(), auditRecord(0)); err == nil {
		t.Error("a record after the end")
	}
	openAudit(t, dir)
}

func TestAuditCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if _, err := sessions.OpenAudit(file); err == nil {
		t.Error("opened in a file")
	}
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "audit.jsonl"), 0o700))
	if _, err := sessions.OpenAudit(dir); err == nil {
		t.Error("opened a directory")
	}
	dir = t.TempDir()
	must(t, os.Symlink(file, filepath.Join(dir, "audit.jsonl")))
	if _, err := sessions.OpenAudit(dir); err == nil {
		t.Error("opened a file outside of the state directory")
	}
}

// TestAuditDecisions: a caller gets their own decisions alone, newest first.
func TestAuditDecisions(t *testing.T) {
	dir := t.TempDir()
	writeAudit(t, dir, 3)
	a := openAudit(t, dir)
	other := auditRecord(9)
	other.Who = "somebody"
	must(t, a.Audit(t.Context(), other))
	got, err := a.Decisions(handoff.Caller{Principal: "owner"}, 2)
	if err != nil || len(got) != 2 || got[0] != auditRecord(2) || got[1] != auditRecord(1) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := a.Decisions(handoff.Caller{Principal: "nobody"}, 2); err != nil || len(got) != 0 {
		t.Errorf("of nobody: %+v, %v", got, err)
	}
}

// must ends a test that cannot go on after err.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
