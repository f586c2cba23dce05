package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"
)

// TestOlderFile: a file of an earlier version keeps what is in it and gets what is missing.
func TestOlderFile(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, back := range []string{ // to version 1
		"DROP TABLE life", "DROP TABLE secrets", "DROP TABLE threads", "DROP TABLE turns", "DROP TABLE items", "DROP TABLE said", "DROP TABLE said_words", "DROP TABLE documents", "ALTER TABLE bodies DROP COLUMN did", "ALTER TABLE entries DROP COLUMN tests", "PRAGMA user_version = 1",
		"INSERT INTO spent (name, day, total, changed) VALUES ('alice', '2026-11-22', 7, 1)",
	} {
		if _, err := s.write.ExecContext(t.Context(), back); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for life := range 3 {
		s, err := Open(t.Context(), Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		var version, total int
		if err := s.read.QueryRowContext(t.Context(), "SELECT total, (SELECT user_version FROM pragma_user_version) FROM spent").Scan(&total, &version); err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(version, total, s.epoch), fmt.Sprint(schemaVersion, 7, life+1); got != want {
			t.Errorf("version, total and epoch %s, want %s", got, want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if files, err := filepath.Glob("schema_*.sql"); err != nil || len(files) != schemaVersion {
		t.Errorf("version %d has the tables of %q, %v", schemaVersion, files, err)
	}
}
