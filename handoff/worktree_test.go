package handoff

import (
	"strings"
	"testing"
)

func TestWorktreeName(t *testing.T) {
	for words, want := range map[string]string{
		"Fix the login page, please": "fix-the-login-page-6b86b273", "": "work-6b86b273", "  ": "work-6b86b273",
		"прочитай файл": "work-6b86b273", "--force; rm -rf /": "force-rm-rf-6b86b273", "../../etc": "etc-6b86b273",
		strings.Repeat("a", 100): "work-6b86b273", "a " + strings.Repeat("b", 100): "a-6b86b273",
		"née a-b_c": "n-e-a-b-6b86b273",
	} {
		if got := WorktreeName(words, "1"); got != want || !IsWorktreeName(got) {
			t.Errorf("%q is called %q, wanted %q", words, got, want)
		}
	}
	if WorktreeName("a", "1") == WorktreeName("a", "2") {
		t.Error("two pieces of work have one worktree")
	}
}

func FuzzWorktreeName(f *testing.F) {
	f.Add("Fix the login page", "1")
	f.Fuzz(func(t *testing.T, words, id string) {
		name := WorktreeName(words, id)
		if w := WorktreeAt("/src/api-worktrees/" + name + "/sub"); !IsWorktreeName(name) || w == nil || w.Name != name ||
			w.Of != "/src/api" || w.Home() != "/src/api/sub" {
			t.Errorf("%q is called %q, at %+v", words, name, w)
		}
	})
}

func TestWorktreeAt(t *testing.T) {
	const name = "fix-6b86b273"
	for dir, root := range map[string]string{
		"/src/api-worktrees/" + name:                   "/src/api-worktrees/" + name,
		"/src/api-worktrees/" + name + "/a/b":          "/src/api-worktrees/" + name,
		"/src/api-worktrees/other/c-worktrees/" + name: "/src/api-worktrees/other/c-worktrees/" + name,
		"/src/api-worktrees/fix":                       "",
		"/src/api-worktrees":                           "",
		"/src/api":                                     "",
		"":                                             "",
		"src/api-worktrees/" + name:                    "",
		"/-worktrees/" + name:                          "",
		"/src/api-worktrees/Fix-6b86b273":              "",
		"/src/api-worktrees/" + strings.Repeat("a", 40) + "-6b86b273": "",
	} {
		switch w := WorktreeAt(dir); {
		case w == nil && root != "", w != nil && (w.Root != root || w.Directory != dir || w.Branch != "switchboard/"+name):
			t.Errorf("%s is in %+v, wanted %q", dir, w, root)
		}
	}
}
