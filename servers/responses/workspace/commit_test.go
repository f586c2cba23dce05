//go:build linux

package workspace

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEditRace: an edit never writes through a link that is put into its path meanwhile.
func TestEditRace(t *testing.T) {
	w := place(t, true)
	git := filepath.Join(w.dir, ".git")
	must(t, errors.Join(os.WriteFile(filepath.Join(git, "config"), []byte("kept\n"), 0o600),
		os.Symlink(".git", filepath.Join(w.dir, "link"))))
	ctx, cancel := context.WithCancel(t.Context())
	swapped := make(chan error)
	go func() {
		var err error
		for err == nil && ctx.Err() == nil {
			err = unix.Renameat2(unix.AT_FDCWD, filepath.Join(w.dir, "sub"), unix.AT_FDCWD, filepath.Join(w.dir, "link"),
				unix.RENAME_EXCHANGE)
		}
		swapped <- err
	}()
	wrote, yes := 0, &person{yes: true} // a file without an ending is asked for
	for range 3000 {
		for _, text := range []string{"[core] fsmonitor = evil\n", "[core] fsmonitor = worse\n"} {
			if got := yes.use(t, w, "write_file", args{"path": "sub/config", "content": text}); !got.Failed {
				wrote++
			}
		}
		if text, err := os.ReadFile(filepath.Join(git, "config")); err != nil || string(text) != "kept\n" {
			t.Fatalf(".git/config is %q, %v", text, err)
		}
	}
	cancel()
	must(t, <-swapped)
	if entries, err := os.ReadDir(git); err != nil || len(entries) != 1 {
		t.Errorf(".git has %v, %v", entries, err)
	}
	if wrote == 0 {
		t.Error("no edit was made")
	}
}

// TestNotMade: the error names files that could not be restored, and does not say that nothing was changed.
func TestNotMade(t *testing.T) {
	full, held := errors.New("no space left"), errors.New("a.go could not be put back: no space left")
	if got := notMade(full, nil).Error(); got != "nothing was changed: no space left" {
		t.Error(got)
	}
	if got := notMade(full, held); got.Error() != "some files are changed: a.go could not be put back: no space "+
		"left\nno space left" || !errors.Is(got, full) {
		t.Error(got)
	}
}

// TestTurns: an edit and a command wait for the running command, and a stop ends the wait. Those of an overlapping
// workspace do not wait.
func TestTurns(t *testing.T) {
	w := place(t, true)
	needExec(t, w)
	over, err := Open(t.Context(), Config{Dir: filepath.Join(w.dir, "sub"), Trusted: true, User: somebody(t)})
	must(t, err)
	t.Cleanup(func() { _ = over.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	ended, begun := make(chan Result, 1), make(chan struct{})
	go func() {
		out := &printer{on: func() { close(begun) }}
		ended <- w.Run(ctx, "exec", encoded(t, args{"command": "echo on; sleep 600"}), Call{Out: out})
	}()
	<-begun
	why := errors.New("stopped")
	stopped, stop := context.WithCancelCause(t.Context())
	stop(why)
	for name, a := range map[string]args{"exec": {"command": "echo x > x.txt"}, "write_file": {"path": "x.txt", "content": "x"}} {
		if got := w.Run(stopped, name, encoded(t, a), Call{Out: io.Discard}); got.Text != "Error: stopped" {
			t.Errorf("%s: %q", name, got.Text)
		}
		if got := use(t, over, name, string(encoded(t, a))); got.Failed {
			t.Errorf("%s in an overlapping one: %s", name, got.Text)
		}
	}
	cancel()
	<-ended
	if got := use(t, w, "write_file", `{"path":"y.txt","content":"y"}`); got.Failed {
		t.Error(got.Text)
	}
}

// must ends a test that cannot go on after err.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
