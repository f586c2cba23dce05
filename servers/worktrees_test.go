package servers

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/servers/trees"
)

// A gitLink is a connection to a machine that has git.
type gitLink struct{ *fakeLink }

func (gitLink) Git(ctx context.Context, dir string, args []string) (trees.Ran, error) {
	return trees.Here(ChildEnv(os.Environ(), nil))(ctx, dir, args)
}

// git runs git in a directory.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	args = append([]string{"-C", dir, "-c", "user.name=Ann", "-c", "user.email=a@b"}, args...)
	must(t, exec.CommandContext(t.Context(), "git", args...).Run())
}

// withGit makes a repository, and a server with git that has it as project api.
func withGit(t *testing.T) (dir string, s *fakeServer, spec Spec) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "api")
	git(t, ".", "init", "-q", dir)
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "begin")
	s = &fakeServer{}
	s.onAttach = func(_ *fakeLink, id string) (handoff.Attached, error) {
		it := s.threads[0]
		return handoff.Attached{Agent: &fakeAgent{}, Target: handoff.Target{Thread: id}, Workspace: it.Dir, Title: it.Title}, nil
	}
	return dir, s, Spec{Name: "bigpc", Projects: map[string]string{"api": dir, "none": t.TempDir()}, Worktrees: map[string]bool{"api": true},
		Dial: func(ctx context.Context) (*Link, error) {
			l, err := s.dial(ctx)
			if err == nil {
				l.Conn = gitLink{l.Conn.(*fakeLink)}
			}
			return l, err
		}}
}

// TestWorktrees: a session gets a worktree where its project says so or the request does, once for each name, and it
// is one of the project's; when it is removed, the session is gone.
func TestWorktrees(t *testing.T) {
	dir, s, spec := withGit(t)
	f := run(t, spec)
	name := handoff.WorktreeName("fix the login", "1")
	root := dir + handoff.WorktreeDirs + "/" + name
	in := func(project string, always bool) error {
		_, err := f.CreateIn(t.Context(), handoff.Target{Server: "bigpc", Project: project, Thread: handoff.NewThread}, name, always)
		return err
	}
	must(t, in("api", false))
	must(t, in("api", true)) // as after a lost connection
	must(t, in("none", false))
	if err := in("none", true); code(err) != handoff.CodeUnsupported || !strings.Contains(err.Error(), "bigpc: ") ||
		!strings.Contains(err.Error(), "no repository") {
		t.Errorf("without a repository: %v", err)
	}
	if got := strings.Join(s.dirs, " "); got != root+" "+root+" "+spec.Projects["none"] {
		t.Errorf("sessions began in %s", got)
	}
	s.set(func() {
		s.threads = []Thread{{ID: idAPI, Title: "Fix the login", Dir: root, Status: handoff.SessionRunning}}
	})
	at := handoff.Target{Server: "bigpc", Project: "api", Thread: idAPI}
	a, err := f.Attach(t.Context(), at)
	if err != nil || a.Worktree == nil || a.Worktree.Branch != "switchboard/"+name || a.Worktree.Directory != root {
		t.Fatalf("attached %+v, %v", a.Worktree, err)
	}
	found, err := f.Sessions(t.Context(), nobody, handoff.SessionQuery{Server: "bigpc/api"})
	if err != nil || len(found.Items) != 1 || found.Items[0].Worktree == nil {
		t.Errorf("the sessions of the project are %+v, %v", found, err)
	}
	if err := f.RemoveWorktree(t.Context(), nobody, at); code(err) != handoff.CodeBusy {
		t.Errorf("removed under a running session: %v", err)
	}
	s.set(func() { s.threads[0].Status = handoff.SessionIdle })
	must(t, os.WriteFile(root+"/new", nil, 0o600))
	if err := f.RemoveWorktree(t.Context(), nobody, at); code(err) != handoff.CodeRefused {
		t.Errorf("removed with a new file: %v", err)
	}
	must(t, os.Remove(root+"/new"))
	must(t, f.RemoveWorktree(t.Context(), nobody, at))
	if _, err := f.Attach(t.Context(), at); code(err) != handoff.CodeSessionGone {
		t.Errorf("attached a session without its worktree: %v", err)
	}
	s.set(func() { s.threads[0].Dir = dir })
	if err := f.RemoveWorktree(t.Context(), nobody, at); code(err) != handoff.CodeNotFound {
		t.Errorf("removed what is none: %v", err)
	}
}

// TestWorktreeMerged: a worktree goes once its work is merged and its session has been idle for some minutes, unless a
// server does not say whether it is. The session may be an old one, or of another entry for the machine.
func TestWorktreeMerged(t *testing.T) {
	dir, s, spec := withGit(t)
	other := &fakeServer{}
	f := run(t, spec, Spec{Name: "other", Dial: other.dial})
	for i, c := range []struct {
		what      string
		status    handoff.SessionStatus
		quiet     time.Duration
		committed bool
		merged    bool
		gone      bool
		newer     int         // sessions in another worktree
		of        *fakeServer // the server that has the session
	}{
		{"merged", handoff.SessionIdle, idleFor, true, true, true, 1, s},
		{"merged a while ago", handoff.SessionUnknown, worksFor, true, true, true, 1, s},
		{"just merged", handoff.SessionIdle, idleFor / 2, true, true, false, 1, s},
		{"perhaps at work", handoff.SessionUnknown, worksFor / 2, true, true, false, 1, s},
		{"running", handoff.SessionRunning, worksFor, true, true, false, 1, s},
		{"not merged", handoff.SessionIdle, worksFor, true, false, false, 1, s},
		{"without a commit", handoff.SessionIdle, worksFor, false, false, false, 1, s},
		{"running, older than many", handoff.SessionRunning, worksFor, true, true, false, listWindow, s},
		{"running elsewhere", handoff.SessionRunning, worksFor, true, true, false, 1, other},
	} {
		name := handoff.WorktreeName(c.what, strconv.Itoa(i))
		root := dir + handoff.WorktreeDirs + "/" + name
		at := handoff.Target{Server: "bigpc", Project: "api", Thread: handoff.NewThread}
		_, err := f.CreateIn(t.Context(), at, name, true)
		must(t, err)
		if c.committed {
			git(t, root, "commit", "-q", "--allow-empty", "-m", c.what)
		}
		if c.merged {
			git(t, dir, "merge", "-q", "switchboard/"+name)
		}
		there := Thread{ID: idAuth, Dir: dir + handoff.WorktreeDirs + "/" + handoff.WorktreeName("other", "1")}
		s.set(func() { s.threads = slices.Repeat([]Thread{there}, c.newer) })
		c.of.set(func() {
			c.of.threads = append(c.of.threads, Thread{ID: idAPI, Title: c.what, Dir: root, Status: c.status, Updated: time.Now().Add(-c.quiet)})
		})
		_, err = f.Sessions(t.Context(), nobody, handoff.SessionQuery{})
		must(t, err)
		f.tidyAll(t.Context())
		if _, err := os.Stat(root); errors.Is(err, os.ErrNotExist) != c.gone {
			t.Errorf("%s: %v", c.what, err)
		}
		must(t, os.RemoveAll(root))
	}
}

// A hookedGit calls a function before git runs.
type hookedGit struct {
	gitLink
	before func(args []string)
}

func (h hookedGit) Git(ctx context.Context, dir string, args []string) (trees.Ran, error) {
	h.before(args)
	return h.gitLink.Git(ctx, dir, args)
}

// TestWorktreeUsedMeanwhile: a worktree stays in which a turn begins while another machine is asked, or while another
// repository is tidied.
func TestWorktreeUsedMeanwhile(t *testing.T) {
	for meanwhile, stay := range map[string]int{"machine": 2, "repository": 1} {
		api, s, spec := withGit(t)
		shop, _, _ := withGit(t)
		spec.Projects["shop"] = shop
		other := &fakeServer{}
		var tidies atomic.Bool
		begin := func() {
			s.set(func() {
				s.threads = slices.Clone(s.threads)
				for i := range s.threads {
					s.threads[i].Status = handoff.SessionRunning
				}
			})
		}
		other.onList = func(context.Context, int) error {
			if meanwhile == "machine" && tidies.Load() {
				begin()
			}
			return nil
		}
		dial := spec.Dial
		spec.Dial = func(ctx context.Context) (*Link, error) {
			l, err := dial(ctx)
			if err == nil {
				l.Conn = hookedGit{l.Conn.(gitLink), func(args []string) {
					if meanwhile == "repository" && slices.Contains(args, "remove") {
						begin()
					}
				}}
			}
			return l, err
		}
		f := run(t, spec, Spec{Name: "other", Dial: other.dial})
		var roots []string
		for project, dir := range map[string]string{"api": api, "shop": shop} {
			name := handoff.WorktreeName(project, "1")
			root := dir + handoff.WorktreeDirs + "/" + name
			_, err := f.CreateIn(t.Context(), handoff.Target{Server: "bigpc", Project: project, Thread: handoff.NewThread}, name, true)
			must(t, err)
			git(t, root, "commit", "-q", "--allow-empty", "-m", project)
			git(t, dir, "merge", "-q", "switchboard/"+name)
			roots = append(roots, root)
			s.set(func() {
				s.threads = append(s.threads, Thread{ID: project, Dir: root, Status: handoff.SessionIdle, Updated: time.Now().Add(-idleFor)})
			})
		}
		_, err := f.Sessions(t.Context(), nobody, handoff.SessionQuery{})
		must(t, err)
		tidies.Store(true)
		f.tidyAll(t.Context())
		left := slices.DeleteFunc(roots, func(root string) bool { _, err := os.Stat(root); return err != nil })
		if len(left) != stay {
			t.Errorf("meanwhile another %s: %d stay, want %d", meanwhile, len(left), stay)
		}
	}
}

// TestWorktreeWithoutSession: a worktree whose session is not made is removed again.
func TestWorktreeWithoutSession(t *testing.T) {
	dir, s, spec := withGit(t)
	f := run(t, spec)
	s.onCreate = func(*fakeLink) error { return handoff.Fault(handoff.CodeRefused, "bigpc", "no") }
	at := handoff.Target{Server: "bigpc", Project: "api", Thread: handoff.NewThread}
	name := handoff.WorktreeName("fix the login", "1")
	if _, err := f.CreateIn(t.Context(), at, name, false); code(err) != handoff.CodeRefused {
		t.Errorf("created: %v", err)
	}
	if s.dirs[0] == dir {
		t.Error("it was not in a worktree: the test shows nothing")
	}
	if _, err := os.Stat(dir + handoff.WorktreeDirs + "/" + name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the worktree stayed: %v", err)
	}
	plain := run(t, Spec{Name: "bigpc", Projects: spec.Projects, Dial: s.dial})
	if _, err := plain.CreateIn(t.Context(), at, name, true); code(err) != handoff.CodeUnsupported {
		t.Errorf("without git: %v", err)
	}
}

// TestWorktreeOfARepetition: a repetition that fails leaves the worktree of the session that an earlier one made. One
// that made the worktree removes it.
func TestWorktreeOfARepetition(t *testing.T) {
	dir, s, spec := withGit(t)
	f := run(t, spec)
	s.onCreate = func(*fakeLink) error { return nil }
	in := func(name string) error {
		_, err := f.CreateIn(t.Context(), handoff.Target{Server: "bigpc", Project: "api", Thread: handoff.NewThread}, name, true)
		return err
	}
	kept, undone := handoff.WorktreeName("fix the login", "1"), handoff.WorktreeName("fix the tests", "2")
	must(t, in(kept))
	s.onCreate = func(*fakeLink) error { return handoff.Fault(handoff.CodeRefused, "bigpc", "") }
	for name, stays := range map[string]bool{kept: true, undone: false} {
		if err := in(name); code(err) != handoff.CodeRefused {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(dir + handoff.WorktreeDirs + "/" + name); stays != (err == nil) {
			t.Errorf("%s stays: %v", name, err)
		}
	}
}
