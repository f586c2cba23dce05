package sqlite

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions/sessionstest"
)

// TestOlderFile: a file of an older version keeps its data and gets the missing tables.
func TestOlderFile(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), Config{Dir: dir})
	must(t, err)
	for _, back := range []string{ // to version 1
		"DROP TABLE life", "DROP TABLE owned", "DROP TABLE requests", "DROP INDEX entries_unkept",
		"ALTER TABLE entries DROP COLUMN unkept", "ALTER TABLE entries DROP COLUMN asker",
		"ALTER TABLE entries DROP COLUMN parent", "ALTER TABLE entries DROP COLUMN giver", "DROP TABLE secrets", "DROP TABLE threads", "DROP TABLE turns",
		"DROP TABLE items", "DROP TABLE said", "DROP TABLE said_words", "DROP TABLE documents",
		"ALTER TABLE bodies DROP COLUMN did", "ALTER TABLE entries DROP COLUMN tests", "DROP TABLE machines",
		"DROP TABLE apps", "DROP TABLE codes", "DROP TABLE records", "PRAGMA user_version = 1",
		"INSERT INTO spent (name, day, total, changed) VALUES ('alice', '2026-11-22', 7, 1)",
	} {
		_, err := s.write.ExecContext(t.Context(), back)
		must(t, err)
	}
	must(t, s.Close())
	for life := range 3 {
		s, err := Open(t.Context(), Config{Dir: dir})
		must(t, err)
		var version, total int
		must(t, s.read.QueryRowContext(t.Context(), "SELECT total, (SELECT user_version FROM pragma_user_version) "+
			"FROM spent").Scan(&total, &version))
		if got, want := fmt.Sprint(version, total, s.epoch), fmt.Sprint(schemaVersion, 7, life+1); got != want {
			t.Errorf("version, total and epoch %s, want %s", got, want)
		}
		must(t, s.Close())
	}
	if files, err := filepath.Glob("schema_*.sql"); err != nil || len(files) != schemaVersion {
		t.Errorf("version %d has the tables of %q, %v", schemaVersion, files, err)
	}
}

// backTo turns the file into one of an older version, 9 or newer.
func backTo(t *testing.T, s *Store, version int) {
	t.Helper()
	for _, back := range []string{
		"DROP TABLE machines", "DROP TABLE apps", "DROP TABLE codes", "DROP TABLE records", "DROP TABLE owned", "DROP TABLE requests", "DROP INDEX entries_unkept", "ALTER TABLE entries DROP COLUMN unkept",
		"ALTER TABLE entries DROP COLUMN asker", "ALTER TABLE entries DROP COLUMN parent", "ALTER TABLE entries DROP COLUMN giver",
		fmt.Sprint("PRAGMA user_version = ", version),
	} {
		_, err := s.write.ExecContext(t.Context(), back)
		must(t, err)
	}
}

// TestOwnersOfOlderWork: the owners of threads are taken from the entries in a file of an older version. All these
// entries are found by their keys, unchanged.
func TestOwnersOfOlderWork(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), Config{Dir: dir})
	must(t, err)
	was := map[string]ledger.Entry{}
	for _, why := range []string{handoff.WhyNew, handoff.WhyContinued, handoff.WhyCopy} {
		was[why] = sessionstest.Deliver(t, s, why, time.Now(), func(step *ledger.Step) {
			step.Set.Why = why
			if step.To == handoff.StatusDispatching {
				step.Set.Target.Thread = "thread " + why
			}
		})
	}
	backTo(t, s, 10)
	must(t, s.Close())
	if s, err = Open(t.Context(), Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for why, want := range was {
		if e, ok, err := s.Find(t.Context(), sessionstest.Owner, why); !ok || err != nil || e != want {
			t.Errorf("%s is %+v, %v, was %+v", why, e, err, want)
		}
	}
	got, err := s.Owned(t.Context())
	want := []ledger.Owned{{Server: "bigpc", Thread: "thread new", Caller: sessionstest.Owner},
		{Server: "bigpc", Thread: "thread copy", Caller: sessionstest.Owner}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("owned are %+v, %v, want %+v", got, err, want)
	}
}

// TestNoWordsForADay: an entry without texts is known by its key for a day.
func TestNoWordsForADay(t *testing.T) {
	s, err := Open(t.Context(), Config{Dir: t.TempDir()})
	must(t, err)
	defer s.Close()
	for key, age := range map[string]time.Duration{"young": ledger.KeyFor - time.Minute,
		"old": ledger.KeyFor + time.Minute} {
		sessionstest.Deliver(t, s, key, time.Now().Add(-age), func(step *ledger.Step) {
			step.Set.Unkept = step.To != handoff.StatusDelivered
		})
	}
	must(t, s.sweep(t.Context()))
	for key, want := range map[string]bool{"young": true, "old": false} {
		if _, ok, err := s.Find(t.Context(), sessionstest.Owner, key); ok != want || err != nil {
			t.Errorf("%s is there: %t, %v", key, ok, err)
		}
	}
}

// TestTestsOfOlderWork: for work of older versions it is not known how its tests ended, unless the work ran no
// command.
func TestTestsOfOlderWork(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), Config{Dir: dir})
	must(t, err)
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
	backTo(t, s, 9)
	must(t, s.Close())
	if s, err = Open(t.Context(), Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	page, err := s.History(t.Context(), sessionstest.Owner, ledger.HistoryQuery{})
	must(t, err)
	got := map[string]handoff.Tests{}
	for _, e := range page.Entries {
		got[e.Key] = e.Tests
	}
	if want := map[string]handoff.Tests{"ran": handoff.TestsUnknown, "said": "",
		"passed": handoff.TestsPassed}; !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
