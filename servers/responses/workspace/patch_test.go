package workspace

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"switchboard/handoff"
	"switchboard/servers/responses/sandbox"
)

func patchOf(lines ...string) string {
	return strings.Join(append(append([]string{beginPatch}, lines...), endPatch), "\n")
}

// TestPatchForms: patches in the forms in which models write them.
func TestPatchForms(t *testing.T) {
	const old = "one\ntwo\n  three  \nfour\nfive\ntwo\nsix\n"
	for _, c := range []struct {
		name, old string
		lines     []string
		want      string // "" if there is an error
		problem   string
	}{
		{"a line", old, []string{"@@", " one", "-two", "+2", "   three  "}, "one\n2\n  three  \nfour\nfive\ntwo\nsix\n", ""},
		{"no mark of a hunk", old, []string{"-one", "+1"}, "1\ntwo\n  three  \nfour\nfive\ntwo\nsix\n", ""},
		{"below a line", old, []string{"@@ five", "-two", "+2"}, "one\ntwo\n  three  \nfour\nfive\n2\nsix\n", ""},
		{"two hunks", old, []string{"@@", "-one", "@@", "-six", "+6"}, "two\n  three  \nfour\nfive\ntwo\n6\n", ""},
		{"other spaces", old, []string{"@@", " three", "-four", "+4"}, "one\ntwo\n  three  \n4\nfive\ntwo\nsix\n", ""},
		{"at the end", old, []string{"@@", "-two", "-six", "+end", "*** End of File"},
			"one\ntwo\n  three  \nfour\nfive\nend\n", ""},
		{"only more, at the end", old, []string{"@@", "+seven"}, old + "seven\n", ""},
		{"only more, below a line", old, []string{"@@ one", "+1.5"}, "one\n1.5\ntwo\n  three  \nfour\nfive\ntwo\nsix\n", ""},
		{"an empty line at its end", old, []string{"@@", "-six", "+6", ""}, "one\ntwo\n  three  \nfour\nfive\ntwo\n6\n", ""},
		{"empty lines", "a\n\nb\n\n\nc\n", []string{"@@", " b", "", "", "-c", "+d"}, "a\n\nb\n\n\nd\n", ""},
		{"lines of Windows", "a\r\nb\r\n", []string{"@@", " a", "-b", "+c"}, "a\r\nc\r\n", ""},
		{"no last line end", "a\nb", []string{"@@", "-b", "+c"}, "a\nc\n", ""},
		{"an empty file", "", []string{"@@", "+a"}, "a\n", ""},
		{"not there", old, []string{"@@", "-seven"}, "", "hunk 1: these lines do not stand below line 0:\nseven"},
		{"in another order", old, []string{"@@", "-six", "@@", "-one"}, "", "hunk 2: these lines do not stand below line 7"},
		{"below nothing", old, []string{"@@ zero", "-one"}, "", `hunk 1: there is no line "zero"`},
		{"not at the end", old, []string{"@@", "-one", "*** End of File"}, "", "hunk 1: these lines"},
		{"no mark of a line", old, []string{"@@", "one"}, "",
			"line 4 of the patch: lines of a hunk begin with a space, - or +"},
	} {
		sections, err := parsePatch(patchOf(append([]string{updateFile + "f"}, c.lines...)...))
		var got string
		if err == nil {
			got, err = sections[0].apply(c.old)
		}
		if got != c.want || (err != nil) != (c.problem != "") || err != nil && !strings.HasPrefix(err.Error(), c.problem) {
			t.Errorf("%s: %q, %v, want %q, %s", c.name, got, err, c.want, c.problem)
		}
	}
}

// content returns every file of a workspace, except those of the fixture that no patch touches.
func content(t *testing.T, w *Workspace) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(w.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.Contains(name, "long") || strings.Contains(name, "bin") ||
			strings.Contains(name, "pic") {
			return err
		}
		data, err := os.ReadFile(name)
		rel, _ := filepath.Rel(w.dir, name)
		all = append(all, rel+"="+string(data))
		return err
	})
	must(t, err)
	return strings.Join(all, "|")
}

// TestChangesAreTold: the changes of an edit are shown file by file, each as a diff, within bounds.
func TestChangesAreTold(t *testing.T) {
	long := slices.Repeat([]string{"+" + strings.Repeat("x", 999)}, 70)
	w := place(t, true)
	got := use(t, w, "apply_patch", string(encoded(t, map[string]string{"patch": patchOf(slices.Concat(
		[]string{addFile + "d.txt", "+d", deleteFile + "sub/b.go", updateFile + "sub/c.txt", moveTo + "moved.txt", "@@",
			"-two", "+2", "+3"}, append([]string{addFile + "huge.txt"}, long...))...)})))
	want := []handoff.FileChange{
		{Path: "d.txt", Kind: "add", Diff: "@@ -0,0 +1 @@\n+d\n", Added: 1},
		{Path: "sub/b.go", Kind: "delete", Diff: "@@ -1 +0,0 @@\n-package b\n", Removed: 1},
		{Path: "sub/c.txt", Kind: "update", To: "moved.txt", Diff: "@@ -1,3 +1,4 @@\n one\n-two\n+2\n+3\n three\n", Added: 2,
			Removed: 1},
		{Path: "huge.txt", Kind: "add", Cut: true, Added: 70},
	}
	last := got.Changes[len(got.Changes)-1]
	size := 0
	for _, c := range got.Changes {
		size += len(c.Diff)
	}
	if size > handoff.MaxDiff || size < handoff.MaxDiff-1001 || !strings.HasSuffix(last.Diff, "\n") {
		t.Errorf("%d bytes of diffs", size)
	}
	want[3].Diff = last.Diff
	if diff := gocmp.Diff(want, got.Changes); diff != "" {
		t.Error(diff)
	}
}

// TestApplyPatch: a patch is applied as a whole or not at all.
func TestApplyPatch(t *testing.T) {
	const was = ".git/config=package git\n|a.go=package a\n\nfunc A() {}\n|sub/b.go=package " +
		"b\n|sub/c.txt=one\ntwo\nthree\n"
	for _, c := range []struct {
		name  string
		lines []string
		text  string // the result, or how it begins
		want  string // the files afterwards; "" for unchanged
	}{
		{"everything", []string{addFile + "new/d.txt", "+d", deleteFile + "sub/b.go", updateFile + "sub/c.txt", moveTo +
			"moved.txt", "@@", "-two", "+2", updateFile + "a.go", "@@", "-package a", "+package z"},
			"Done.\nA new/d.txt\nD sub/b.go\nD sub/c.txt\nA moved.txt\nM a.go",
			".git/config=package git\n|a.go=package z\n\nfunc A() {}\n|moved.txt=one\n2\nthree\n|new/d.txt=d\n"},
		{"one file twice", []string{updateFile + "sub/c.txt", "@@", "-one", "+1", updateFile + "./sub/c.txt", "@@", "-1",
			"+I"}, "Done.\nM sub/c.txt",
			strings.Replace(was, "one\n", "I\n", 1)},
		{"nothing new", []string{updateFile + "sub/c.txt", "@@", "-one", "+one"}, "Nothing had to be changed.", ""},
		{"one that does not fit", []string{addFile + "d.txt", "+d", updateFile + "a.go", "@@", "-package b"},
			"Error: nothing was changed: a.go: hunk 1", ""},
		{"there already", []string{addFile + "a.go", "+d"}, "Error: nothing was changed: a.go: it is there already", ""},
		{"not there", []string{deleteFile + "d.go"}, "Error: nothing was changed: d.go: there is no such file", ""},
		{"moved onto something", []string{updateFile + "a.go", moveTo + "sub/b.go"},
			"Error: nothing was changed: a.go: to sub/b.go: it is there already", ""},
		{"moved onto one that it deleted", []string{deleteFile + "sub/b.go", updateFile + "sub/c.txt", moveTo + "sub/b.go",
			"@@", "-two", "+2"},
			"Done.\nM sub/b.go\nD sub/c.txt",
			".git/config=package git\n|a.go=package a\n\nfunc A() {}\n|sub/b.go=one\n2\nthree\n"},
		{"outside", []string{addFile + "../d.txt", "+d"},
			"Error: nothing was changed: ../d.txt: ../d.txt is outside of the workspace", ""},
		{"outside, absolute", []string{deleteFile + "/etc/passwd"},
			"Error: nothing was changed: /etc/passwd: /etc/passwd is outside", ""},
		{"a link to outside", []string{updateFile + "out", "@@", "-secret", "+x"},
			"Error: nothing was changed: out: out is no regular file", ""},
		{"through a link to outside", []string{addFile + "up/d.txt", "+d"},
			"Error: nothing was changed: up/d.txt: up is a link", ""},
		{"a link", []string{updateFile + "inside.txt", "@@", "-one", "+x"},
			"Error: nothing was changed: inside.txt: inside.txt is no regular file", ""},
		{"a pipe", []string{deleteFile + "pipe"}, "Error: nothing was changed: pipe: pipe is no regular file", ""},
		{"no text", []string{deleteFile + "bin"}, "Error: nothing was changed: bin: bin is not text", ""},
		{"a directory", []string{deleteFile + "sub"}, "Error: nothing was changed: sub: sub is no regular file", ""},
		{"below a file", []string{addFile + "a.go/d.txt", "+d"},
			"Error: nothing was changed: a.go/d.txt: a.go is a link or a file", ""},
		{"no file", []string{"+d"}, "Error: line 2 of the patch belongs to no file", ""},
		{"no lines", nil, "Error: the patch changes nothing", ""},
		{"lines in what goes", []string{deleteFile + "a.go", "-package a"},
			"Error: line 3 of the patch: a file that is deleted has no lines", ""},
		{"no plus", []string{addFile + "d.txt", "d"}, "Error: line 3 of the patch: lines of a new file begin with +", ""},
	} {
		w := place(t, true)
		got := use(t, w, "apply_patch", string(encoded(t, map[string]string{"patch": patchOf(c.lines...)})))
		if want := c.want; !strings.HasPrefix(got.Text, c.text) || got.Failed != strings.HasPrefix(c.text, "Error") ||
			content(t, w) != or(want, was) {
			t.Errorf("%s: %q, %q", c.name, got.Text, content(t, w))
		}
		if secret, err := os.ReadFile(filepath.Join(w.dir, "../secret")); err != nil || string(secret) != "secret\n" {
			t.Errorf("%s: the secret is %q, %v", c.name, secret, err)
		}
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// TestUndone: if a rename fails, the files are as they were.
func TestUndone(t *testing.T) {
	w := place(t, true)
	was := content(t, w)
	a, err := w.now("a.go")
	must(t, err)
	gone, err := w.now("sub/b.go")
	must(t, err)
	blocked := change{path: "sub", new: new("text")} // a directory is there, so the rename fails
	a.new = new("package z\n")
	if err := w.commit([]change{a, gone, blocked}); err == nil || !strings.HasPrefix(err.Error(), "nothing was changed: ") {
		t.Errorf("a file took the place of a directory: %v", err)
	}
	if got := content(t, w); got != was {
		t.Errorf("there is %q", got)
	}
	a.old = new("package y\n") // changed by somebody else
	if err := w.commit([]change{gone, a}); err == nil || !strings.Contains(err.Error(), "a.go was changed meanwhile") ||
		content(t, w) != was {
		t.Errorf("%v, %q", err, content(t, w))
	}
}

func TestWriteFile(t *testing.T) {
	w := place(t, true)
	must(t, os.Chmod(filepath.Join(w.dir, "a.go"), 0o755))
	for path, want := range map[string]string{"a.go": "M a.go", "new/e.txt": "A new/e.txt"} {
		out := &printer{}
		got := w.Run(t.Context(), "write_file", encoded(t,
			map[string]string{"path": path, "content": "package a\n\nfunc B() {}\n"}), Call{Out: out})
		shown := out.String()
		if got.Text != "Done.\n"+want || !strings.Contains(shown, "+++ b/"+path+"\n@@ ") ||
			!strings.Contains(shown, "\n+func B() {}\n") {
			t.Errorf("%q, shown %q", got.Text, shown)
		}
	}
	if about, err := os.Stat(filepath.Join(w.dir, "a.go")); err != nil || about.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", about, err)
	}
	for args, want := range map[string]string{
		`{"path":"out","content":""}`:  "Error: out is no regular file",
		`{"path":"../x","content":""}`: "Error: ../x is outside of the workspace", `{"path":"x"} x`: "",
	} {
		got := w.Run(t.Context(), "write_file", []byte(args), Call{Out: io.Discard, Ask: (&person{yes: true}).ask})
		if want != "" && got.Text != want {
			t.Errorf("%s: %q", args, got.Text)
		}
	}
	w.cfg.Sandbox = sandbox.ReadOnly
	if got := use(t, w, "write_file",
		`{"path":"a.go","content":""}`); got.Text != "Error: denied: the sandbox is read-only, so nothing can be changed" {
		t.Error(got.Text)
	}
}
