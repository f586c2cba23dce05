//go:build linux

package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"switchboard/servers/responses/sandbox"
)

// put makes files in a workspace, owned by the user for commands.
func put(t *testing.T, w *Workspace, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(w.dir, name)
		must(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)))
	}
	give(t, filepath.Dir(w.dir))
}

// run runs a command line and returns what the model gets.
func run(t *testing.T, w *Workspace, line string) string {
	t.Helper()
	return use(t, w, "exec", string(encoded(t, args{"command": line}))).Text
}

// state returns mode and content of all that is in a workspace; with plain only files that may be changed without a
// question, else only the rest.
func state(t *testing.T, w *Workspace, plain bool) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(w.dir, func(full string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(w.dir, full)
		if err != nil || e.IsDir() || plain != (e.Type() == 0 && w.isPlain(nil, name)) {
			return err
		}
		info, err := e.Info()
		must(t, err)
		to, _ := os.Readlink(full)
		text := []byte(to)
		if e.Type() == 0 {
			text, _ = os.ReadFile(full) // not of those that nobody may read
		}
		all[name] = fmt.Sprintf("%s %.100s", info.Mode(), text)
		return nil
	}))
	return all
}

// notPlain are files that other programs run or obey, or that hold secrets. No list could have all of them.
var notPlain = strings.Fields(`.git/config .git/hooks/pre-commit .envrc .env .vscode/tasks.json .idea/workspace.xml
	.github/workflows/ci.yml .githooks/pre-commit .husky/pre-commit .mise.toml .pdbrc .gdbinit .npmrc
	.devcontainer/devcontainer.json .claude/settings.json .cursor/rules/a.md .bashrc .ssh/config .config/fish/config.fish
	.local/bin/ls CLAUDE.md AGENTS.md Jenkinsfile secrets.yaml deploy.pem .GIT./config`)

// TestOnlyPlain: whatever a command does, by whatever way, to files that are not plain: in the workspace they stay as
// they are, none comes into being, and the rest of the command counts.
func TestOnlyPlain(t *testing.T) {
	each := func(act string) string {
		return `for at in $NAMES; do mkdir -p "$(dirname $at)"; d=$(dirname $at); b=$(basename $at); ` + act + `; done 2>/dev/null`
	}
	ways := map[string]string{
		"made":               each(`echo evil > $at`),
		"added to":           each(`echo evil >> $at; touch $at; chmod 777 $at`),
		"removed":            each(`rm -rf $at; rmdir -p $d`),
		"removed at the top": `rm -rf $(ls -A | grep -v plain)`,
		"moved to":           each(`echo evil > evil.txt; mv evil.txt $at`),
		"moved away":         each(`mv $at /tmp/`),
		"linked":             each(`echo evil > evil.txt; ln -sf $PWD/evil.txt $at`),
		"linked hard":        each(`echo evil > evil.txt; ln -f evil.txt $at; ln $at x.txt; echo evil >> x.txt`),
		"a directory":        each(`rm -rf $at; mkdir $at; echo evil > $at/a.txt`),
		"pipes":              each(`rm -f $at; mkfifo $at`),
		"another directory":  `mv deep deep2; mkdir deep; cp -r deep2/* deep2/.[a-zA-Z]* deep; find deep -type f | xargs sed -i s/kept/evil/`,
		"exchanged":          `mkdir n; echo evil > n/config; mv -T --exchange n .git; mv .git g; mkdir .git; cp n/* .git`,
		"no way to rename":   `for i in $(seq 1000); do echo > .envrc.set-aside-$i; done; echo evil > .envrc; chmod 555 .`,
		"closed":             each(`echo evil > $at; chmod 0 $at; chmod 0 $d`) + `; chmod 0 .`,
		"by a linked dir":    `mv rules rules2; mkdir rules; echo evil > rules/all.md; echo evil >> flow/w.md; echo evil > tools/new`,
		"a link replaced":    `rm .husky2 up; mkdir .husky2 up; echo evil > .husky2/x.sh; echo evil > up/x.txt`,
		"git":                `git init -q . ; git init -q sub2; git add -A; git -c user.name=x -c user.email=x@y commit -qm x`,
		"deeply":             `mkdir -p a/b/c/.vscode && echo evil > a/b/c/.vscode/tasks.json; mkdir -p x/.git && mv x/.git y`,
		"set user":           `cp /bin/true t.txt; chmod 4755 t.txt`,
	}
	for way, line := range ways {
		t.Run(way, func(t *testing.T) {
			w := place(t, true)
			needExec(t, w)
			kept := map[string]string{"rules/all.md": "kept\n", "flow/w.md": "kept\n", "tools/hook": "kept\n"}
			for _, name := range notPlain {
				kept["deep/er/"+name] = "kept\n"
				if way != "made" && way != "linked" && way != "git" {
					kept[name] = "kept\n"
				}
			}
			delete(kept, "CLAUDE.md")
			put(t, w, kept)
			must(t, os.Chmod(filepath.Join(w.dir, "deep/er/.envrc"), 0)) // its user cannot read it either
			for name, to := range map[string]string{"CLAUDE.md": "rules/all.md", ".github2": "x", "deep/.gitlab": "../flow",
				".husky2": "tools"} {
				must(t, os.Symlink(to, filepath.Join(w.dir, name)))
			}
			give(t, filepath.Dir(w.dir))
			was := state(t, w, false)
			linked := []string{"rules/all.md", "flow/w.md"}
			names := slices.Concat(notPlain, []string{"deep/er/" + strings.Join(notPlain, " deep/er/")})
			got := run(t, w, "NAMES='"+strings.Join(names, " ")+"'; "+line+"; chmod 755 $PWD 2>/dev/null; echo x > plain.txt")
			if diff := gocmp.Diff(was, state(t, w, false)); diff != "" {
				t.Errorf("%s%s", diff, got)
			}
			plain := state(t, w, true)
			for _, name := range linked {
				if !strings.HasSuffix(plain[name], " kept\n") {
					t.Errorf("%s, to which a link leads, is %q", name, plain[name])
				}
			}
			if way != "set user" && plain["plain.txt"] != "-rw-r--r-- x\n" {
				t.Errorf("the rest: %q", plain["plain.txt"])
			}
			if !strings.Contains(got, "\nNot taken over into the workspace: ") || len(got) > 6000 {
				t.Errorf("it was told %d bytes: %.3000s", len(got), got)
			}
		})
	}
}

// TestTaken: what a command does with plain files is done in the workspace when it has ended, however it ends.
func TestTaken(t *testing.T) {
	for _, c := range []struct {
		line string
		want map[string]string // beside what was there; "" is gone, "empty" is emptied
		told string            // "" is nothing
	}{
		{"echo x > new.txt; echo y >> sub/c.txt", map[string]string{"new.txt": "x\n", "sub/c.txt": "one\ntwo\nthree\ny\n"}, ""},
		{"mkdir -p d/e && mv sub/c.txt d/e/; exit 3", map[string]string{"sub/c.txt": "", "d/e/c.txt": "one\ntwo\nthree\n"}, ""},
		{"mv sub other", map[string]string{"sub/b.go": "", "sub/c.txt": "", "other/b.go": "package b\n",
			"other/c.txt": "one\ntwo\nthree\n"}, ""},
		{"rm -r sub; mkdir sub; echo x > sub/d.txt", map[string]string{"sub/b.go": "", "sub/c.txt": "", "sub/d.txt": "x\n"}, ""},
		{"echo x > late.txt; sleep 60", map[string]string{"late.txt": "x\n"}, ""},
		{"chmod 555 . sub; chmod u+w sub; echo x > sub/d.txt; chmod 0 sub", map[string]string{"sub/d.txt": "x\n"}, ""},
		{`printf '\0\1' > b.png; ln b.png c.png; truncate -s 10M hole.csv`, map[string]string{"b.png": "\x00\x01",
			"c.png": "\x00\x01", "hole.csv": strings.Repeat("\x00", 10<<20)}, ""},
		{"touch a.go; cp a.go x && cat x > a.go; rm x", nil, ""},
		{"mkdir empty; rm -r sub; mkdir sub; touch sub/b.go", map[string]string{"sub/c.txt": "", "sub/b.go": "empty"}, ""},
		{"echo x > run.py; chmod +x run.py a.go", map[string]string{"run.py": "x\n"}, "a.go and 1 more in . (it is not executable)|" +
			"run.py and 1 more in . (it is not executable)"},
		{"truncate -s 1T big.csv; truncate -s 1T sub/c.txt", nil, "big.csv (it is too large)"},
		{"mv sub/c.txt .env", nil, "sub/c.txt (it is still there, because"},
		{"mv a.go .git/config", nil, "a.go (it is still there, because"},
		{"rm -r sub; echo x > sub; ln -s a.go l.go", nil, "l.go"},
		{"rm a.go; mkdir a.go; echo x > a.go/x.txt", nil, "a.go/x.txt (a.go is a link or a file; name the place itself)"},
		{"mkdir -p sub/.git; cp a.go sub/.git; rm -r sub", map[string]string{"sub/b.go": "", "sub/c.txt": ""}, ""},
	} {
		w := place(t, true)
		needExec(t, w)
		want := state(t, w, true)
		for name, text := range c.want {
			want[name] = fmt.Sprintf("-rw-r--r-- %.100s", text)
			if _, err := os.Stat(filepath.Join(w.dir, name)); err == nil {
				want[name] = strings.Replace(want[name], "r--r--", "------", 1)
			}
			if text == "empty" {
				want[name] = "-rw------- "
			}
			if text == "" {
				delete(want, name)
			}
		}
		was := state(t, w, false)
		got := use(t, w, "exec", string(encoded(t, args{"command": c.line, "seconds": 3}))).Text
		if diff := gocmp.Diff(want, state(t, w, true)) + gocmp.Diff(was, state(t, w, false)); diff != "" {
			t.Errorf("%s: %s%s", c.line, diff, got)
		}
		told := slices.ContainsFunc(strings.Split(c.told, "|"), func(s string) bool { return strings.Contains(got, s) })
		if strings.Contains(got, "Not taken over") != (c.told != "") || !told {
			t.Errorf("%s: it was told %q", c.line, got)
		}
	}
}

// TestPrivate: what is new and not taken over is there for the next commands, until the workspace has something at its
// path; what was there is as it was.
func TestPrivate(t *testing.T) {
	w := place(t, true)
	needExec(t, w)
	for _, line := range []string{
		"mkdir -p .bin node_modules/.bin && cp /bin/true .bin/prog && ln -s ../x.js node_modules/.bin/x && echo y > .env; rm -r .git",
		".bin/prog && test -L node_modules/.bin/x && grep y .env && grep package .git/config",
		"echo z >> .env; rm -r node_modules; mkdir node_modules",
		"grep z .env && ! test -e node_modules/.bin",
	} {
		if got := run(t, w, line); !strings.HasPrefix(got, "Exit code: 0\n") {
			t.Errorf("%s: %s", line, got)
		}
	}
	p := &person{yes: true}
	if got := p.use(t, w, "write_file", args{"path": ".env", "content": "mine\n"}); got.Failed || len(p.asked) != 1 {
		t.Errorf("%+v", got)
	}
	if got := run(t, w, "cat .env .bin/prog | head -1"); got != "Exit code: 0\nmine\n" {
		t.Errorf("%q", got)
	}
	if _, err := os.Lstat(filepath.Join(w.dir, ".bin")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	w.cfg.Limits = sandbox.Limits{Tmp: 8 << 20}
	if got := run(t, w, "head -c 64M /dev/zero > lots; echo x > x.txt; sleep 60"); !strings.HasPrefix(got, "Error: it wrote more") {
		t.Error(got)
	}
	if got := run(t, w, "cat .bin/prog x.txt"); !strings.HasPrefix(got, "Exit code: 1\n") {
		t.Errorf("what was too much is there: %q", got)
	}
}

// TestMeanwhile: what a person does in the workspace while a command runs stays, and is told.
func TestMeanwhile(t *testing.T) {
	for line, want := range map[string]map[string]string{
		"echo theirs | tee mine.txt sub/c.txt": {"mine.txt": "mine\n", "new.txt": "mine\n", "dir/new.txt": "mine\n",
			"dir/a.txt": "old\n", "sub/c.txt": "theirs\n"},
		"rm -r dir new.txt": {"new.txt": "mine\n", "dir/new.txt": "mine\n", "dir/a.txt": ""},
	} {
		w := place(t, true)
		needExec(t, w)
		put(t, w, map[string]string{"mine.txt": "old\n", "dir/a.txt": "old\n"})
		ended, begun := make(chan Result, 1), make(chan struct{})
		go func() {
			out := &printer{on: func() { close(begun) }}
			line = "echo theirs > new.txt; echo on; until test -e /tmp/go; do sleep 0.01; done; " + line
			ended <- w.Run(t.Context(), "exec", encoded(t, args{"command": line}), Call{Out: out})
		}()
		<-begun
		for _, name := range []string{"mine.txt", "new.txt", "dir/new.txt"} {
			must(t, os.WriteFile(filepath.Join(w.dir, name), []byte("mine\n"), 0o644))
		}
		must(t, os.WriteFile(filepath.Join(w.scratch.Dir, "tmp/go"), nil, 0o644))
		got := <-ended
		for name, text := range want {
			if is, err := os.ReadFile(filepath.Join(w.dir, name)); string(is) != text || (err != nil) != (text == "") {
				t.Errorf("%s: %s is %q, %v", line, name, is, err)
			}
		}
		if !strings.Contains(got.Text, "(it was changed meanwhile)") {
			t.Errorf("%s: %s", line, got.Text)
		}
	}
}

// TestLinks: a path counts as each path that leads to it through links.
func TestLinks(t *testing.T) {
	w := place(t, true)
	for name, to := range map[string]string{"CLAUDE.md": "r/all.md", "r": "rules", ".github": "flow/deep", "self": ".",
		"flow/deep/wf": "../../wf", ".envrc": w.dir + "/vars/later.txt",
		"me": ".", "node_modules/@a/core": "../../packages/core", "sub/x": "../node", ".vscode": "sub/x/../y"} {
		name = filepath.Join(w.dir, name)
		must(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.Symlink(to, name)))
	}
	for _, dir := range []string{"rules", "wf", "node/x", "node/y", "y"} {
		must(t, os.MkdirAll(filepath.Join(w.dir, dir), 0o755))
	}
	all, err := w.links(t.Context())
	must(t, err)
	want := map[string]bool{"rules/all.md": false, "rules/other.md": true, "wf/ci.md": false, "flow/deep/a.md": false,
		"flow/a.md": true, "vars/later.txt": false, "vars/other.txt": true, "a.txt": true, "y/a.md": false,
		"packages/core/src/x.go": true}
	got := map[string]bool{}
	for _, name := range slices.Collect(maps.Keys(want)) {
		got[name] = w.isPlain(all, name)
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for i := range maxNames {
		must(t, os.Symlink("../packages/core", filepath.Join(w.dir, "wf", fmt.Sprint("l", i))))
	}
	if all, err = w.links(t.Context()); err != nil || w.isPlain(all, "packages/core/a.txt") {
		t.Error("a file of more names than are looked at is plain")
	}
	p := &person{}
	if got := p.use(t, w, "write_file", args{"path": "rules/all.md", "content": "x"}); !got.Failed || len(p.asked) != 1 ||
		!slices.Contains(p.asked[0].Changes, w.dir+"/CLAUDE.md") {
		t.Errorf("%s, %+v", got.Text, p.asked)
	}
}

// BenchmarkLinks measures the walk through a large workspace, which is made before each edit and after each command
// that changed something.
func BenchmarkLinks(b *testing.B) {
	dir := b.TempDir()
	for i := range 1000 {
		at := filepath.Join(dir, fmt.Sprint("d", i%30), fmt.Sprint("e", i))
		must(b, os.MkdirAll(at, 0o755))
		for j := range 50 {
			must(b, os.WriteFile(filepath.Join(at, fmt.Sprint("file", j, ".txt")), nil, 0o644))
		}
	}
	w, err := Open(b.Context(), Config{Dir: dir})
	must(b, err)
	b.Cleanup(func() { _ = w.Close() })
	for b.Loop() {
		_, err := w.links(b.Context())
		must(b, err)
	}
}
