package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions/sessionstest"
	"switchboard/sessions/sqlite"
)

// runFor runs the store for a while, longer than all upkeep takes.
func runFor(t *testing.T, s *sqlite.Store, d time.Duration) {
	t.Helper()
	ended := sessionstest.Run(t, s)
	time.Sleep(d)
	must(t, ended())
}

// remembered fails the test unless a copy of the file, as a kill now would leave it, has the handoff.
func remembered(t *testing.T, dir string) {
	t.Helper()
	after := t.TempDir()
	for _, name := range []string{"switchboard.db", "switchboard.db-wal"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(after, name), data, 0o600))
	}
	sessionstest.WantOpen(t, open(t, sqlite.Config{Dir: after}), "key")
}

// Acknowledged data is there after a kill, even before the first checkpoint, and after a clean end.
func TestReopen(t *testing.T) {
	dir := t.TempDir()
	for round := range 3 {
		s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
		must(t, err)
		if round == 0 {
			put(t, s, "key")
			remembered(t, dir)
		}
		ended := sessionstest.Run(t, s)
		sessionstest.WantOpen(t, s, "key")
		if err := ended(); err != nil {
			t.Fatalf("run: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
		if _, err := s.State(t.Context(), owner); handoff.CodeOf(err) != handoff.CodeShutdown {
			t.Fatalf("read after close: %v", err)
		}
		if _, err := os.Stat(filepath.Join(dir, "switchboard.db-wal")); !os.IsNotExist(err) {
			t.Fatalf("the log is left: %v", err)
		}
	}
}

// All files of the store are accessible to their owner alone.
func TestModes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, sqlite.Config{Dir: dir})
	put(t, s, "key")
	ended := sessionstest.Run(t, s)
	for s.Copies() == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	must(t, ended())
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < 4 {
		t.Fatalf("%v, %v", entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", e.Name(), info.Mode(), err)
		}
	}
}

func TestSecondIsRefused(t *testing.T) {
	dir := t.TempDir()
	open(t, sqlite.Config{Dir: dir})
	if _, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir}); err == nil ||
		!strings.Contains(err.Error(), fmt.Sprintf("process %d)", os.Getpid())) {
		t.Fatalf("open: %v, want a refusal that names the process", err)
	}
}

// If the lock file is removed, Run ends the process, and no turn is started meanwhile.
func TestLockLost(t *testing.T) {
	dir := t.TempDir()
	s := open(t, sqlite.Config{Dir: dir})
	put(t, s, "began")
	must(t, os.Remove(filepath.Join(dir, "lock")))
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), dir) {
		t.Fatalf("run: %v", err)
	}
	late := sessionstest.Put("late")
	if err := sessionstest.Write(t.Context(), s, owner, late); handoff.CodeOf(err) != handoff.CodeShutdown {
		t.Fatalf("a start gave %v", err)
	}
	sessionstest.WantOpen(t, s, "began")
	late.Promise = false // what became of started turns is still written
	must(t, sessionstest.Write(t.Context(), s, owner, late))
}

// A file that cannot be used is refused with advice, and is not changed.
func TestUnusableFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "switchboard.db")
	refused := func(t *testing.T, want ...string) {
		t.Helper()
		before, err := os.ReadFile(file)
		must(t, err)
		_, err = sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
		for _, want := range append(want, file) {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("open: %v, want a refusal that says %q", err, want)
			}
		}
		if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
			t.Fatalf("the file was touched: %v", err)
		}
	}
	must(t, os.WriteFile(file, []byte(strings.Repeat("this is no database ", 500)), 0o600))
	refused(t, "no copy of it yet", "move it away")
	must(t, os.Remove(file))

	s := open(t, sqlite.Config{Dir: dir})
	must(t, sessionstest.Write(t.Context(), s, owner, over(200)))
	must(t, s.Close())
	good, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file+".2026-11-21.copy", good, 0o600))
	newer := slices.Clone(good)
	newer[63] = 99 // the last byte of user_version
	must(t, os.WriteFile(file, newer, 0o600))
	refused(t, "newer Switchboard", "version 99")

	bad := slices.Clone(good)
	for i := 4096 * 3; i < len(bad)-4096; i += 512 {
		bad[i] ^= 0x55
	}
	must(t, os.WriteFile(file, bad, 0o600))
	if err := os.WriteFile(file+"-wal", make([]byte, 32), 0o600); err != nil { // an unclean end
		t.Fatal(err)
	}
	refused(t, "2026-11-21.copy", "newest copy")
	must(t, os.WriteFile(file, good, 0o600))
	s = open(t, sqlite.Config{Dir: dir})
	if page, err := s.History(t.Context(), owner, ledger.HistoryQuery{}); err != nil || page.Next == "" {
		t.Fatalf("%+v, %v", page, err)
	}
}

// over returns a batch of handoffs that were heard just now, with their texts.
func over(n int) ledger.Batch {
	all := make([]ledger.Entry, n)
	for i := range all {
		all[i] = sessionstest.Entry(fmt.Sprint("heard-", i))
	}
	b := sessionstest.Over(time.Now(), all...)
	for i := range b.Changed {
		b.Changed[i].Texts = map[string]string{ledger.PartText: "whole"}
	}
	return b
}

// What is open is kept for ever, history for the configured time, and what is kept for a time no longer. The time
// without a process counts, too.
func TestExpires(t *testing.T) {
	const day = 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, sqlite.Config{Dir: dir, HistoryFor: 10 * day})
		idle := handoff.Caller{Principal: "idle"}
		must(t, sessionstest.Write(t.Context(), s, idle, ledger.Batch{Put: map[string]string{"sticky:bigpc": "{}"},
			For: ledger.StickyFor}))
		const n = 500 // more than one sweep deletes
		b := over(n)
		b.Put = sessionstest.Put("unheard").Put
		b.Changed = append(b.Changed, ledger.Changed{Key: "unheard", Texts: map[string]string{ledger.PartText: "whole"}})
		must(t, sessionstest.Write(t.Context(), s, owner, b))
		count := func(s *sqlite.Store) (all int) {
			for q := (ledger.HistoryQuery{Search: "fix"}); ; {
				page, err := s.History(t.Context(), owner, q)
				must(t, err)
				if all += len(page.Entries); page.Next == "" {
					return all
				}
				q.Before = page.Next
			}
		}
		kept := func(want bool) {
			t.Helper()
			if now, err := s.State(t.Context(), idle); err != nil || (len(now.Documents) == 1) != want {
				t.Fatalf("there is %+v, %v", now, err)
			}
		}
		time.Sleep(9 * day)
		if got := count(s); got != n {
			t.Fatalf("%d after nine days", got)
		}
		runFor(t, s, 10*time.Second)
		if got := count(s); got != n {
			t.Fatalf("%d after a sweep on the ninth day", got)
		}
		must(t, s.Close())
		time.Sleep(2 * day)
		s = open(t, sqlite.Config{Dir: dir, HistoryFor: 10 * day})
		runFor(t, s, 10*time.Second)
		if got := count(s); got != 0 {
			t.Fatalf("%d after eleven days", got)
		}
		if all, err := s.Bodies(t.Context(), owner, "heard-1"); len(all) > 0 || err != nil {
			t.Fatalf("a body is left: %v", err)
		}
		time.Sleep(78 * day)
		kept(true)
		time.Sleep(2 * day)
		kept(false)
		runFor(t, s, 10*time.Second)
		sessionstest.WantOpen(t, s, "unheard")
		if all, err := s.Bodies(t.Context(), owner, "unheard"); err != nil || all["unheard"].Text != "whole" {
			t.Fatalf("its body is %+v, %v", all, err)
		}
	})
}

// One copy a day is made and three are kept; each can replace the file. Copies with a future date, from a wrong clock,
// are removed first.
func TestCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		for n := range 3 {
			must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("switchboard.db.2099-01-0%d.copy", n+1)), nil, 0o600))
		}
		s := open(t, sqlite.Config{Dir: dir})
		put(t, s, "key")
		for range 6 {
			runFor(t, s, 3*time.Second)
			time.Sleep(24 * time.Hour)
		}
		copies, err := filepath.Glob(filepath.Join(dir, "*.copy"))
		if err != nil || len(copies) != 3 || s.Copies() != 6 {
			t.Fatalf("copies are %q, %v; %d were made", copies, err, s.Copies())
		}
		for _, name := range copies {
			data, err := os.ReadFile(name)
			must(t, err)
			other := t.TempDir()
			must(t, os.WriteFile(filepath.Join(other, "switchboard.db"), data, 0o600))
			sessionstest.WantOpen(t, open(t, sqlite.Config{Dir: other}), "key")
		}
	})
}

// Many callers at once succeed on a busy machine and are there after a restart. Closing the store leaves no
// goroutine.
func TestManyAtOnce(t *testing.T) {
	const callers = 200
	before := runtime.NumGoroutine()
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	must(t, err)
	ended := sessionstest.Run(t, s)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			c := handoff.Caller{Principal: "owner", User: fmt.Sprint(i)}
			for _, key := range []string{"one", "two"} {
				if err := sessionstest.Write(t.Context(), s, c, sessionstest.Put(key)); err != nil {
					t.Errorf("%s of %v: %v", key, c, err)
				}
			}
		})
	}
	all.Wait()
	must(t, ended())
	must(t, s.Close())
	for end := time.Now().Add(3 * time.Minute); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
	after := open(t, sqlite.Config{Dir: dir})
	if found, err := after.Waiting(t.Context(), ledger.HandoffDoc); err != nil || len(found) != callers {
		t.Fatalf("%d are there after a restart, %v", len(found), err)
	}
}

// TestLook: a look reports why a start would refuse a file, also beside an open store, and changes nothing.
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
	must(t, err)
	look("")
	must(t, s.Close())
	look("")
	file := filepath.Join(dir, "switchboard.db")
	good, err := os.ReadFile(file)
	must(t, err)
	for want, text := range map[string]string{"": "", "newer Switchboard (version 99": string(good[:63]) + "c" +
		string(good[64:]), "no SQLite file": "lorem"} {
		must(t, os.WriteFile(file, []byte(text), 0o600))
		look(want)
	}
}
