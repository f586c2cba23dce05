package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnreadableKept: a protected file that the user of commands cannot read does not stop commands.
func TestUnreadableKept(t *testing.T) {
	w := place(t, true)
	needExec(t, w)
	put(t, w, map[string]string{".envrc": "kept\n"})
	must(t, os.Chmod(filepath.Join(w.dir, ".envrc"), 0))
	if got := use(t, w, "exec", `{"command":"echo fine"}`); got.Failed || !strings.Contains(got.Text, "fine") {
		t.Errorf("it says %q", got.Text)
	}
}
