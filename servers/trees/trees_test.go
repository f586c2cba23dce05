package trees_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/trees"
)

// must ends a test that cannot go on after err.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// git runs git in a directory, as a person there does.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=Ann", "-c", "user.email=ann@example.com"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// repository makes one with a commit, and a directory sub in it.
func repository(t *testing.T) string {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	dir := filepath.Join(t.TempDir(), "api")
	git(t, filepath.Dir(dir), "init", "-q", "-b", "main", dir)
	write(t, filepath.Join(dir, "sub", "a.go"), "package a\n")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "begin")
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, []byte(text), 0o644))
}

func here() trees.Git { return trees.Here(servers.ChildEnv(os.Environ(), nil)) }

func add(t *testing.T, dir, name string) *handoff.Worktree {
	t.Helper()
	w, _, err := trees.Add(t.Context(), here(), dir, name)
	if err != nil {
		t.Fatalf("not added: %v", err)
	}
	return w
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestAdd(t *testing.T) {
	dir := repository(t)
	name := handoff.WorktreeName("fix the login", "1")
	w := add(t, dir, name)
	if w.Root != dir+"-worktrees/"+name || w.Directory != w.Root || git(t, w.Root, "branch", "--show-current") != w.Branch {
		t.Errorf("made %+v", w)
	}
	if again := add(t, dir, name); *again != *w || strings.Count(git(t, dir, "worktree", "list"), "\n") != 1 {
		t.Errorf("a repetition made %+v\n%s", again, git(t, dir, "worktree", "list"))
	}
	if part := add(t, dir+"/sub", handoff.WorktreeName("", "2")); !exists(part.Directory+"/a.go") ||
		!strings.HasSuffix(part.Directory, "/sub") || part.Home() != dir+"/sub" {
		t.Errorf("of a part: %+v", part)
	}
	if _, _, err := trees.Add(t.Context(), here(), w.Root, name); handoff.CodeOf(err) != handoff.CodeRefused {
		t.Errorf("of a worktree itself: %v", err)
	}
	for dir, why := range map[string]string{
		t.TempDir(): "is no repository of git", dir + "/nothing": "there is no directory", "": "there is no directory",
		dir + "/.git": "is no repository",
	} {
		w, _, err := trees.Add(t.Context(), here(), dir, name)
		if err == nil {
			t.Fatalf("%s: made %+v", dir, w)
		}
		if e := handoff.AsError(err); e.Code != handoff.CodeUnsupported || !strings.Contains(e.Why, why) || e.Next == "" {
			t.Errorf("%s: %v, wanted %q", dir, e, why)
		}
	}
}

// A hook that is a file of the repository was perhaps written by an agent: it must not run outside of its sandbox.
func TestHooksDoNotRun(t *testing.T) {
	dir := repository(t)
	write(t, dir+"/hooks/post-checkout", "#!/bin/sh\ntouch "+dir+"/ran\n")
	must(t, os.Chmod(dir+"/hooks/post-checkout", 0o755))
	git(t, dir, "config", "core.hooksPath", "hooks")
	w := add(t, dir, handoff.WorktreeName("x", "1"))
	if exists(dir + "/ran") {
		t.Error("the hook ran")
	}
	git(t, dir, "worktree", "add", "-q", dir+"-other")
	if !exists(dir + "/ran") {
		t.Error("the hook never runs: the test shows nothing")
	}
	_ = w
}

// TestProgramsDoNotRun: no worktree is made or removed where the repository's own configuration names a program that
// would run. A setting of the user is the user's own.
func TestProgramsDoNotRun(t *testing.T) {
	name := handoff.WorktreeName("x", "1")
	for _, row := range []struct {
		name, refused string
		removes       bool
		sets          []string // keys and values; --worktree sets the next one for the worktree alone
		shows         string   // this command of git runs the program; "": none of this version does
	}{
		{"smudge", "filter.x.smudge", false, []string{"filter.x.smudge", "DIR/program"}, "checkout -- sub"},
		{"process", "filter.x.process", false, []string{"filter.x.process", "DIR/program"}, ""},
		{"other letters", "filter.x.smudge", false, []string{"FILTER.x.Smudge", "DIR/program"}, "checkout -- sub"},
		{"included", "filter.x.smudge", false, []string{"include.path", "DIR/more"}, "checkout -- sub"},
		{"included there", "includeif.onbranch", false, []string{"includeIf.onbranch:switchboard/**.path", "DIR/more"}, ""},
		{"of the worktree", "filter.x.smudge", false, []string{"--worktree", "filter.x.smudge"}, "checkout -- sub"},
		{"hook", "hook.x.command", false, []string{"hook.x.event", "post-checkout", "hook.x.command", "DIR/program"}, ""},
		{"clean", "filter.x.clean", true, []string{"filter.x.clean", "DIR/program"}, "add -A"},
		{"clean of that worktree", "filter.x.clean", true, []string{"--worktree", "filter.x.clean"}, "add -A"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := repository(t)
			write(t, dir+"/program", "#!/bin/sh\ntouch "+dir+"/ran\ncat\n")
			must(t, os.Chmod(dir+"/program", 0o755))
			write(t, dir+"/sub/.gitattributes", "*.go filter=x\n")
			git(t, dir, "add", "sub")
			git(t, dir, "commit", "-q", "-m", "attributes")
			at := dir
			if row.removes {
				at = add(t, dir, name).Root
				write(t, at+"/sub/a.go", "package a\n") // its times are new: git looks at what is in it
			}
			for i := 0; i < len(row.sets); i += 2 {
				if row.sets[i] == "--worktree" {
					git(t, dir, "config", "extensions.worktreeConfig", "true")
					git(t, at, "config", "--worktree", row.sets[i+1], dir+"/program")
					break
				}
				git(t, dir, "config", row.sets[i], strings.ReplaceAll(row.sets[i+1], "DIR", dir))
			}
			write(t, dir+"/more", "[filter \"x\"]\n\tsmudge = "+dir+"/program\n")
			var err error
			if row.removes {
				err = trees.Remove(t.Context(), here(), handoff.WorktreeAt(at))
			} else {
				_, _, err = trees.Add(t.Context(), here(), dir, name)
			}
			if err == nil || !strings.Contains(handoff.AsError(err).Why, row.refused) || exists(dir+"/ran") {
				t.Fatalf("answered %v; the program ran: %v", err, exists(dir+"/ran"))
			}
			if row.shows == "" {
				return
			}
			write(t, at+"/sub/a.go", "package b\n")
			git(t, at, strings.Fields(row.shows)...)
			if !exists(dir + "/ran") {
				t.Error("the program never runs: the test shows nothing")
			}
		})
	}
}

// TestReadingRunsNothing: commands that only read run no program either that the repository's own configuration names,
// neither to look at a signature nor to fetch what a clone has left out.
func TestReadingRunsNothing(t *testing.T) {
	dir := repository(t)
	write(t, dir+"/program", "#!/bin/sh\ntouch "+dir+"/ran\nexit 1\n")
	must(t, os.Chmod(dir+"/program", 0o755))
	head, body, _ := strings.Cut(git(t, dir, "cat-file", "commit", "HEAD"), "\n\n")
	write(t, dir+"/signed", head+"\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----\n\n"+body+"\n")
	git(t, dir, "reset", "-q", git(t, dir, "hash-object", "-t", "commit", "-w", "signed"))
	w := add(t, dir, handoff.WorktreeName("x", "1"))
	log := []string{"log", "-g", "--date=unix", "--format=%H %gd", w.Branch, "--"}
	away := strings.Repeat("a", 40) // a commit that is not here
	for _, row := range []struct{ sets, reads []string }{
		{[]string{"log.showSignature", "true", "gpg.program", dir + "/program"}, log},
		{[]string{"remote.far.url", dir, "remote.far.promisor", "true", "remote.far.uploadpack", dir + "/program"},
			[]string{"merge-base", "--is-ancestor", away, "HEAD"}},
	} {
		for i := 0; i < len(row.sets); i += 2 {
			git(t, dir, "config", row.sets[i], row.sets[i+1])
		}
		if _, err := here()(t.Context(), dir, row.reads); err != nil || exists(dir+"/ran") {
			t.Errorf("%q: %v; the program ran: %v", row.reads, err, exists(dir+"/ran"))
		}
		_ = os.Remove(dir + "/ran") // it should not be there
		cmd := exec.CommandContext(t.Context(), "git", row.reads...)
		cmd.Dir = dir
		if _ = cmd.Run(); !exists(dir + "/ran") { // it may fail
			t.Errorf("%q never runs the program: the test shows nothing", row.reads)
		}
		_ = os.Remove(dir + "/ran") // as above
	}
}

func TestRemove(t *testing.T) {
	for _, row := range []struct {
		name, refused string
		work          func(t *testing.T, dir string, w *handoff.Worktree)
	}{
		{"unused", "", func(*testing.T, string, *handoff.Worktree) {}},
		{"merged", "", func(t *testing.T, dir string, w *handoff.Worktree) {
			commit(t, w)
			git(t, dir, "merge", "-q", w.Branch)
		}},
		{"pushed", "", func(t *testing.T, dir string, w *handoff.Worktree) {
			commit(t, w)
			far := t.TempDir()
			git(t, far, "init", "-q", "--bare")
			git(t, dir, "remote", "add", "origin", far)
			git(t, w.Root, "push", "-q", "-u", "origin", w.Branch)
		}},
		{"pushed in part", "neither merged nor pushed", func(t *testing.T, dir string, w *handoff.Worktree) {
			far := t.TempDir()
			git(t, far, "init", "-q", "--bare")
			git(t, dir, "remote", "add", "origin", far)
			git(t, w.Root, "push", "-q", "-u", "origin", w.Branch)
			commit(t, w)
		}},
		{"committed", "neither merged nor pushed", func(t *testing.T, _ string, w *handoff.Worktree) { commit(t, w) }},
		{"committed beside a branch", "neither merged nor pushed", func(t *testing.T, _ string, w *handoff.Worktree) {
			git(t, w.Root, "checkout", "-q", "--detach")
			commit(t, w)
		}},
		{"on another branch", "", func(t *testing.T, _ string, w *handoff.Worktree) {
			git(t, w.Root, "checkout", "-q", "-b", "mine")
			commit(t, w)
		}},
		{"changed", "contains modified or untracked files", func(t *testing.T, _ string, w *handoff.Worktree) {
			write(t, w.Root+"/sub/a.go", "package b\n")
		}},
		{"new file", "contains modified or untracked files", func(t *testing.T, _ string, w *handoff.Worktree) {
			write(t, w.Root+"/new", "")
		}},
		{"locked", "", func(t *testing.T, dir string, w *handoff.Worktree) {
			git(t, dir, "worktree", "lock", w.Root)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := repository(t)
			w := add(t, dir, handoff.WorktreeName(row.name, "1"))
			row.work(t, dir, w)
			err := trees.Remove(t.Context(), here(), w)
			refused := row.refused != "" || row.name == "locked"
			switch e := handoff.CodeOf(err); {
			case refused && (e != handoff.CodeRefused || !strings.Contains(handoff.AsError(err).Why, row.refused)):
				t.Errorf("answered %v, wanted %q", err, row.refused)
			case refused && (!exists(w.Root) || !strings.Contains(git(t, dir, "branch", "-a"), w.Branch)):
				t.Error("something was removed")
			case !refused && (err != nil || exists(w.Root)):
				t.Errorf("not removed: %v", err)
			case !refused && strings.Contains(git(t, dir, "branch"), w.Branch):
				t.Error("its branch was left")
			}
			if gone, err := trees.Gone(t.Context(), here(), w); gone == refused || err != nil {
				t.Errorf("gone: %v, %v", gone, err)
			}
			if !refused {
				if err := trees.Remove(t.Context(), here(), w); err != nil {
					t.Errorf("the second time: %v", err)
				}
			}
		})
	}
}

func commit(t *testing.T, w *handoff.Worktree) {
	t.Helper()
	write(t, w.Root+"/b.go", "package b\n")
	git(t, w.Root, "add", ".")
	git(t, w.Root, "commit", "-q", "-m", "work")
}

// What is merged goes, and what nobody ever used, after a week; all else stays.
func TestTidy(t *testing.T) {
	dir := repository(t)
	made := map[string]*handoff.Worktree{}
	for _, name := range []string{"merged", "working", "changed", "open", "fresh", "idle", "own"} {
		made[name] = add(t, dir, handoff.WorktreeName(name, name))
	}
	for _, name := range []string{"merged", "working", "changed", "open"} {
		commit(t, made[name])
		if name != "open" {
			git(t, dir, "merge", "-q", "-m", "merge", made[name].Branch)
		}
		write(t, made[name].Root+"/c.go", "package c // "+name+"\n") // so that the next one has other commits
		git(t, made[name].Root, "add", ".")
		git(t, made[name].Root, "commit", "-q", "-m", name)
		if name != "open" {
			git(t, dir, "merge", "-q", "-X", "theirs", "-m", "merge", made[name].Branch)
		}
	}
	write(t, made["changed"].Root+"/new", "")
	tidy := func(now time.Time) (left []string) {
		trees.Tidy(t.Context(), here(), made["own"], now, func(w *handoff.Worktree) (known, works bool) {
			return w.Name == made["idle"].Name, w.Name == made["working"].Name
		})
		for name, w := range made {
			if exists(w.Root) {
				left = append(left, name)
			}
		}
		slices.Sort(left)
		return left
	}
	if left := tidy(time.Now()); !slices.Equal(left, []string{"changed", "fresh", "idle", "open", "own", "working"}) {
		t.Errorf("left are %v", left)
	}
	if left := tidy(time.Now().AddDate(0, 0, 8)); !slices.Equal(left, []string{"changed", "idle", "open", "own", "working"}) {
		t.Errorf("after a week, left are %v", left)
	}
}

// Of all that git can do, a short list passes, and about one worktree at a time.
func TestCheck(t *testing.T) {
	const dir = "/src/api"
	one, two := handoff.WorktreeName("one", "1"), handoff.WorktreeName("two", "2")
	at := func(of, name string) string { return of + "-worktrees/" + name }
	for _, row := range []struct {
		dir, args string
		ok        bool
	}{
		{dir, "worktree list --porcelain", true},
		{dir, "rev-parse --is-inside-work-tree --show-prefix", true},
		{dir, "worktree add -b switchboard/" + one + " " + at(dir, one), true},
		{dir + "/sub", "worktree add -b switchboard/" + one + " " + at(dir, one), true},
		{dir, "worktree remove " + at(dir, one), true},
		{dir, "branch -d switchboard/" + one, true},
		{dir, "merge-base --is-ancestor " + strings.Repeat("a", 40) + " HEAD", true},
		{dir, "merge-base --is-ancestor " + strings.Repeat("a", 40) + " switchboard/" + one + "@{upstream}", true},
		{dir, "worktree add -b switchboard/" + one + " " + at(dir, two), false},
		{dir, "worktree add -b " + one + " " + at(dir, one), false},
		{dir, "worktree add -b switchboard/" + one + " " + at("/etc", one), false},
		{dir, "worktree add -b switchboard/" + one + " " + at(dir, one) + "/..", false},
		{dir, "worktree add --force -b switchboard/" + one + " " + at(dir, one), false},
		{dir, "worktree remove --force " + at(dir, one), false},
		{dir, "worktree remove " + at(dir, one) + "/sub", false},
		{dir, "worktree remove " + dir, false},
		{dir, "branch -D switchboard/" + one, false},
		{dir, "branch -d main", false},
		{dir, "branch -d switchboard/x;rm", false},
		{dir, "merge-base --is-ancestor --all HEAD", false},
		{dir, "-c alias.x=!sh worktree list --porcelain", false},
		{dir, "", false},
		{"src/api", "worktree list --porcelain", false},
		{"/src/../api", "worktree list --porcelain", false},
		{"/src/a\npi", "worktree list --porcelain", false},
	} {
		if err := trees.Check(row.dir, strings.Fields(row.args)); (err == nil) != row.ok {
			t.Errorf("in %s, %q: %v", row.dir, row.args, err)
		}
	}
	if trees.Writes([]string{"worktree", "list", "--porcelain"}) || !trees.Writes([]string{"worktree", "remove", "x"}) ||
		!trees.Writes([]string{"branch", "-d", "x"}) {
		t.Error("what writes is not told apart")
	}
	if got := trees.Command([]string{"branch"}); got[0] != "git" || got[len(got)-1] != "branch" {
		t.Errorf("the command is %v", got)
	}
	if _, err := here()(t.Context(), t.TempDir(), []string{"status"}); handoff.CodeOf(err) != handoff.CodeRefused {
		t.Errorf("another command ended with %v", err)
	}
}

// No text makes a form that is not allowed out of one that is.
func FuzzCheck(f *testing.F) {
	f.Add("/src/api", "switchboard/x-00000000", "/src/api-worktrees/x-00000000")
	f.Add("/src/api", "--force", "-D")
	f.Fuzz(func(t *testing.T, dir, name, at string) {
		if trees.Check(dir, []string{"worktree", "add", "-b", name, at}) == nil {
			w := handoff.WorktreeAt(at)
			if w == nil || name != w.Branch || at != w.Root || strings.Contains(at, "/../") || dir != w.Of &&
				!strings.HasPrefix(dir, w.Of+"/") {
				t.Errorf("in %q, %q %q passed", dir, name, at)
			}
		}
	})
}
