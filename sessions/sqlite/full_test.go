package sqlite

import (
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// A file that cannot grow, as on a full disk, refuses what is new as a store that is away, keeps what it has,
// and goes on when there is room.
func TestDiskFull(t *testing.T) {
	s, err := Open(t.Context(), Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	step := ledger.Step{
		Key: "first", Caller: handoff.Caller{Principal: "owner"}, Owner: "a", Args: "args", To: handoff.StatusDispatching, New: true,
		Attempt: 1, At: time.Now(), Body: ledger.Body{Prompt: strings.Repeat("words ", 10_000)},
	}
	first, err := s.Advance(t.Context(), step)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.write.ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil { // no more than it has
		t.Fatal(err)
	}
	step.Key = "second"
	for range 3 {
		e, err := s.Advance(t.Context(), step)
		if err == nil || handoff.AsError(err).Code != handoff.CodeUnreachable || e.Status != "" || !strings.Contains(err.Error(), "full") {
			t.Fatalf("on a full disk: %+v, %v", e, err)
		}
	}
	if open, err := s.OpenAll(t.Context()); err != nil || len(open) != 1 || open[0] != first {
		t.Fatalf("open are %+v, %v", open, err)
	}
	if got := s.counts.refused.Load(); got != 3 {
		t.Fatalf("%d were counted", got)
	}
	if _, err := s.write.ExecContext(t.Context(), "PRAGMA max_page_count = 1000000"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Advance(t.Context(), step); err != nil {
		t.Fatal(err)
	}
}

// Another program that locks the file is waited for, two seconds at most; then it counts as a store that is
// away.
func TestFileLocked(t *testing.T) {
	s, err := Open(t.Context(), Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	other, err := s.mover.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	sticky := handoff.Sticky{Target: handoff.Target{Server: "bigpc", Thread: "t1"}}
	c := handoff.Caller{Principal: "owner"}
	if err := s.Set(t.Context(), c, sticky); err == nil || handoff.AsError(err).Code != handoff.CodeUnreachable {
		t.Fatalf("while it is locked: %v", err)
	}
	if err := other.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := s.Set(t.Context(), c, sticky); err != nil {
		t.Fatal(err)
	}
}
