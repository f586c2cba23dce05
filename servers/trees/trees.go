package trees

import (
	"context"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchboard/handoff"
)

// cannot returns the error of a machine on which no worktree can be made: why, and what to do instead.
func cannot(why, next string) *handoff.Error {
	return &handoff.Error{Code: handoff.CodeUnsupported, Detail: why, Why: why, Next: next}
}

// Cannot is the error of a server that cannot make worktrees: why is a clause, and next the one thing to do.
func Cannot(server, why, next string) *handoff.Error {
	e := cannot(why, next)
	e.Subject = server
	return e
}

// kept returns the error of a worktree that stays, since something would be lost.
func kept(why, next string) *handoff.Error {
	return &handoff.Error{Code: handoff.CodeRefused, Detail: why, Why: why, Next: next}
}

// run runs a command that must succeed.
func run(ctx context.Context, git Git, dir string, args ...string) (string, error) {
	ran, err := git(ctx, dir, args)
	switch {
	case err != nil:
		return "", err
	case ran.Lacks != "":
		return "", cannot(ran.Lacks, "Install git on that machine, correct the directory in its entry, or ask without "+
			"a worktree; nothing was run.")
	case ran.Runs != "":
		return "", cannot("the repository's own configuration names a program, as "+ran.Runs,
			"Take that setting out of the repository there, or ask without a worktree; nothing was run.")
	case ran.Exit != 0:
		return "", kept(said(ran), "git there says why; nothing was forced.")
	}
	return ran.Out, nil
}

// said returns the last line of what git printed as an error, without "fatal: ".
func said(ran Ran) string {
	lines := strings.Split(strings.TrimSpace(ran.Err), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	for _, lead := range []string{"fatal: ", "error: "} {
		last = strings.TrimPrefix(last, lead)
	}
	return handoff.ClipRunes(last, 200)
}

// holds runs a command that only says yes or no.
func holds(ctx context.Context, git Git, dir string, args ...string) (bool, error) {
	ran, err := git(ctx, dir, args)
	return err == nil && ran.Lacks == "" && ran.Exit == 0, err
}

// An entry is a worktree of ours as git lists it.
type entry struct {
	name   string
	root   string // its directory, links followed
	head   string // the commit that is checked out
	branch string // without refs/heads/; "": none is checked out
	gone   bool   // its directory is missing
}

// list returns the worktrees of ours that a repository has.
func list(ctx context.Context, git Git, dir string) ([]entry, error) {
	out, err := run(ctx, git, dir, "worktree", "list", "--porcelain")
	var all []entry
	for block := range strings.SplitSeq(out, "\n\n") {
		var e entry
		for line := range strings.SplitSeq(block, "\n") {
			word, value, _ := strings.Cut(line, " ")
			switch word {
			case "worktree":
				if w := handoff.WorktreeAt(value); w != nil && w.Root == value {
					e.name, e.root = w.Name, value
				}
			case "HEAD":
				e.head = value
			case "branch":
				e.branch = strings.TrimPrefix(value, "refs/heads/")
			case "prunable":
				e.gone = true
			}
		}
		if e.name != "" && hash.MatchString(e.head) {
			all = append(all, e)
		}
	}
	return all, err
}

// find returns the worktree of a name; false: there is none.
func find(all []entry, name string) (entry, bool) {
	if i := slices.IndexFunc(all, func(e entry) bool { return e.name == name }); i >= 0 {
		return all[i], true
	}
	return entry{}, false
}

// Add makes the worktree of a name for the repository that dir is in, or finds it. made says which. It returns the
// directory in it that stands for dir. Its branch begins at what is checked out in dir.
func Add(ctx context.Context, git Git, dir, name string) (w *handoff.Worktree, made bool, err error) {
	dir = path.Clean(dir)
	if !plain(dir) {
		return nil, false, cannot("there is no directory to make one beside",
			"Name a project of that machine, or set its cwd.")
	}
	ran, err := git(ctx, dir, allowed[0])
	if err != nil {
		return nil, false, err
	}
	inside, prefix, _ := strings.Cut(ran.Out, "\n")
	prefix = strings.TrimSuffix(strings.TrimSuffix(prefix, "\n"), "/")
	of := strings.TrimSuffix(dir, "/"+prefix)
	switch {
	case ran.Lacks != "":
		return nil, false, cannot(ran.Lacks, "Install git on that machine, correct the directory in its entry, or ask "+
			"without a worktree; nothing was run.")
	case ran.Exit != 0 || inside != "true":
		return nil, false, cannot(dir+" is no repository of git", "Ask without a worktree, or name a project that is "+
			"one; nothing was run.")
	case prefix != "" && of == dir:
		return nil, false, cannot(dir+" leads to a part of a repository by a link", "Name the directory itself in the "+
			"entry of that machine; nothing was run.")
	}
	w = handoff.WorktreeAt(path.Join(of+handoff.WorktreeDirs, name, prefix))
	if w == nil || w.Of != of { // dir is in a worktree of ours, say
		return nil, false, cannot("no worktree can be made beside "+dir, "Ask without a worktree; nothing was run.")
	}
	all, err := list(ctx, git, dir)
	if err != nil {
		return nil, false, err
	}
	same := "/" + path.Base(of) + handoff.WorktreeDirs + "/" + name
	if e, there := find(all, name); there && !e.gone && strings.HasSuffix(e.root, same) {
		return w, false, nil
	}
	_, err = run(ctx, git, dir, "worktree", "add", "-b", w.Branch, w.Root)
	return w, err == nil, err
}

// Gone reports whether a worktree was removed. After an error it is not known.
func Gone(ctx context.Context, git Git, w *handoff.Worktree) (bool, error) {
	all, err := list(ctx, git, w.Of)
	e, made := find(all, w.Name)
	return err == nil && (!made || e.gone), err
}

// Remove removes a worktree and its branch, unless something would be lost: changes that are not committed, new files,
// or commits that are neither merged nor pushed. Files that git ignores are removed too. A worktree that is gone
// already is no error.
func Remove(ctx context.Context, git Git, w *handoff.Worktree) error {
	all, err := list(ctx, git, w.Of)
	if err != nil {
		return err
	}
	e, made := find(all, w.Name)
	if !made {
		return nil
	}
	safe, err := keptElsewhere(ctx, git, w, e)
	if err != nil {
		return err
	}
	if !safe {
		return kept("its branch "+w.Branch+" has commits that are neither merged nor pushed",
			"Merge or push that branch, or remove the worktree there by hand; nothing was removed.")
	}
	return remove(ctx, git, w)
}

func remove(ctx context.Context, git Git, w *handoff.Worktree) error {
	if _, err := run(ctx, git, w.Of, "worktree", "remove", w.Root); err != nil {
		if e := handoff.AsError(err); e.Code == handoff.CodeRefused {
			e.Next = "Commit or undo what was changed there, or remove the worktree there by hand; nothing was removed."
		}
		return err
	}
	_, err := git(ctx, w.Of, []string{"branch", "-d", w.Branch}) // git keeps a branch that it does not find merged
	return err
}

// keptElsewhere reports whether all commits of a worktree are kept without it: merged into what is checked out in the
// repository, pushed, or on a branch of another name, which stays.
func keptElsewhere(ctx context.Context, git Git, w *handoff.Worktree, e entry) (bool, error) {
	if e.branch != "" && e.branch != w.Branch {
		return true, nil
	}
	merged, err := holds(ctx, git, w.Of, "merge-base", "--is-ancestor", e.head, "HEAD")
	if merged || err != nil || e.branch == "" {
		return merged, err
	}
	far := w.Branch + "@{upstream}"
	if has, err := holds(ctx, git, w.Of, "rev-parse", "--verify", "--quiet", far); !has {
		return false, err
	}
	return holds(ctx, git, w.Of, "merge-base", "--is-ancestor", e.head, far)
}

// unusedFor is how long a worktree in which nothing was ever committed is kept if no session is known there.
const unusedFor = 7 * 24 * time.Hour

// Tidy removes the worktrees beside w whose work is merged, and those that are a week old, in which nothing was ever
// committed and no session is known. used says whether a session is known in a worktree, and whether it may be at work.
// It removes none in which something would be lost, and returns how many it removed.
func Tidy(
	ctx context.Context, git Git, w *handoff.Worktree, now time.Time, used func(w *handoff.Worktree) (known, works bool),
) (removed int) {
	all, _ := list(ctx, git, w.Of) // what could not be listed stays
	for _, e := range all {
		one := handoff.WorktreeAt(w.Of + handoff.WorktreeDirs + "/" + e.name)
		if one == nil || e.name == w.Name || e.branch != one.Branch || e.gone {
			continue
		}
		known, works := used(one)
		if works {
			continue
		}
		merged, err := holds(ctx, git, w.Of, "merge-base", "--is-ancestor", e.head, "HEAD")
		if !merged || err != nil {
			continue
		}
		begun, committed, ok := history(ctx, git, one)
		if !ok || !committed && (known || now.Sub(begun) < unusedFor) {
			continue
		}
		if remove(ctx, git, one) == nil {
			removed++
		}
	}
	return removed
}

// history returns when a branch of ours was made, and whether anything was committed there since.
func history(ctx context.Context, git Git, w *handoff.Worktree) (made time.Time, committed, ok bool) {
	out, err := run(ctx, git, w.Of, "log", "-g", "--date=unix", "--format=%H %gd", w.Branch, "--")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	first, _, _ := strings.Cut(lines[0], " ")
	last, at, _ := strings.Cut(lines[len(lines)-1], " ")
	_, stamp, _ := strings.Cut(at, "@{")
	seconds, bad := strconv.ParseInt(strings.TrimSuffix(stamp, "}"), 10, 64)
	return time.Unix(seconds, 0), first != last, err == nil && bad == nil
}
