package sessions_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/sessions"
)

func TestStateDir(t *testing.T) {
	base := t.TempDir()
	tests := []struct {
		name string
		env  map[string]string
		want string // relative to base; "" an error
	}{
		{"xdg", map[string]string{"XDG_STATE_HOME": base + "/x", "HOME": base}, "x/switchboard"},
		{"home", map[string]string{"HOME": base + "/me"}, "me/.local/state/switchboard"},
		{"relative xdg is none", map[string]string{"XDG_STATE_HOME": "state", "HOME": base}, ".local/state/switchboard"},
		{"nothing", nil, ""},
		{"relative home", map[string]string{"HOME": "me"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, err := sessions.StateDir(func(key string) string { return tt.env[key] })
			if tt.want == "" {
				if err == nil || !strings.Contains(err.Error(), "XDG_STATE_HOME") {
					t.Fatalf("%q, %v; want an error that says what to set", dir, err)
				}
				return
			}
			if err != nil || dir != filepath.Join(base, tt.want) {
				t.Fatalf("%q, %v", dir, err)
			}
			if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
				t.Fatalf("mode %v, %v", info.Mode(), err)
			}
		})
	}
}

// TestStateDirOfOthers: the mode and the owner of an existing directory are checked.
func TestStateDirOfOthers(t *testing.T) {
	tests := []struct {
		name   string
		mode   os.FileMode
		file   string // in it
		as     int    // user who runs us; 0 for the owner
		refuse string
	}{
		{"ours alone", 0o700, "store.db", 0, ""},
		{"others can read", 0o755, "store.db", 0, ""},
		{"others can write, nothing in it", 0o777, "", 0, ""},
		{"the group can write, nothing in it", 0o775, "", 0, ""},
		{"others can write", 0o707, "store.db", 0, "chmod 700"},
		{"the group can write", 0o770, "store.db", 0, "chmod 700"},
		{"of somebody else", 0o700, "", 4711, fmt.Sprintf("belongs to user %d, not to user 4711", os.Geteuid())},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			base := t.TempDir()
			dir := filepath.Join(base, "switchboard")
			must(t, os.Mkdir(dir, 0o700))
			if tt.file != "" {
				must(t, os.WriteFile(filepath.Join(dir, tt.file), nil, 0o600))
			}
			if tt.as != 0 {
				sessions.RunAs(t, tt.as)
			}
			must(t, os.Chmod(dir, tt.mode))
			looked := sessions.LookDir(dir)
			if (looked == nil) != (tt.refuse == "") || looked != nil && !strings.Contains(looked.Error(), tt.refuse) {
				t.Errorf("a look says %v", looked)
			}
			if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != tt.mode.Perm() {
				t.Errorf("a look changed it to %v, %v", info.Mode(), err)
			}
			for range 2 { // a second try is refused, too
				_, err := sessions.StateDir(func(string) string { return base })
				audit, auditErr := sessions.OpenAudit(dir)
				if tt.refuse != "" {
					for _, err := range []error{err, auditErr} {
						if err == nil || !strings.Contains(err.Error(), tt.refuse) || !strings.Contains(err.Error(), dir) {
							t.Fatalf("%v, want a refusal that says %s", err, tt.refuse)
						}
					}
					continue
				}
				if err != nil || auditErr != nil {
					t.Fatal(err, auditErr)
				}
				must(t, audit.Close())
				if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
					t.Fatalf("mode %v, %v", info.Mode(), err)
				}
			}
		})
	}
}

// holdEnv names the directory that the test program holds as a second process.
const holdEnv = "SWITCHBOARD_TEST_HOLD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdEnv); dir != "" {
		hold(dir)
		return
	}
	os.Exit(m.Run())
}

// hold opens the store, prints that, and waits until its standard input ends.
func hold(dir string) {
	if _, err := sessions.HoldDir(dir); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("held")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

func TestSecondProcess(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdEnv+"="+dir)
	in, err := cmd.StdinPipe()
	must(t, err)
	defer func() { _ = in.Close() }()
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	said := make([]byte, 5)
	if _, err := out.Read(said); err != nil || string(said) != "held\n" {
		t.Fatalf("the other process said %q, %v", said, err)
	}
	_, err = sessions.HoldDir(dir)
	if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(),
		fmt.Sprintf("process %d)", cmd.Process.Pid)) {
		t.Fatalf("open: %v, want a refusal that names %s and process %d", err, dir, cmd.Process.Pid)
	}
	if err := cmd.Process.Kill(); err != nil { // a crash gives the lock back
		t.Fatal(err)
	}
	_ = cmd.Wait()
	d, err := sessions.HoldDir(dir)
	must(t, err)
	defer d.Close()
	if !d.Held() {
		t.Error("it is not held")
	}
	must(t, os.Remove(filepath.Join(dir, "lock")))
	if d.Held() {
		t.Error("a lock that is gone is held")
	}
}

// TestGivenBackBesideAFork: a directory that is closed while a child process begins can be taken at once.
func TestGivenBackBesideAFork(t *testing.T) {
	dir := t.TempDir()
	d, err := sessions.HoldDir(dir)
	must(t, err)
	a, err := sessions.OpenAudit(dir)
	must(t, err)
	sessions.Fork(t, d, a)
	d.Close()
	must(t, a.Close())
	d, err = sessions.HoldDir(dir)
	must(t, err)
	d.Close()
	openAudit(t, dir)
}

func TestStateDirThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	dir := filepath.Join(file, "state")
	if _, err := sessions.HoldDir(dir); err == nil || !strings.Contains(err.Error(), dir+" cannot be made") ||
		!strings.Contains(err.Error(), "XDG_STATE_HOME") {
		t.Fatalf("below a file: %v", err)
	}
}

// TestOwnPath: a socket is trusted only in a directory of our own.
func TestOwnPath(t *testing.T) {
	dir := t.TempDir()
	for mode, ours := range map[os.FileMode]bool{0o700: true, 0o755: true, 0o770: false, 0o777: false} {
		must(t, os.Chmod(dir, mode))
		if got := sessions.OwnPath(dir); got != ours {
			t.Errorf("mode %04o: %t", mode, got)
		}
	}
	if sessions.OwnPath(filepath.Join(dir, "not-there")) {
		t.Error("none counts as ours")
	}
	must(t, os.Chmod(dir, 0o700))
	if sessions.RunAs(t, 12345); sessions.OwnPath(dir) {
		t.Error("a directory of somebody else's counts as ours")
	}
}

// TestStateDirTakesNothing: a look reports that a start could write nothing into a directory, existing or not, and
// what to do.
func TestStateDirTakesNothing(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "state", "switchboard")
	look := func(words ...string) {
		t.Helper()
		err := sessions.LookDir(dir)
		if (err == nil) != (words == nil) {
			t.Fatalf("a look says %v, want %q", err, words)
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("a look says %v, want %q", err, w)
			}
		}
	}
	look()
	t.Run("made in one that is read only", func(t *testing.T) {
		sessions.ReadOnly(t, base)
		look(dir, "cannot be written", base+": read-only", "XDG_STATE_HOME")
	})
	must(t, os.MkdirAll(dir, 0o700))
	look()
	t.Run("read only", func(t *testing.T) {
		sessions.ReadOnly(t, dir)
		look("cannot be written", dir+": read-only", "XDG_STATE_HOME")
		if err := sessions.Writable(dir); err == nil || err.Error() != sessions.LookDir(dir).Error() {
			t.Errorf("a start says %v", err)
		}
	})
	t.Run("full", func(t *testing.T) {
		sessions.DiskWith(t, 4096)
		look(dir, "full (4 KiB are free)", "make room")
	})
	look()
}

// TestStateDirFarAway: a store in a file needs locks, which promise nothing on a network file system. A store in a
// Redis needs none.
func TestStateDirFarAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "switchboard")
	_, err := sessions.StateDir(func(string) string { return filepath.Dir(dir) })
	must(t, err)
	sessions.FarAway(t, dir)
	if err := sessions.LookDir(dir); err != nil {
		t.Errorf("refused whatever remembers: %v", err)
	}
	_, held := sessions.HoldDir(dir)
	for _, err := range []error{sessions.OnNetwork(dir), held} {
		if err == nil || !strings.Contains(err.Error(), "network file system (NFS)") ||
			!strings.Contains(err.Error(), "use a Redis") {
			t.Errorf("a file there: %v", err)
		}
	}
}
