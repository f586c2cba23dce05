package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/servers/responses/sandbox"
)

func encoded(t *testing.T, v any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(v)
	must(t, err)
	return data
}

func TestMain(m *testing.M) {
	sandbox.Main()
	os.Exit(m.Run())
}

// A person answers questions.
type person struct {
	yes   bool
	err   error
	asked []handoff.Question
}

func (p *person) ask(_ context.Context, q handoff.Question) (bool, error) {
	p.asked = append(p.asked, q)
	return p.yes, p.err
}

func (p *person) use(t *testing.T, w *Workspace, name string, args any) Result {
	t.Helper()
	return w.Run(t.Context(), name, encoded(t, args), Call{Out: io.Discard, Ask: p.ask})
}

// needExec skips the test without a sandbox. In CI that is a failure.
func needExec(t *testing.T, w *Workspace) {
	t.Helper()
	switch {
	case w.noExec == nil:
	case os.Getenv("CI") == "true":
		t.Fatal(w.noExec)
	default:
		t.Skip(w.noExec)
	}
}

type args = map[string]any

// A printer keeps what a tool prints, and calls on at the first of it, if there is one.
type printer struct {
	strings.Builder
	on func()
}

func (p *printer) Write(text []byte) (int, error) {
	if p.on != nil {
		p.on()
	}
	p.on = nil
	return p.Builder.Write(text)
}

// TestWhoIsAsked: whether a person is asked depends on the policy and the act.
func TestWhoIsAsked(t *testing.T) {
	const free, asks, denied = "free", "asks", "denied"
	acts := map[string]struct {
		tool string
		args args
	}{
		"reads":   {"exec", args{"command": "cat a.go"}},
		"builds":  {"exec", args{"command": "touch built"}},
		"outside": {"exec", args{"command": "cat a.go", "outside": true, "reason": "the network"}},
		"edits":   {"write_file", args{"path": "a.txt", "content": "x"}},
		"hooks":   {"write_file", args{"path": ".git/hooks/pre-commit", "content": "x"}},
	}
	for _, c := range []struct {
		approval string
		mode     sandbox.Mode
		want     map[string]string
	}{
		{Untrusted, sandbox.WorkspaceWrite, map[string]string{"reads": free, "builds": asks, "outside": asks, "edits": asks,
			"hooks": asks}},
		{OnRequest, sandbox.WorkspaceWrite, map[string]string{"reads": free, "builds": free, "outside": asks, "edits": free,
			"hooks": asks}},
		{Never, sandbox.WorkspaceWrite, map[string]string{"reads": free, "builds": free, "outside": denied, "edits": free,
			"hooks": denied}},
		{OnRequest, sandbox.ReadOnly, map[string]string{"reads": free, "outside": asks, "edits": denied, "hooks": denied}},
		{Untrusted, sandbox.Full, map[string]string{"reads": free, "builds": asks, "outside": free, "edits": asks,
			"hooks": asks}},
		{OnRequest, sandbox.Full, map[string]string{"reads": free, "builds": asks, "outside": free, "edits": free,
			"hooks": asks}},
		{Never, sandbox.Full, map[string]string{"reads": free, "builds": free, "outside": free, "edits": free,
			"hooks": free}},
	} {
		w := place(t, true)
		needExec(t, w)
		w.cfg.Approval, w.cfg.Sandbox = c.approval, c.mode
		for name, want := range c.want {
			p := &person{}
			got := p.use(t, w, acts[name].tool, acts[name].args)
			is := free
			switch {
			case len(p.asked) > 0 && strings.HasPrefix(got.Text, "Error: declined"):
				is = asks
			case strings.HasPrefix(got.Text, "Error: denied"):
				is = denied
			}
			if is != want || (is == free) == got.Failed {
				t.Errorf("%s, %s: %s is %s: %q", c.approval, c.mode, name, is, got.Text)
			}
		}
	}
}

// TestAsked: a question says what would be done, where, and why; nothing is done before the answer, and only with a
// yes.
func TestAsked(t *testing.T) {
	w := place(t, true)
	needExec(t, w)
	p := &person{yes: true}
	outside := args{"command": "touch ../beside && pwd", "dir": "sub", "outside": true, "reason": "it lies beside"}
	if got := p.use(t, w, "exec", outside); got.Failed || !strings.HasSuffix(got.Text, "/sub\n") {
		t.Error(got.Text)
	}
	q := p.asked[0]
	if q.Kind != handoff.QuestionCommand || q.Command != outside["command"] || q.Cwd != w.dir+"/sub" ||
		q.Reason != "it lies beside" ||
		!strings.Contains(q.Text, "outside of its sandbox") || q.Asked.IsZero() ||
		!slices.Contains(q.Decisions, handoff.DecisionStop) {
		t.Errorf("%+v", q)
	}
	w.cfg.Approval = Untrusted
	patch := args{"patch": patchOf(updateFile+"a.go", "@@", "-package a", "+package z", deleteFile+"sub/b.go")}
	out, looked := &printer{}, ""
	got := w.Run(t.Context(), "apply_patch", encoded(t, patch),
		Call{Out: out, Ask: func(_ context.Context, q handoff.Question) (bool, error) {
			if q.Kind != handoff.QuestionFileChange || !slices.Equal(q.Changes,
				[]string{w.dir + "/a.go", w.dir + "/sub/b.go"}) {
				t.Errorf("%+v", q)
			}
			text, err := os.ReadFile(filepath.Join(w.dir, "a.go"))
			looked = string(text)
			return true, err
		}})
	shown := out.String()
	if got.Failed || !strings.HasPrefix(looked, "package a") || !strings.Contains(shown, "-package a\n+package z\n") ||
		!strings.Contains(shown, "+++ /dev/null\n") {
		t.Errorf("%+v, shown %q", got, shown)
	}
	gone := errors.New("interrupted")
	if got := (&person{err: gone}).use(t, w, "exec", outside); got.Text != "Error: interrupted" {
		t.Error(got.Text)
	}
}

// TestLayerOffered: tools that may not be used are not among the allowed ones, and the list of all tools does not
// change.
func TestLayerOffered(t *testing.T) {
	all := []string{"read_file", "list_dir", "glob", "grep", "exec", "apply_patch", "write_file"}
	for _, c := range []struct {
		change func(*Workspace)
		want   []string
		about  string
	}{
		{func(w *Workspace) { w.cfg.Trusted = false }, all[:4], "Its workspace is not trusted: it only reads."},
		{func(w *Workspace) { w.noExec = nil }, all,
			"Its commands run in a sandbox and have no network; plain files that they change are taken over into the workspace."},
		{func(w *Workspace) { w.noExec, w.cfg.Sandbox = nil, sandbox.ReadOnly }, all[:5],
			"Its commands run in a sandbox, change nothing and have no network."},
		{func(w *Workspace) { w.noExec = errors.New("no kernel") }, append(all[:4:4], all[5:]...),
			"It runs no commands: no kernel."},
	} {
		w := place(t, true)
		c.change(w)
		var names []string
		for _, tool := range w.Tools() {
			names = append(names, tool.Name)
		}
		if !slices.Equal(names, all) || !slices.Equal(w.Allowed(), c.want) || w.About() != c.about {
			t.Errorf("%q: %q of %q", w.About(), w.Allowed(), names)
		}
	}
}

// TestLayerRefused: a call of a tool that is not allowed is refused, and nothing is done.
func TestLayerRefused(t *testing.T) {
	w := place(t, false)
	was := content(t, w)
	p := &person{yes: true}
	for name, a := range map[string]args{
		"exec": {"command": "touch x"}, "write_file": {"path": "x", "content": "x"},
		"apply_patch": {"patch": patchOf(addFile+"x", "+x")},
	} {
		if got := p.use(t, w, name, a); got.Text != "Error: denied: this workspace is not trusted, so it can only be read" ||
			!got.Failed {
			t.Errorf("%s: %q", name, got.Text)
		}
	}
	w.cfg.Trusted, w.noExec = true, errors.New("there is no sandbox for commands")
	if got := p.use(t, w, "exec", args{"command": "touch x",
		"outside": true}); got.Text != "Error: denied: there is no sandbox for commands" {
		t.Error(got.Text)
	}
	if content(t, w) != was || len(p.asked) > 0 {
		t.Errorf("there is %q, and %d questions were asked", content(t, w), len(p.asked))
	}
}

// TestExec: a command returns its exit code and its output; the middle of a long output is cut out.
func TestExec(t *testing.T) {
	w := place(t, true)
	needExec(t, w)
	w.cfg.Env = []string{"PATH=/usr/bin:/bin", "A=b"}
	for _, c := range []struct {
		args args
		want string
		exit int // -1 for none
	}{
		{args{"command": "echo one; echo two >&2; exit 3"}, "Exit code: 3\none\ntwo\n", 3},
		{args{"command": "cat c.txt | head -1; echo $A$B", "dir": "sub"}, "Exit code: 0\none\nb\n", 0},
		{args{"command": "true"}, "Exit code: 0\n", 0},
		{args{"command": "echo begun; sleep 60", "seconds": 1},
			"Error: it took too long and was ended, with everything that it had begun\nbegun\n", -1},
		{args{"command": " "}, "Error: there is no command", -1},
		{args{"command": strings.Repeat("x", maxLine+1)}, "Error: a command has at most 16384 bytes; write a script", -1},
		{args{"command": "ls", "dir": "../"}, "Error: .. is outside of the workspace", -1},
		{args{"command": "ls", "dir": "up"}, "Error: up: path escapes from parent", -1},
		{args{"command": "ls", "dir": "a.go"}, "Error: a.go is no directory", -1},
	} {
		got := use(t, w, "exec", string(encoded(t, c.args)))
		if got.Text != c.want || got.Failed != (c.exit != 0) || (got.Exit == nil) != (c.exit < 0) || got.Exit != nil &&
			*got.Exit != c.exit {
			t.Errorf("%v: %+v", c.args, got)
		}
	}
	if got := use(t, w, "exec",
		`{"command":"head -c 1000000 /dev/zero | tr '\\0' a; echo end"}`).Text; !strings.Contains(got,
		"\n[… 950852 bytes are left out …]\n") || strings.Count(got, "…") != 2 || !strings.HasSuffix(got, "aend\n") {
		t.Errorf("much output gives %d bytes", len(got))
	}
	must(t, os.Rename(w.dir, w.dir+"-moved"))
	must(t, os.Mkdir(w.dir, 0o700))
	if got := use(t, w, "exec", `{"command":"touch x"}`).Text; got != "Error: the workspace was moved" {
		t.Error(got)
	}
}

// TestExecStopped: a command and its processes end with the context of the call.
func TestExecStopped(t *testing.T) {
	w := place(t, true)
	needExec(t, w)
	ctx, cancel := context.WithCancelCause(t.Context())
	out := &printer{on: func() { cancel(errors.New("interrupted")) }}
	got := w.Run(ctx, "exec", encoded(t, args{"command": "echo on; trap '' TERM INT; sleep 600 & sleep 600"}),
		Call{Out: out})
	if got.Text != "Error: interrupted" {
		t.Errorf("%q", got.Text)
	}
}

// TestEnds: of a long output the beginning and the end are kept.
func TestEnds(t *testing.T) {
	for _, n := range []int{0, 1, maxEnd, 2 * maxEnd, 2*maxEnd + 1, 10 * maxEnd} {
		for _, step := range []int{1 << 10, 3 * maxEnd} {
			e := &ends{also: io.Discard}
			text := strings.Repeat("0123456789abcdef", n/16+1)[:n]
			for at := 0; at < n; at += step {
				_, _ = e.Write([]byte(text[at:min(at+step, n)]))
			}
			want := text
			if n > 2*maxEnd {
				want = bounded(text, 2*maxEnd)
			}
			if got := e.String(); got != want {
				t.Errorf("of %d bytes by %d there are %d, want %d", n, step, len(got), len(want))
			}
			if len(e.kept) > 3*maxEnd {
				t.Errorf("%d bytes are kept", len(e.kept))
			}
		}
	}
}
