package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"switchboard/handoff"
)

// Bounds of an edit.
const (
	maxFiles = 100
	maxFile  = 16 << 20 // bytes of a changed file
	newFile  = 0o644    // mode of a new file
)

// A change is the change of one file. old and new are nil where there is no file.
type change struct {
	path     string // of the workspace
	old, new *string
	mode     fs.FileMode
	moved    string // the new path of a file that is moved away
}

func applyPatch(ctx context.Context, w *Workspace, args struct {
	Patch string `json:"patch"`
}, call Call) (Result, error) {
	sections, err := parsePatch(args.Patch)
	if err != nil {
		return Result{}, err
	}
	var changes []change
	for _, s := range sections {
		if changes, err = w.planned(changes, s); err != nil {
			return Result{}, fmt.Errorf("nothing was changed: %s: %w", s.path, err)
		}
	}
	return w.change(ctx, call, changes)
}

func writeFile(ctx context.Context, w *Workspace, args struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}, call Call) (Result, error) {
	c, err := w.text(args.Path)
	if err != nil {
		return Result{}, err
	}
	c.new = &args.Content
	return w.change(ctx, call, []change{c})
}

// now returns the present state of a file, which may be missing, as a change without a new text.
func (w *Workspace) now(name string) (change, error) {
	name, err := w.local(name)
	if err != nil {
		return change{}, err
	}
	at, err := w.spot(name, false)
	if errors.Is(err, fs.ErrNotExist) {
		return change{path: name, mode: newFile}, nil
	}
	if err != nil {
		return change{}, err
	}
	defer func() { _ = at.dir.Close() }()
	old, mode, err := at.read()
	return change{path: name, old: old, mode: mode}, err
}

// text is now for an edit, which changes text alone.
func (w *Workspace) text(name string) (change, error) {
	c, err := w.now(name)
	if err == nil && (!utf8.ValidString(value(c.old)) || strings.Contains(value(c.old), "\x00")) {
		err = fmt.Errorf("%s is not text", c.path)
	}
	return c, err
}

// planned adds the change of a section to those of the sections before it.
func (w *Workspace) planned(changes []change, s section) ([]change, error) {
	name, err := w.local(s.path)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(changes, func(c change) bool { return c.path == name })
	if i < 0 {
		c, err := w.text(name)
		if err != nil {
			return nil, err
		}
		c.new = c.old
		changes = append(changes, c)
		i = len(changes) - 1
	}
	c := &changes[i]
	switch {
	case len(changes) > maxFiles:
		return nil, fmt.Errorf("a patch changes at most %d files", maxFiles)
	case s.verb == addFile && c.new != nil:
		return nil, errors.New("it is there already; update it")
	case s.verb != addFile && c.new == nil:
		return nil, errors.New("there is no such file")
	case s.verb == deleteFile:
		c.new = nil
		return changes, nil
	}
	made, err := s.apply(value(c.new))
	if err != nil {
		return nil, err
	}
	c.new = &made
	if s.move == "" {
		return changes, nil
	}
	c.new = nil
	to, err := w.planned(changes, section{verb: addFile, path: s.move})
	if err != nil {
		return nil, fmt.Errorf("to %s: %w", s.move, err)
	}
	name, err = w.local(s.move)
	if err != nil {
		return nil, err
	}
	j := slices.IndexFunc(to, func(c change) bool { return c.path == name }) // an earlier section may have changed it
	to[j].new, to[j].mode = &made, to[i].mode
	to[i].moved = name
	return to, nil
}

// change makes all changes or none, if they are allowed. It prints them before a person is asked.
func (w *Workspace) change(ctx context.Context, call Call, changes []change) (Result, error) {
	changes = slices.DeleteFunc(changes, func(c change) bool {
		return sameText(c.old, c.new)
	})
	if len(changes) == 0 {
		return Result{Text: "Nothing had to be changed."}, nil
	}
	var did []string
	for _, c := range changes {
		diff, verb := c.diff()
		_, _ = io.WriteString(call.Out, diff)
		did = append(did, verb+" "+c.path)
	}
	l, err := w.links(ctx)
	if err != nil {
		return Result{}, err
	}
	if err := w.allowed(ctx, call, w.aboutEdit(l, changes)); err != nil {
		return Result{}, err
	}
	if err := w.begin(ctx); err != nil {
		return Result{}, err
	}
	defer w.end()
	if err := w.commit(changes); err != nil {
		return Result{}, err
	}
	return Result{Text: "Done.\n" + strings.Join(did, "\n"), Changes: shown(changes)}, nil
}

// shown returns the changes for display, with as much of the diffs as is kept.
func shown(changes []change) []handoff.FileChange {
	room := handoff.MaxDiff
	var all []handoff.FileChange
	for _, c := range changes {
		if c.old == nil && slices.ContainsFunc(changes, func(from change) bool { return from.moved == c.path }) {
			continue // shown with the old path
		}
		kind, to := "update", ""
		switch {
		case c.moved != "":
			i := slices.IndexFunc(changes, func(to change) bool { return to.path == c.moved })
			c.new, to = changes[i].new, c.moved
		case c.old == nil:
			kind = "add"
		case c.new == nil:
			kind = "delete"
		}
		f := handoff.FileChange{Path: c.path, Kind: kind, To: to}
		diff, _ := c.diff()
		if _, hunks, ok := strings.Cut(diff, "\n@@ "); ok {
			room = f.Show("@@ "+hunks, room)
		}
		all = append(all, f)
	}
	return all
}

// diff returns a change as a unified diff, and its letter: A, D or M.
func (c change) diff() (diff, verb string) {
	from, to, verb := "a/"+c.path, "b/"+c.path, "M"
	if c.old == nil {
		from, verb = "/dev/null", "A"
	}
	if c.new == nil {
		to, verb = "/dev/null", "D"
	}
	return udiff.Unified(from, to, value(c.old), value(c.new)), verb
}
