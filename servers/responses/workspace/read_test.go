package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchboard/servers/responses/sandbox"
)

// A place is a workspace with files, beside files that must not be reached.
func place(t *testing.T, trusted bool) *Workspace {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"in/a.go": "package a\n\nfunc A() {}\n", "in/sub/b.go": "package b\n", "in/sub/c.txt": "one\ntwo\nthree\n",
		"in/bin":         "\x00\x01",
		"in/.git/config": "package git\n", "in/pic.png": "\x89PNG\r\n\x1a\n....",
		"in/long.txt": strings.Repeat("x", 200<<10) + "\nend\n",
		"secret":      "secret\n",
	}
	for name, text := range files {
		name = filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(name), 0o700))
		must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	for name, to := range map[string]string{"in/out": "../secret", "in/up": "..", "in/inside.txt": "sub/c.txt"} {
		must(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	must(t, syscall.Mkfifo(filepath.Join(dir, "in/pipe"), 0o600))
	give(t, dir)
	w, err := Open(t.Context(), Config{Dir: filepath.Join(dir, "in"), Trusted: trusted, User: somebody(t)})
	must(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// somebody is the user for commands if the tests are root, else nil.
func somebody(t *testing.T) *sandbox.User {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := sandbox.LookupUser("nobody")
	must(t, err)
	return u
}

// give gives a temporary directory and its content to the user for commands, and makes the way to it accessible.
func give(t *testing.T, dir string) {
	t.Helper()
	u := somebody(t)
	if u == nil {
		return
	}
	err := filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(name, u.UID, u.GID))
	})
	must(t, errors.Join(err, os.Chmod(filepath.Dir(dir), 0o755)))
}

func use(t *testing.T, w *Workspace, name, args string) Result {
	t.Helper()
	return w.Run(t.Context(), name, json.RawMessage(args), Call{Out: io.Discard})
}

// TestStopCutsShort: neither a large file nor a large workspace holds up a stop, and an edit that was stopped before
// its links were known is not made.
func TestStopCutsShort(t *testing.T) {
	w := place(t, true)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for range 10 {
		for tool, args := range map[string]string{"read_file": `{"path":"long.txt"}`, "grep": `{"pattern":"x"}`,
			"write_file": `{"path":"a.go","content":"x"}`} {
			if got := w.Run(stopped, tool, json.RawMessage(args), Call{Out: io.Discard}); !got.Failed {
				t.Fatalf("%s goes on: %.100s", tool, got.Text)
			}
		}
	}
	if all, err := w.links(stopped); err == nil {
		t.Errorf("it looked for links: %v", all)
	}
}

func TestReading(t *testing.T) {
	w := place(t, false)
	for _, c := range []struct{ tool, args, want string }{
		{"read_file", `{"path":"a.go","offset":null,"limit":null}`, "package a\n\nfunc A() {}\n"},
		{"read_file", `{"path":"./sub/../a.go","offset":3}`, "func A() {}\n"},
		{"read_file", `{"path":"sub/c.txt","offset":2,"limit":1}`, "two\n[more follows; go on with offset 3]\n"},
		{"read_file", `{"path":"sub/c.txt","offset":9}`, "Error: it has only 3 lines"},
		{"read_file", `{"path":"inside.txt"}`, "one\ntwo\nthree\n"},
		{"read_file", `{"path":"` + w.dir + `/a.go"}`, "package a\n\nfunc A() {}\n"},
		{"read_file", `{"path":"bin"}`, "Error: bin is not text (application/octet-stream, 2 bytes)"},
		{"read_file", `{"path":"pipe"}`, "Error: pipe is no regular file"},
		{"read_file", `{"path":"sub"}`, "Error: sub is no regular file"},
		{"read_file", `{"path":"none"}`, "Error: none: no such file or directory"},
		{"read_file", `{"path":"../secret"}`, "Error: ../secret is outside of the workspace"},
		{"read_file", `{"path":"/etc/hostname"}`, "Error: /etc/hostname is outside of the workspace"},
		{"read_file", `{"path":"out"}`, "Error: out: path escapes from parent"},
		{"read_file", `{"path":"up/secret"}`, "Error: up/secret: path escapes from parent"},
		{"read_file", `{"name":"a.go"}`, `Error: the arguments do not fit: json: unknown field "name"`},
		{"read_file", `[]`, `Error: the arguments do not fit: "" is array`},
		{"read_file", `{"path":7}`, `Error: the arguments do not fit: "path" is number`},
		{"list_dir", `{"path":"sub"}`, "b.go\nc.txt\n"},
		{"list_dir", `{"path":".."}`, "Error: .. is outside of the workspace"},
		{"list_dir", `{"path":"up"}`, "Error: up: path escapes from parent"},
		{"glob", `{"pattern":"**/*.go"}`, "a.go\nsub/b.go"},
		{"glob", `{"pattern":"*.go"}`, "a.go"},
		{"glob", `{"pattern":"sub/?.txt"}`, "sub/c.txt"},
		{"glob", `{"pattern":"../*"}`, "(none)"},
		{"grep", `{"pattern":"^package","path":null,"glob":null}`, "a.go:1: package a\nsub/b.go:1: package b"},
		{"grep", `{"pattern":"secret"}`, "(none)"},
		{"grep", `{"pattern":"o","path":"sub","glob":"**/*.txt"}`, "sub/c.txt:1: one\nsub/c.txt:2: two"},
		{"grep", `{"pattern":"("}`, "Error: error parsing regexp: missing closing ): `(`"},
		{"grep", `{"pattern":"secret","path":"up"}`, "Error: up: path escapes from parent"},
		{"no_tool", `{}`, "Error: there is no tool no_tool"},
	} {
		if got := use(t, w, c.tool, c.args); got.Text != c.want || got.Failed != strings.HasPrefix(c.want, "Error") {
			t.Errorf("%s %s: %q, want %q", c.tool, c.args, got.Text, c.want)
		}
	}
	if got := use(t, w, "list_dir", `{"path":"."}`).Text; !strings.Contains(got, "sub/\n") ||
		!strings.Contains(got, "pipe\n") {
		t.Errorf("the workspace has %q", got)
	}
	if got := use(t, w, "read_file", `{"path":"pic.png"}`); len(got.Pictures) != 1 ||
		!strings.HasPrefix(got.Pictures[0], "data:image/png;base64,iVBOR") {
		t.Errorf("the picture is %+v", got)
	}
	if got := use(t, w, "read_file", `{"path":"long.txt"}`).Text; len(got) > maxRead+100 ||
		!strings.HasSuffix(got, "offset 2]\n") {
		t.Errorf("a long line gives %d bytes", len(got))
	}
}

// TestMovedWorkspace: the workspace is the directory that was opened, whatever has its name later.
func TestMovedWorkspace(t *testing.T) {
	w := place(t, false)
	must(t, os.Rename(w.dir, w.dir+"-moved"))
	must(t, os.Symlink("/etc", w.dir))
	if got := use(t, w, "read_file", `{"path":"a.go"}`); got.Failed {
		t.Error(got.Text)
	}
	if got := use(t, w, "read_file", `{"path":"hostname"}`); !got.Failed {
		t.Errorf("read %q", got.Text)
	}
}

func TestBounded(t *testing.T) {
	got := bounded(strings.Repeat("a", 100)+strings.Repeat("é", 100)+strings.Repeat("b", 100), 50)
	if want := strings.Repeat("a", 25) + "\n[… 350 bytes are left out …]\n" + strings.Repeat("b", 25); got != want {
		t.Errorf("%q", got)
	}
}

// TestStrictSchemas: every parameter is required and no others are accepted, as strict tools demand.
func TestStrictSchemas(t *testing.T) {
	for _, tool := range All() {
		properties, required := tool.Parameters["properties"].(map[string]any), tool.Parameters["required"].([]string)
		if len(properties) != len(required) || tool.Parameters["additionalProperties"] != false || tool.Description == "" {
			t.Errorf("%s: %v", tool.Name, tool.Parameters)
		}
		for _, name := range required {
			if properties[name] == nil {
				t.Errorf("%s requires %s", tool.Name, name)
			}
		}
	}
}
