package host

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestHolder: the error for a session that another program has open names that program.
func TestHolder(t *testing.T) {
	const thread = "01a1fac5-0000-7c13-9ff2-be9c54078f33"
	home := t.TempDir()
	t.Setenv("CODEX_HOME", home)
	must(t, os.Mkdir(filepath.Join(home, "thread-writer-locks"), 0o700))
	f, err := os.Create(filepath.Join(home, "thread-writer-locks", thread+".lock"))
	must(t, err)
	defer f.Close()
	const refused = `{"id":1,"error":{"code":-32600,"message":"thread ` + thread + ` already has an active writer"}}`
	ask := func() string {
		g := codexGate(Policy{})
		_, err := g.fromService([]byte(`{"id":1,"method":"thread/resume","params":{"threadId":"` + thread + `"}}`))
		must(t, err)
		return g.hears(refused)
	}
	if got := ask(); got != refused {
		t.Errorf("a lock that nobody has: %s", got)
	}
	must(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	var told struct {
		ID    int
		Error struct {
			Message string
			Data    struct{ Holder string }
		}
	}
	if err := json.Unmarshal([]byte(ask()), &told); err != nil || told.ID != 1 ||
		!strings.Contains(told.Error.Message, "already has an active writer: ") {
		t.Errorf("told %+v, %v", told, err)
	}
}

// TestProgramOf: a process has the name of the editor or terminal that it runs in.
func TestProgramOf(t *testing.T) {
	t.Parallel()
	all := map[int]psEntry{
		1: {0, "?", "systemd"}, 10: {1, "?", "code"}, 11: {10, "?", "node"}, 12: {11, "?", "codex"},
		20: {1, "?", "gnome-terminal-server"}, 21: {20, "pts/3", "bash"}, 22: {21, "pts/3", "codex"},
		30: {1, "tty1", "bash"}, 31: {30, "tty1", "codex"}, 40: {1, "?", "codex"}, 50: {50, "?", "loop"},
	}
	look := func(pid int) (psEntry, bool) { r, ok := all[pid]; return r, ok }
	for pid, want := range map[int]string{12: "VS Code", 22: "Terminal", 31: "Terminal", 40: "", 50: "", 99: ""} {
		if got := programOf(pid, look); got != want {
			t.Errorf("process %d is %q, want %q", pid, got, want)
		}
	}
}
