package sessions

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"switchboard/handoff"
)

// fillAudit writes records into an audit whose files are small.
func fillAudit(t *testing.T, dir string, records int) {
	t.Helper()
	a, err := OpenAudit(dir)
	must(t, err)
	a.dir.limit, a.dir.kept = 2000, 3
	for i := range records {
		must(t, a.Audit(t.Context(), handoff.AuditRecord{Who: "owner", Question: handoff.QuestionID(fmt.Sprint(i))}))
	}
	must(t, a.Close())
}

func auditFiles(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
	must(t, err)
	return names
}

// TestAuditFilesGoOn fills more files than are kept, with restarts in between: the chain goes on through all files, no
// file is too large, and only the oldest files are removed.
func TestAuditFilesGoOn(t *testing.T) {
	dir := t.TempDir()
	fillAudit(t, dir, 9)
	if first, last, err := VerifyAuditDir(dir); first != 1 || last != 9 || err != nil || len(auditFiles(t, dir)) == 0 {
		t.Fatalf("%d to %d, %v, in %v", first, last, err, auditFiles(t, dir))
	}
	for range 10 {
		fillAudit(t, dir, 3)
	}
	names := auditFiles(t, dir)
	first, last, err := VerifyAuditDir(dir)
	if first < 2 || last != 39 || err != nil || len(names) != 3 {
		t.Fatalf("%d to %d, %v, in %v", first, last, err, names)
	}
	for _, name := range append(names, filepath.Join(dir, auditName)) {
		if info, err := os.Stat(name); err != nil || info.Size() > 2000 || info.Mode().Perm() != fileMode {
			t.Errorf("%s: %v %d bytes, %v", name, info.Mode(), info.Size(), err)
		}
	}
}

// TestAuditFilesChanged changes full files. A start notices a change where two files meet, the full check everywhere.
func TestAuditFilesChanged(t *testing.T) {
	tests := []struct {
		name   string
		change func(t *testing.T, names []string)
		starts bool
	}{
		{"the newest is gone", func(t *testing.T, names []string) { remove(t, names[len(names)-1]) }, false},
		{"one between is gone", func(t *testing.T, names []string) { remove(t, names[1]) }, true},
		{"the newest was changed at its end", func(t *testing.T, names []string) { flip(t, names[len(names)-1], -20) },
			false},
		{"an old one was changed", func(t *testing.T, names []string) { flip(t, names[0], 80) }, true},
		{"the newest has another name", func(t *testing.T, names []string) {
			must(t, os.Rename(names[len(names)-1], filepath.Join(filepath.Dir(names[0]), fullAudit(9999))))
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			fillAudit(t, dir, 30)
			tt.change(t, auditFiles(t, dir))
			if _, _, err := VerifyAuditDir(dir); err == nil && tt.name != "the newest has another name" {
				t.Error("the full check overlooks it")
			}
			a, err := OpenAudit(dir)
			if err == nil {
				_ = a.Close()
			}
			if (err == nil) != tt.starts {
				t.Errorf("opened: %v", err)
			}
		})
	}
}

func remove(t *testing.T, name string) {
	must(t, os.Remove(name))
}

// flip changes one byte, counted from the end if at is negative.
func flip(t *testing.T, name string, at int) {
	data, err := os.ReadFile(name)
	must(t, err)
	if at < 0 {
		at += len(data)
	}
	data[at] ^= 1
	must(t, os.WriteFile(name, data, fileMode))
}

// TestAuditBetweenFiles kills the process after the full file was renamed and before the next one had its name.
func TestAuditBetweenFiles(t *testing.T) {
	dir := t.TempDir()
	fillAudit(t, dir, 2)
	must(t, os.Rename(filepath.Join(dir, auditName), filepath.Join(dir, fullAudit(2))))
	fillAudit(t, dir, 2)
	if first, last, err := VerifyAuditDir(dir); first != 1 || last != 4 || err != nil {
		t.Fatalf("%d to %d, %v", first, last, err)
	}
}

// TestAuditNotLaidAside: while the directory refuses the next file, a record is not acknowledged; afterwards it joins
// the chain.
func TestAuditNotLaidAside(t *testing.T) {
	dir := t.TempDir()
	a, err := OpenAudit(dir)
	must(t, err)
	defer func() { _ = a.Close() }()
	a.dir.limit = 400
	rec := handoff.AuditRecord{Who: "owner"}
	must(t, a.Audit(t.Context(), rec))
	hindrance := filepath.Join(dir, auditNew)
	must(t, os.Mkdir(hindrance, 0o700))
	if err := a.Audit(t.Context(), rec); err == nil {
		t.Fatal("acknowledged without a file")
	}
	remove(t, hindrance)
	for range 3 {
		must(t, a.Audit(t.Context(), rec))
	}
	if first, last, err := VerifyAuditDir(dir); first != 1 || last != 4 || err != nil {
		t.Fatalf("%d to %d, %v", first, last, err)
	}
}

// TestAuditStartReadsTheEnd opens a long file: a change near its end is noticed, a change in its middle is left to the
// full check, and an incomplete line at the end is cut off.
func TestAuditStartReadsTheEnd(t *testing.T) {
	var text bytes.Buffer
	sum, n := "", uint64(0)
	for text.Len() < 3*auditTail {
		n++
		record := fmt.Appendf(nil, `{"who":"%s"}`, strings.Repeat("x", 500))
		next := auditSum(n, sum, record)
		fmt.Fprintf(&text, `{"n":%d,"prev":"%s","record":%s,"sum":"%s"}`+"\n", n, sum, record, next)
		sum = next
	}
	name := filepath.Join(t.TempDir(), auditName)
	write := func(data []byte) {
		must(t, os.WriteFile(name, data, fileMode))
	}
	begin := func() (uint64, error) {
		a, err := OpenAudit(filepath.Dir(name))
		if err != nil {
			return 0, err
		}
		defer func() { _ = a.Close() }()
		err = a.Audit(t.Context(), handoff.AuditRecord{Who: "owner"})
		return a.n, err
	}
	for _, tail := range []string{"", `{"n":`} {
		write(append(bytes.Clone(text.Bytes()), tail...))
		if last, err := begin(); last != n+1 || err != nil {
			t.Fatalf("line %d, %v", last, err)
		}
		if _, last, err := VerifyAuditDir(filepath.Dir(name)); last != n+1 || err != nil {
			t.Fatalf("line %d, %v", last, err)
		}
	}
	for at, seen := range map[int]bool{100: true, text.Len() / 2: false, -auditTail / 2: true, -100: true} {
		write(text.Bytes())
		flip(t, name, at)
		if _, err := begin(); (err != nil) != seen {
			t.Errorf("byte %d changed: %v", at, err)
		}
		if _, _, err := VerifyAuditDir(filepath.Dir(name)); err == nil {
			t.Errorf("byte %d changed: the full check overlooks it", at)
		}
	}
}

// TestVerifyBesideAWriter verifies while files are renamed and removed: a renamed file does not count as changed.
func TestVerifyBesideAWriter(t *testing.T) {
	dir := t.TempDir()
	fillAudit(t, dir, 9)
	var reader sync.WaitGroup
	defer reader.Wait()
	done := make(chan struct{})
	defer close(done)
	reader.Go(func() {
		for {
			if _, _, err := VerifyAuditDir(dir); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for range 30 {
		fillAudit(t, dir, 3)
	}
}

// must ends a test that cannot go on after err.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
