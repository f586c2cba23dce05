package workspace

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"switchboard/handoff/risk"
	"switchboard/servers/responses/sandbox"
)

// put makes files in a workspace, owned by the user for commands.
func put(t *testing.T, w *Workspace, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(w.dir, name)
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, []byte(text), 0o644))
	}
	give(t, filepath.Dir(w.dir))
}

// laterLeft returns the files that other programs run later and whose content is not "kept\n".
func laterLeft(t *testing.T, w *Workspace) []string {
	t.Helper()
	var left []string
	err := filepath.WalkDir(w.dir, func(full string, _ fs.DirEntry, err error) error {
		name, _ := filepath.Rel(w.dir, full)
		if about, statErr := os.Stat(full); err != nil || statErr == nil && about.IsDir() || !risk.RunsLater(name) {
			return err
		}
		if text, err := os.ReadFile(full); err != nil || string(text) != "kept\n" {
			left = append(left, fmt.Sprintf("%s: %q", name, text))
		}
		return nil
	})
	must(t, err)
	return left
}

// TestLaterKept: files that other programs run later can be read but not written by a command, at any depth and by any
// way.
func TestLaterKept(t *testing.T) {
	w := place(t, true)
	needExec(t, w)
	kept := map[string]string{".envrc": "kept\n", ".git/config": "kept\n", "sub/tools/hook": "kept\n"}
	for _, name := range risk.LaterNames() {
		if filepath.Ext(name) == "" && !strings.HasPrefix(filepath.Base(name), "Jenkins") {
			name += "/x"
		}
		kept["vendor/deep/"+name] = "kept\n"
	}
	put(t, w, kept)
	must(t, os.Symlink("sub/tools", filepath.Join(w.dir, ".husky")))
	give(t, filepath.Dir(w.dir))
	names := strings.Join(slices.Collect(maps.Keys(kept)), "\n")
	const every = `while read -r at; do
		cd "$ROOT/$(dirname "$at")" && name=$(basename "$at") && cat "$name" || echo "BAD cat $at"
		for act in 'echo x >' 'rm -rf' 'mv -t /tmp' 'ln -t ..' 'chmod 600' 'touch'; do
			eval "$act $name" 2>/dev/null && echo "BAD $act $at"
		done
	done`
	got := use(t, w, "exec", string(encoded(t, args{"command": "ROOT=$PWD; " + every + " <<'END'\n" + names + "\nEND\n"})))
	if strings.Contains(got.Text, "BAD") || strings.Count(got.Text, "kept\n") != len(kept) {
		t.Error(got.Text)
	}
	for _, line := range []string{
		"mv vendor other; echo x > other/deep/.git/x; mv other vendor", "! mv -T --exchange sub .git",
		"rm .husky; mkdir .husky; echo x > .husky/hook",
		"rm -rf .git vendor .envrc; true",
	} {
		use(t, w, "exec", string(encoded(t, args{"command": line})))
		if left := laterLeft(t, w); len(left) > 0 {
			t.Errorf("%s: there is %q", line, left)
		}
	}
	for name := range kept {
		if text, err := os.ReadFile(filepath.Join(w.dir, name)); err != nil || string(text) != "kept\n" {
			t.Errorf("%s is %q, %v", name, text, err)
		}
	}
}

// TestLaterSetAside: a file that a command makes and that other programs would run later is renamed when the command
// has ended, however it ends, and the model is told.
func TestLaterSetAside(t *testing.T) {
	for _, c := range []struct{ line, told, aside string }{
		{"echo x > .envrc", ".envrc is now .envrc.set-aside", ".envrc.set-aside"},
		{"mkdir -p .vscode && echo x > .vscode/tasks.json; exit 3", ".vscode is now .vscode.set-aside",
			".vscode.set-aside/tasks.json"},
		{"mkdir -p a/b/.git && echo x > a/b/.git/config; sleep 60", "a/b/.git is now a/b/.git.set-aside",
			"a/b/.git.set-aside/config"},
		{"mkdir -p .GIT. && echo x > .GIT./config", ".GIT. is now .GIT..set-aside", ".GIT..set-aside/config"},
		{"mkdir -p .git2/.husky && echo x > .git2/.husky/x && mv .git2 .cursor", ".cursor is now .cursor.set-aside",
			".cursor.set-aside/.husky.set-aside/x"},
		{"echo x > hook; ln -s hook AGENTS.md", "AGENTS.md is now AGENTS.md.set-aside", "AGENTS.md.set-aside"},
		{"mkdir -p d/.github && echo x > d/.github/x && chmod 0100 d", "d/.github is now d/.github.set-aside",
			"d/.github.set-aside/x"},
		{"mkdir -p d/.yarn/releases && echo x > d/.yarn/releases/x", "d/.yarn/releases is now d/.yarn/releases.set-aside",
			"d/.yarn/releases.set-aside/x"},
		{"echo x > .envrc.set-aside; echo x > .envrc", ".envrc is now .envrc.set-aside-2", ".envrc.set-aside-2"},
	} {
		w := place(t, true)
		needExec(t, w)
		put(t, w, map[string]string{".git/config": "kept\n"})
		got := use(t, w, "exec", string(encoded(t, args{"command": c.line, "seconds": 5})))
		if !strings.Contains(got.Text, "\nSet aside, because other programs run or obey it later: ") ||
			!strings.Contains(got.Text, c.told) {
			t.Errorf("%s: %q", c.line, got.Text)
		}
		if left := laterLeft(t, w); len(left) > 0 {
			t.Errorf("%s: there is %q", c.line, left)
		}
		if text, err := os.ReadFile(filepath.Join(w.dir, c.aside)); err != nil || string(text) != "x\n" {
			t.Errorf("%s: %s is %q, %v", c.line, c.aside, text, err)
		}
	}
}

// TestLaterAsked: a file that other programs run later can be made by an edit after a yes, and by a command that a
// person let out of the sandbox.
func TestLaterAsked(t *testing.T) {
	w := place(t, true)
	needExec(t, w)
	p := &person{yes: true}
	if got := p.use(t, w, "write_file", args{"path": "sub/.vscode/tasks.json", "content": "{}"}); got.Failed ||
		len(p.asked) != 1 {
		t.Errorf("%q, %d questions", got.Text, len(p.asked))
	}
	if got := p.use(t, w, "exec", args{"command": "echo x > .envrc", "outside": true}); got.Text != "Exit code: 0\n" ||
		len(p.asked) != 2 {
		t.Errorf("%q, %d questions", got.Text, len(p.asked))
	}
	if _, err := os.Stat(filepath.Join(w.dir, ".envrc")); err != nil {
		t.Error(err)
	}
	if got := use(t, w, "exec", `{"command":"ls; cat sub/.vscode/tasks.json"}`); got.Failed ||
		strings.Contains(got.Text, "Set aside") {
		t.Errorf("what was there: %q", got.Text)
	}
	w.cfg.Sandbox = sandbox.ReadOnly
	if got := use(t, w, "exec", `{"command":"touch .bashrc"}`); !got.Failed || strings.Contains(got.Text, "Set aside") {
		t.Errorf("read-only: %q", got.Text)
	}
}

// BenchmarkLook measures the walk through a large workspace, which is made before and after each command.
func BenchmarkLook(b *testing.B) {
	dir := b.TempDir()
	for i := range 1000 {
		must(b, os.MkdirAll(filepath.Join(dir, fmt.Sprint("d", i%30), fmt.Sprint("e", i)), 0o755))
		for j := range 50 {
			must(b, os.WriteFile(filepath.Join(dir, fmt.Sprint("d", i%30), fmt.Sprint("e", i), fmt.Sprint("file", j, ".txt")),
				nil, 0o644))
		}
	}
	w, err := Open(b.Context(), Config{Dir: dir})
	must(b, err)
	b.Cleanup(func() { _ = w.Close() })
	for b.Loop() {
		_, _, err := w.later()
		must(b, err)
	}
}
