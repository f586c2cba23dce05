package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/sessions/sqlite"
)

// TestLook: a look tells what a start would refuse, also beside a store that is open, and changes nothing.
func TestLook(t *testing.T) {
	dir := t.TempDir()
	look := func(want string) {
		t.Helper()
		switch err := sqlite.Look(dir); {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("got %v, want %q", err, want)
		}
	}
	look("")
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("looking left %v, %v", files, err)
	}
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	look("")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	look("")
	file := filepath.Join(dir, "switchboard.db")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for want, text := range map[string]string{"": "", "newer Switchboard (version 99": string(good[:63]) + "c" + string(good[64:]), "no SQLite file": "lorem"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		look(want)
	}
}
