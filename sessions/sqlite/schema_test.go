package sqlite

import (
	"crypto/sha256"
	"database/sql"
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

	"github.com/google/go-cmp/cmp"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions/sessionstest"
)

// olderFile makes the file of an older version in a state directory, with what statements add to it.
func olderFile(t *testing.T, version int, statements ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	db, err := sql.Open("sqlite", filepath.Join(dir, fileName))
	must(t, err)
	defer func() { must(t, db.Close()) }()
	first, err := os.ReadFile("testdata/version_1.sql")
	must(t, err)
	all := []string{string(first)}
	for n := 2; n <= version; n++ {
		schema, err := schemas.ReadFile(fmt.Sprintf("schema_%d.sql", n))
		must(t, err)
		all = append(all, string(schema))
	}
	for _, text := range slices.Concat(all, statements, []string{fmt.Sprint("PRAGMA user_version = ", version)}) {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return dir
}

// entry returns the statement that adds an entry to a file of version 10 or older; more sets further columns.
func entry(id int, key string, more map[string]string) string {
	values := map[string]string{"id": fmt.Sprint(id), "caller": "'owner'", "past": "0", "key": "'" + key + "'",
		"principal": "'owner'", "user": "''", "owner": "'me'", "args": "'sum'", "status": "'started'", "inherited": "0",
		"attempt": "1", "call": "'c'", "client": "'id'", "server": "'bigpc'", "project": "'api'", "thread": "'t1'",
		"watermark": "'w1'", "turn": "'turn-1'", "prompt": "'fix \"it\"'", "title": "'auth'", "why": "'named'",
		"outcome": "''", "code": "''", "spoken": "''", "accepted": "1764000000123", "ended": "0"}
	maps.Copy(values, more)
	columns := slices.Sorted(maps.Keys(values))
	var list []string
	for _, column := range columns {
		list = append(list, values[column])
	}
	return "INSERT INTO entries (" + strings.Join(columns, ", ") + ") VALUES (" + strings.Join(list, ", ") + ")"
}

// reopened opens a file of an older version, and closes it with the test.
func reopened(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{Dir: dir})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestOlderFile: a file of each older version keeps its data and gets the missing tables.
func TestOlderFile(t *testing.T) {
	for version := 1; version < schemaVersion; version++ {
		dir := olderFile(t, version,
			"INSERT INTO spent (name, day, total, changed) VALUES ('alice', '2026-11-22', 7, 1)")
		for range 2 {
			s, err := Open(t.Context(), Config{Dir: dir})
			must(t, err)
			var is, total int
			must(t, s.read.QueryRowContext(t.Context(), "SELECT total, (SELECT user_version FROM pragma_user_version) "+
				"FROM spent").Scan(&total, &is))
			if is != schemaVersion || total != 7 {
				t.Errorf("from version %d: version %d, total %d", version, is, total)
			}
			must(t, s.Close())
		}
		former := filepath.Join(dir, formerName(version)) // what a Switchboard of that version can read
		if err := execOn(t.Context(), former, fmt.Sprintf("SELECT iif(user_version = %d, 'ok', 'no') "+
			"FROM pragma_user_version", version)); err != nil {
			t.Errorf("the copy from before: %v", err)
		}
	}
	if files, err := filepath.Glob("schema_*.sql"); err != nil || len(files) != schemaVersion-1 {
		t.Errorf("version %d has the tables of %q, %v", schemaVersion, files, err)
	}
}

// TestUpdatedTables: an updated file has the columns and indexes of a new one.
func TestUpdatedTables(t *testing.T) {
	var all [2][]string
	for i, dir := range []string{t.TempDir(), olderFile(t, 1)} {
		s := reopened(t, dir)
		rows, err := s.read.QueryContext(t.Context(), `
SELECT 'table', m.name, c.name, c.type, c."notnull", c.dflt_value, c.pk, m.sql LIKE '%STRICT%', m.sql LIKE '%WITHOUT ROWID%',
  iif(m.sql LIKE 'CREATE VIRTUAL%', m.sql, '')
FROM sqlite_master m, pragma_table_xinfo(m.name) c WHERE m.type = 'table'
UNION ALL
SELECT 'index', m.name, c.name, c."desc", c.key, l."unique", l.partial, l.origin, m.tbl_name, m.sql
FROM sqlite_master m, pragma_index_list(m.tbl_name) l, pragma_index_xinfo(m.name) c WHERE m.type = 'index' AND l.name = m.name
ORDER BY 1, 2, 3`)
		all[i], err = collect(rows, err, func(row *sql.Rows, line *string) error {
			var columns [10]any
			var into []any
			for i := range columns {
				into = append(into, &columns[i])
			}
			err := row.Scan(into...)
			*line = fmt.Sprint(columns)
			return err
		})
		must(t, err)
	}
	if diff := cmp.Diff(all[0], all[1]); diff != "" || len(all[0]) < 100 {
		t.Errorf("%d lines, -new +updated:\n%s", len(all[0]), diff)
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
	var all []string
	for _, name := range []string{"in use", "closed"} {
		must(t, put(t, s, name))
		all = append(all, name)
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
		sessionstest.WantOpen(t, restored, all...)
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

// TestOlderWork: open work, work that waits to be heard, history with its words, texts and sticky threads of an older
// version are what they were.
func TestOlderWork(t *testing.T) {
	made := time.Now().UnixMilli()
	s := reopened(t, olderFile(t, 16,
		entry(1, "open", map[string]string{"inherited": "1"}),
		entry(2, "waits", map[string]string{"status": "'completed'", "outcome": "'result'", "spoken": "'done'",
			"tests": "'passed'", "ended": "1764000001000"}),
		entry(3, "heard", map[string]string{"status": "'delivered'", "outcome": "'failed'", "code": "'busy'",
			"ended": "1764000002000", "past": fmt.Sprint(made), "watermark": "''", "call": "''", "asker": "'codex'"}),
		entry(4, "tomb", map[string]string{"status": "'delivered'", "outcome": "'result'", "unkept": "1",
			"ended": "1764000003000", "past": fmt.Sprint(made)}),
		"INSERT INTO bodies (id, prompt, text, did) VALUES (3, 'fix it', '', '{}')",
		"INSERT INTO requests (id, request) VALUES (2, 'whole')",
		"INSERT INTO history_words (rowid, words) VALUES (3, 'bigpc api auth fix it')",
		"INSERT INTO stickies (caller, field, value, changed) VALUES ('owner', 'bigpc/api', "+
			`'{"thread":"t1","title":"auth","named":true,"since":"2026-05-04T12:00:00Z"}', `+fmt.Sprint(made)+")",
		"INSERT INTO stickies (caller, field, value, changed) VALUES ('owner', 'broken', 'no JSON', 1)",
		"INSERT INTO logins (principal, id, sum, key, host, device, made, used, ends) VALUES ('owner', 'id', "+
			"zeroblob(32), zeroblob(32), 'host', 'phone', 1, 2, 9000000000000000000)",
		"INSERT INTO secrets (sum, principal, key, user, session, ends) VALUES (zeroblob(32), 'owner', zeroblob(32), "+
			"'bob', x'7b7d', 9000000000000000000)",
		"INSERT INTO machines (key, name, joined, body) VALUES (zeroblob(32), 'mini', 3, x'7b7d')",
		"INSERT INTO apps (id, principal, next, ends, body) VALUES ('app', 'owner', zeroblob(32), 9000000000000000000, "+
			`CAST('{"ID":"app","Principal":"owner","Name":"App"}' AS BLOB)`+")",
		"INSERT INTO records (kind, name, body) VALUES ('keys', 'one', x'31')",
	))
	c, unreadable := sessionstest.Owner, func(name string) { t.Errorf("%s cannot be read", name) }
	now, err := s.State(t.Context(), c)
	must(t, err)
	page, err := s.History(t.Context(), c, ledger.HistoryQuery{Search: "aut fi"})
	must(t, err)
	got := map[string]ledger.Entry{}
	for _, e := range slices.Concat(ledger.Entries(now.Documents, unreadable), page.Entries) {
		got[e.Key] = e
	}
	tomb, found, err := s.Find(t.Context(), c, "tomb")
	must(t, err)
	got["tomb"] = tomb
	facts := ledger.Facts{Print: "c", ClientID: "id", Watermark: "w1", Turn: "turn-1", Prompt: `fix "it"`, Title: "auth",
		Why: "named", Target: handoff.Target{Server: "bigpc", Project: "api", Thread: "t1"}}
	want := map[string]ledger.Entry{}
	for key, change := range map[string]func(*ledger.Entry){
		"open": func(e *ledger.Entry) { e.Status, e.Inherited = handoff.StatusStarted, true },
		"waits": func(e *ledger.Entry) {
			e.Status, e.Outcome, e.Spoken, e.Tests = handoff.StatusCompleted, "result", "done", handoff.TestsPassed
			e.Ended = time.UnixMilli(1764000001000).UTC()
		},
		"heard": func(e *ledger.Entry) {
			e.Status, e.Outcome, e.Code, e.Asker = handoff.StatusDelivered, "failed", "busy", "codex"
			e.Watermark, e.Print, e.Ended = "", "", time.UnixMilli(1764000002000).UTC()
		},
		"tomb": func(e *ledger.Entry) {
			e.Status, e.Outcome, e.Unkept = handoff.StatusDelivered, "result", true
			e.Ended = time.UnixMilli(1764000003000).UTC()
		},
	} {
		e := ledger.Entry{Key: key, Caller: c, Owner: "me", Args: "sum", Attempt: 1, Facts: facts,
			Accepted: time.UnixMilli(1764000000123).UTC()}
		change(&e)
		want[key] = e
	}
	if diff := cmp.Diff(want, got); diff != "" || !found {
		t.Errorf("-want +got:\n%s", diff)
	}
	for key, want := range map[string]ledger.Body{"heard": {Prompt: "fix it", Did: "{}"}, "waits": {Request: "whole"}} {
		if all, err := s.Bodies(t.Context(), c, key); err != nil || all[key] != want {
			t.Errorf("%s has the texts %+v, %v", key, all, err)
		}
	}
	sticky, set, ok := ledger.DecodeSticky("bigpc/api", now.Documents[ledger.StickyDoc+"bigpc/api"])
	if !ok || sticky.Title != "auth" || set.UnixMilli() != made || len(now.Documents) != 3 {
		t.Errorf("the current thread is %+v, set %v, among %q", sticky, set, now.Documents)
	}
	login, found, err := s.Login(t.Context(), [sha256.Size]byte{})
	if err != nil || !found || login.Device != "phone" || login.Used != time.Unix(0, 2).UTC() {
		t.Errorf("the login is %+v, %v", login, err)
	}
	if secret, ok, err := s.Secret(t.Context(), [sha256.Size]byte{}); err != nil || !ok || secret.User != "bob" ||
		string(secret.Session) != "{}" {
		t.Errorf("the secret is %+v, %v", secret, err)
	}
	if all, err := s.Machines(t.Context()); err != nil || len(all) != 1 || all[0].Name != "mini" ||
		all[0].Joined != time.UnixMilli(3).UTC() {
		t.Errorf("machines are %+v, %v", all, err)
	}
	if a, ok, err := s.App(t.Context(), "app"); err != nil || !ok || a.Name != "App" {
		t.Errorf("the app is %+v, %v", a, err)
	}
	if all, err := s.Records(t.Context(), "keys"); err != nil || len(all) != 1 || string(all[0].Body) != "1" {
		t.Errorf("records are %+v, %v", all, err)
	}
	if waiting, err := s.Waiting(t.Context(), ledger.HandoffDoc); err != nil || !slices.Equal(waiting, []handoff.Caller{c}) {
		t.Errorf("what waits is %+v, %v", waiting, err)
	}
	must(t, put(t, s, "another")) // its owner goes on
}

// TestOwnersOfOlderWork: the owners of threads are taken from the entries in a file of an older version.
func TestOwnersOfOlderWork(t *testing.T) {
	why := func(is string) map[string]string {
		return map[string]string{"why": "'" + is + "'", "thread": "'thread " + is + "'"}
	}
	s := reopened(t, olderFile(t, 10, entry(1, "a", why("new")), entry(2, "b", why("continued")),
		entry(3, "c", why("copy"))))
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
		e := sessionstest.Entry(key)
		e.Unkept = true
		must(t, sessionstest.Write(t.Context(), s, sessionstest.Owner, sessionstest.Over(time.Now().Add(-age), e)))
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
	done := map[string]string{"status": "'delivered'", "outcome": "'result'", "past": fmt.Sprint(time.Now().UnixMilli())}
	passed := maps.Clone(done)
	passed["tests"] = "'passed'"
	body := "INSERT INTO bodies (id, prompt, text, did) VALUES "
	s := reopened(t, olderFile(t, 9, entry(1, "ran", done), entry(2, "said", done), entry(3, "passed", passed),
		body+`(1, '', '', '{"items":[{"kind":"command","text":"go test"}]}')`,
		body+`(2, '', '', '{"items":[{"kind":"message"}]}')`,
		body+`(3, '', '', '{"items":[{"kind":"command","text":"go test"}]}')`))
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
