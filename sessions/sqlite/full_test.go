package sqlite

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	lib "modernc.org/sqlite/lib"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions/sessionstest"
)

// While a file cannot grow, as on a full disk, new work fails with code unreachable, and the data stays. When there is
// room again, the store goes on.
func TestDiskFull(t *testing.T) {
	s, err := Open(t.Context(), Config{Dir: t.TempDir()})
	must(t, err)
	defer func() { _ = s.Close() }()
	must(t, put(t, s, "first"))
	if _, err := s.write.ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil { // not beyond its present size
		t.Fatal(err)
	}
	for range 3 {
		err := put(t, s, "second")
		if handoff.CodeOf(err) != handoff.CodeUnreachable || handoff.StoreDown(err).Subject != handoff.WhyStoreFull ||
			!strings.Contains(err.Error(), "full") {
			t.Fatalf("on a full disk: %v", err)
		}
	}
	sessionstest.WantOpen(t, s, "first")
	if got := s.counts.refused.Load(); got != 3 {
		t.Fatalf("%d were counted", got)
	}
	_, err = s.write.ExecContext(t.Context(), "PRAGMA max_page_count = 1000000")
	must(t, err)
	must(t, put(t, s, "second"))
	sessionstest.WantOpen(t, s, "first", "second")
}

// A disk that refuses all writes is like a full one: new work fails and leaves nothing behind, the failure is counted
// and reported by Kept, and the store goes on when the disk is back.
func TestDiskTakesNothing(t *testing.T) {
	s, err := Open(t.Context(), Config{Dir: t.TempDir()})
	must(t, err)
	defer func() { _ = s.Close() }()
	must(t, put(t, s, "first"))
	today := time.Now().UTC().Format(time.DateOnly)
	_, err = s.Spend(t.Context(), "ready", today, "", 0)
	must(t, err)
	mend := breakFiles(t, s.path+"-wal", os.O_RDONLY)
	if err := s.refusal(t); !isOne(err, []int{lib.SQLITE_IOERR}) {
		t.Fatalf("it is not what this test is about: %v", err)
	}
	for range 2 {
		if err := put(t, s, "second"); handoff.CodeOf(err) != handoff.CodeUnreachable {
			t.Fatalf("a commit: %v", err)
		}
	}
	if got := s.counts.refused.Load(); got != 2 {
		t.Errorf("%d were counted", got)
	}
	time.Sleep(2 * time.Millisecond) // within the same one it would write nothing
	if _, err := s.Spend(t.Context(), "ready", today, "", 0); err == nil {
		t.Error("it seems to take work")
	}
	sessionstest.WantOpen(t, s, "first")
	mend()
	must(t, put(t, s, "second"))
	sessionstest.WantOpen(t, s, "first", "second")
}

// While no checkpoint succeeds, small changes may still be possible; Kept reports that most work is not.
func TestDiskTakesOnlyTheLog(t *testing.T) {
	s, err := Open(t.Context(), Config{Dir: t.TempDir()})
	must(t, err)
	defer func() { _ = s.Close() }()
	must(t, put(t, s, "first"))
	must(t, s.tick(t.Context()))
	must(t, s.Kept())
	mend := breakFiles(t, s.path, os.O_RDONLY)
	today := time.Now().UTC().Format(time.DateOnly)
	_, err = s.Spend(t.Context(), "ready", today, "", 0)
	must(t, err)
	must(t, s.tick(t.Context()))
	if err := s.Kept(); handoff.CodeOf(err) != handoff.CodeUnreachable || !strings.Contains(err.Error(), "move the log") {
		t.Errorf("it seems to keep what it takes: %v", err)
	}
	mend()
	must(t, s.tick(t.Context()))
	must(t, s.Kept())
}

// A disk that refuses all reads loses nothing either: reads fail with code unreachable, and the failed upkeep is
// logged once.
func TestDiskGivesNothing(t *testing.T) {
	core, said := observer.New(zap.WarnLevel)
	s, err := Open(t.Context(), Config{Dir: t.TempDir(), Log: zap.New(core)})
	must(t, err)
	defer func() { _ = s.Close() }()
	if err := s.tick(t.Context()); err != nil { // opens the connection
		t.Fatal(err)
	}
	must(t, put(t, s, "first"))
	mend := breakFiles(t, s.path+"-wal", os.O_WRONLY)
	if open, err := s.Waiting(t.Context(), ledger.HandoffDoc); handoff.CodeOf(err) != handoff.CodeUnreachable ||
		len(open) != 0 {
		t.Errorf("open are %+v, %v", open, err)
	}
	for range 2 {
		if err := s.tick(t.Context()); err != nil {
			t.Errorf("the keeper gave up: %v", err)
		}
	}
	if got := said.FilterMessage("the file of the sessions cannot be kept").Len(); got != 1 {
		t.Errorf("it was said %d times: %v", got, said.All())
	}
	mend()
	sessionstest.WantOpen(t, s, "first")
	if err := s.tick(t.Context()); err != nil || s.failing {
		t.Errorf("the file is not kept again: %v", err)
	}
}

// The copy of the day is not begun on a disk that has no room for it. After a failure, the next try is made an hour
// later, and the upkeep counts as failing until then.
func TestNoRoomForACopy(t *testing.T) {
	core, said := observer.New(zap.InfoLevel)
	s, err := Open(t.Context(), Config{Dir: t.TempDir(), Log: zap.New(core)})
	must(t, err)
	defer func() { _ = s.Close() }()
	about, err := os.Stat(s.path)
	must(t, err)
	must(t, os.Truncate(s.path, 1<<42)) // it has holes
	err = s.copyDaily(t.Context())
	must(t, os.Truncate(s.path, about.Size()))
	if err == nil || !strings.Contains(err.Error(), "no room") {
		t.Fatalf("it is copied: %v", err)
	}
	must(t, s.tick(t.Context()))
	must(t, s.tick(t.Context()))
	if said.Len() != 1 || len(s.copies()) != 0 {
		t.Errorf("the copies are %q, and it says %v", s.copies(), said.All())
	}
	s.copyAt = time.Now()
	must(t, s.tick(t.Context()))
	if said.Len() != 2 || len(s.copies()) != 1 {
		t.Errorf("an hour later, the copies are %q, and it says %v", s.copies(), said.All())
	}
}

// refusal returns the error of SQLite for a change.
func (s *Store) refusal(t *testing.T) error {
	if _, err := s.begin.ExecContext(t.Context()); err != nil {
		return err
	}
	defer func() { _, _ = s.rollback.ExecContext(t.Context()) }()
	if _, err := s.write.ExecContext(t.Context(), "UPDATE life SET epoch = epoch + 1"); err != nil {
		return err
	}
	_, err := s.commit.ExecContext(t.Context())
	return err
}

// breakFiles makes an open file read-only or write-only for this process, until mend.
func breakFiles(t *testing.T, path string, only int) (mend func()) {
	t.Helper()
	bad, err := os.OpenFile(path, only, 0)
	must(t, err)
	good, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	t.Cleanup(func() { _, _ = bad.Close(), good.Close() })
	var broken []int
	names, _ := filepath.Glob("/proc/self/fd/*")
	for _, name := range names {
		fd, err := strconv.Atoi(filepath.Base(name))
		if to, gone := os.Readlink(name); err != nil || gone != nil || to != path || fd == int(bad.Fd()) ||
			fd == int(good.Fd()) {
			continue
		}
		broken = append(broken, fd)
	}
	turn := func(to *os.File) {
		for _, fd := range broken {
			must(t, syscall.Dup3(int(to.Fd()), fd, syscall.O_CLOEXEC))
		}
	}
	if len(broken) == 0 {
		t.Fatal("it is not open")
	}
	turn(bad)
	return func() { turn(good) }
}

// While another program locks the file, a change waits at most two seconds and then fails with code unreachable.
func TestFileLocked(t *testing.T) {
	s, err := Open(t.Context(), Config{Dir: t.TempDir()})
	must(t, err)
	defer func() { _ = s.Close() }()
	other, err := s.checkpointer.BeginTx(t.Context(), nil)
	must(t, err)
	if err := put(t, s, "key"); handoff.CodeOf(err) != handoff.CodeUnreachable ||
		handoff.StoreDown(err).Subject != handoff.WhyStoreLocked {
		t.Fatalf("while it is locked: %v", err)
	}
	must(t, other.Rollback())
	must(t, put(t, s, "key"))
}
