package sessions_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
	"switchboard/sessions/sessionstest"
)

var (
	owner  = handoff.Caller{Principal: "owner"}
	sticky = handoff.Sticky{
		Target: handoff.Target{Server: "bigpc", Project: "api", Thread: "thread-1"}, Title: "auth refactor",
		Named: true, Since: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC),
	}
)

// open opens a store that is closed with the test.
func open(t *testing.T, cfg sessions.Config) *sessions.Store {
	t.Helper()
	s, err := sessions.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func TestEmbedded(t *testing.T) {
	sessionstest.TestStickies(t, func(t *testing.T) handoff.Stickies {
		return open(t, sessions.Config{StateDir: t.TempDir()})
	})
}

func TestEmbeddedInBubble(t *testing.T) {
	sessionstest.TestStickiesInBubble(t, func(t *testing.T) handoff.Stickies {
		return open(t, sessions.Config{})
	})
}

func TestReal(t *testing.T) {
	redis := sessionstest.StartRedis(t)
	sessionstest.TestStickies(t, func(t *testing.T) handoff.Stickies {
		return open(t, sessions.Config{URL: redis.URL, Prefix: strings.ReplaceAll(t.Name(), " ", "-")})
	})
}

// run runs the store until the returned function is called, which gives what Run returned.
func run(t *testing.T, s *sessions.Store) (ended func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return func() error { cancel(); return <-done }
}

func wantSticky(t *testing.T, s *sessions.Store, want ...handoff.Sticky) {
	t.Helper()
	got, err := s.List(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) || len(want) == 1 && got[0] != want[0] {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

func TestReopen(t *testing.T) {
	redis := sessionstest.StartRedis(t)
	for name, cfg := range map[string]sessions.Config{"embedded": {StateDir: t.TempDir()}, "real": {URL: redis.URL}} {
		t.Run(name, func(t *testing.T) {
			for round := range 3 { // set; still there; still there after a life without changes
				s, err := sessions.Open(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				ended := run(t, s)
				if round == 0 {
					if err := s.Set(t.Context(), owner, sticky); err != nil {
						t.Fatal(err)
					}
				}
				wantSticky(t, s, sticky)
				if err := ended(); err != nil {
					t.Fatalf("run: %v", err)
				}
				if err := s.Close(); err != nil {
					t.Fatalf("close: %v", err)
				}
				if _, err := s.List(t.Context(), owner); handoff.AsError(err).Code != handoff.CodeShutdown {
					t.Fatalf("list after close: %v", err)
				}
			}
		})
	}
}

// A process that is killed loses at most the last second.
func TestSnapshotWithinASecond(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "snapshot.json")
	synctest.Test(t, func(t *testing.T) {
		s := open(t, sessions.Config{StateDir: dir})
		ended := run(t, s)
		if err := s.Set(t.Context(), owner, sticky); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		before, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(before), "thread-1") {
			t.Fatalf("snapshot %s: %v", before, err)
		}
		other := t.TempDir() // what a kill at this moment would have left
		if err := os.WriteFile(filepath.Join(other, "snapshot.json"), before, 0o600); err != nil {
			t.Fatal(err)
		}
		wantSticky(t, open(t, sessions.Config{StateDir: other}), sticky)
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("mode %v, %v", info.Mode(), err)
		}
		time.Sleep(time.Hour)
		wantSticky(t, s, sticky) // reading changes nothing
		time.Sleep(time.Hour)
		for range 50 { // many changes, one snapshot a second
			if err := s.Set(t.Context(), owner, sticky); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(1100 * time.Millisecond)
		if got := s.Stats(); got.Saves != 2 || got.SaveErrors != 0 {
			t.Fatalf("stats %+v, want two saves", got)
		}
		if err := ended(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestStickiesExpire(t *testing.T) {
	const day = 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, sessions.Config{StateDir: dir})
		if err := s.Set(t.Context(), owner, sticky); err != nil {
			t.Fatal(err)
		}
		time.Sleep(60 * day)
		if err := s.Set(t.Context(), owner, sticky); err != nil { // renews
			t.Fatal(err)
		}
		time.Sleep(60 * day)
		wantSticky(t, s, sticky)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(29 * day) // the time that we are not running counts
		s = open(t, sessions.Config{StateDir: dir})
		wantSticky(t, s, sticky)
		time.Sleep(2 * day)
		wantSticky(t, s)
	})
}

// A snapshot that cannot be written is told and counted; it is tried again, and Close reports it.
func TestSnapshotNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s, err := sessions.Open(t.Context(), sessions.Config{StateDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		blocked := filepath.Join(dir, "snapshot.json.tmp")
		if err := os.Mkdir(blocked, 0o700); err != nil {
			t.Fatal(err)
		}
		ended := run(t, s)
		if err := s.Set(t.Context(), owner, sticky); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3500 * time.Millisecond)
		if got := s.Stats(); got.SaveErrors < 3 || got.Saves != 0 {
			t.Fatalf("stats %+v", got)
		}
		if err := os.Remove(blocked); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := s.Stats(); got.Saves != 1 {
			t.Fatalf("stats %+v", got)
		}
		if err := os.Mkdir(blocked, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := s.Set(t.Context(), owner, sticky); err != nil {
			t.Fatal(err)
		}
		if err := ended(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err == nil || !strings.Contains(err.Error(), "snapshot.json") {
			t.Fatalf("close: %v", err)
		}
	})
}

func TestUnreadableSnapshot(t *testing.T) {
	dir := t.TempDir()
	s, err := sessions.Open(t.Context(), sessions.Config{StateDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Set(t.Context(), owner, sticky); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "snapshot.json")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ content, want string }{
		"empty":      {"", "does not begin like a snapshot"},
		"other":      {"hello\n", "does not begin like a snapshot"},
		"cut short":  {string(good[:len(good)/2]), "cut off"},
		"cut by one": {string(good[:len(good)-1]), "cut off"},
		"header":     {string(good[:strings.Index(string(good), "\n")+1]), "cut off"},
		"changed":    {strings.Replace(string(good), "thread-1", "thread-2", 1), "cut off or changed"},
		"appended":   {string(good) + "x", "cut off or changed"},
		"newer":      {strings.Replace(string(good), ":1,", ":2,", 1), "version 2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := sessions.Open(t.Context(), sessions.Config{StateDir: dir})
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), file) ||
				!strings.Contains(err.Error(), "move it away") {
				t.Fatalf("open: %v; want %q, the file's name and what to do", err, tt.want)
			}
			if after, err := os.ReadFile(file); err != nil || string(after) != tt.content {
				t.Fatalf("the file was touched: %q, %v", after, err)
			}
		})
	}
	if err := os.WriteFile(file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	wantSticky(t, open(t, sessions.Config{StateDir: dir}), sticky) // and the lock was given back each time
}
