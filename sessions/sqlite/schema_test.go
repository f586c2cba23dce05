package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	was, err := os.ReadFile(filepath.Join(dir, fileName))
	must(t, err)
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
	former := filepath.Join(dir, formerName(1)) // what a Switchboard of that version can read
	if err := pragma(t.Context(), former, "SELECT iif(user_version = 1, 'ok', 'no') FROM pragma_user_version"); err != nil {
		t.Errorf("the copy from before: %v", err)
	}
	if copied, err := os.ReadFile(former); err != nil || len(copied) > len(was) || len(copied) == 0 {
		t.Errorf("the copy from before has %d bytes, %v", len(copied), err)
	}
	if files, err := filepath.Glob("schema_*.sql"); err != nil || len(files) != schemaVersion {
		t.Errorf("version %d has the tables of %q, %v", schemaVersion, files, err)
	}
}

// TestWayBack: a file of a newer version is refused with the copy that was made before its tables were changed, if
// there is one.
func TestWayBack(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), Config{Dir: dir})
	must(t, err)
	_, err = s.write.ExecContext(t.Context(), fmt.Sprint("PRAGMA user_version = ", schemaVersion+1))
	must(t, err)
	must(t, s.Close())
	for _, next := range []string{"move the file away", "cp " + filepath.Join(dir, formerName(schemaVersion))} {
		if _, err := Open(t.Context(), Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), next) {
			t.Errorf("%v, want %q", err, next)
		}
		must(t, os.WriteFile(filepath.Join(dir, formerName(schemaVersion)), nil, fileMode))
	}
}

// TestBackup: a backup is made while the store is used and while it is not, has all that was written, replaces nothing,
// and is none of a damaged file.
func TestBackup(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	if err := Backup(t.Context(), dir, filepath.Join(to, "none")); err == nil {
		t.Error("a backup of nothing was made")
	}
	s, err := Open(t.Context(), Config{Dir: dir})
	must(t, err)
	var all []ledger.Entry
	for _, name := range []string{"in use", "closed"} {
		e, err := s.Advance(t.Context(), newStep(name))
		must(t, err)
		all = append(all, e)
		if name == "closed" {
			must(t, s.Close())
		}
		there := filepath.Join(to, name)
		must(t, os.Mkdir(there, 0o700))
		must(t, Backup(t.Context(), dir, filepath.Join(there, fileName)))
		if err := Backup(t.Context(), dir, filepath.Join(there, fileName)); !errors.Is(err, fs.ErrExist) {
			t.Errorf("over another file: %v", err)
		}
		restored, err := Open(t.Context(), Config{Dir: there})
		must(t, err)
		if got, err := restored.OpenAll(t.Context()); err != nil || !slices.Equal(got, all) {
			t.Errorf("%s: restored are %+v, %v", name, got, err)
		}
		must(t, restored.Close())
	}
	damaged, bad := filepath.Join(dir, fileName), filepath.Join(to, "bad")
	must(t, os.WriteFile(damaged, []byte("SQLite format 3\x00 and nothing"), fileMode))
	if err := Backup(t.Context(), dir, bad); err == nil || !strings.Contains(err.Error(), damaged) {
		t.Errorf("of a damaged file: %v", err)
	}
	if _, err := os.Stat(bad); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a copy stays: %v", err)
	}
}

// backTo turns the file into one of an older version, 9 or newer.
func backTo(t *testing.T, s *Store, version int) {
	t.Helper()
	for _, back := range []string{
		"DROP TABLE machines", "DROP TABLE apps", "DROP TABLE codes", "DROP TABLE records", "DROP TABLE owned", "DROP TABLE requests", "DROP INDEX entries_unkept", "ALTER TABLE entries DROP COLUMN unkept",
		"ALTER TABLE entries DROP COLUMN asker", "ALTER TABLE entries DROP COLUMN parent", "ALTER TABLE entries DROP COLUMN giver",
		"ALTER TABLE secrets DROP COLUMN login",
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
