package sqlite

import (
	"fmt"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions/sessionstest"
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

// TestTestsOfOlderWork: how the tests ended of work from before that was noted is not known, unless it ran no command.
func TestTestsOfOlderWork(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"ran", "said", "passed"} {
		sessionstest.Deliver(t, s, key, time.Now(), func(step *ledger.Step) {
			if step.To == handoff.StatusCompleted {
				step.Body.Did, step.Set.Tests = `{"items":[{"kind":"message"}]}`, ""
				if key != "said" {
					step.Body.Did = `{"items":[{"kind":"command","text":"go test"}]}`
				}
				if key == "passed" {
					step.Set.Tests = handoff.TestsPassed
				}
			}
		})
	}
	if _, err := s.write.ExecContext(t.Context(), "PRAGMA user_version = 9"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(t.Context(), Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	page, err := s.History(t.Context(), sessionstest.Owner, ledger.HistoryQuery{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]handoff.Tests{}
	for _, e := range page.Entries {
		got[e.Key] = e.Tests
	}
	if want := map[string]handoff.Tests{"ran": handoff.TestsUnknown, "said": "", "passed": handoff.TestsPassed}; !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
