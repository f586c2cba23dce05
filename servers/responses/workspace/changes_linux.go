package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"switchboard/servers/responses/sandbox"
)

// Bounds of what is looked at and told after a command.
const (
	maxDeep    = 1000 // bytes of a path
	maxDropped = 20   // directories at the top whose changes are told
)

var (
	errNotPlain  = errors.New("")
	errNotRun    = errors.New("it is not executable")
	errMeanwhile = errors.New("it was changed meanwhile")
	errLost      = errors.New("it is still there, because a file may have been moved that was not taken over")
)

// A taking takes over what a command changed: each path that could be edited without a question, as an edit of it would
// be. What is new of the rest is kept for the next commands alone.
type taking struct {
	*Workspace
	changed *os.Root  // what the command changed, in the form of overlayfs
	began   time.Time // the command
	links   links
	room    int64            // bytes that may still be taken over
	removed []string         // removals, which come last
	lost    bool             // a file that was in the workspace may be nowhere else than where it is not taken over
	dropped map[reason]*some // what was not taken over
}

// A reason is a directory at the top with changes that were not taken over, and why.
type reason struct{ why, dir string }

// some are changes: the first one, and how many there are.
type some struct {
	first string
	n     int
}

// take takes over what the last command changed. It returns a note about what was not taken over, for the model and for
// the person who sees the output; "" if all was.
func (w *Workspace) take(began time.Time) string {
	changed, err := w.scratch.Changed()
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	t := taking{Workspace: w, changed: changed, began: began, dropped: map[reason]*some{},
		room: cmp.Or(w.cfg.Limits.Tmp, sandbox.DefaultLimits.Tmp)}
	if err == nil {
		err = errors.Join(t.dir("."), changed.Close())
	}
	for _, name := range t.removed {
		if t.lost {
			t.drop(name, errLost)
		} else {
			t.remove(name)
		}
	}
	if err = errors.Join(err, w.scratch.Settle()); err != nil {
		t.drop("the rest", err)
	}
	return t.note()
}

// dir takes over the changes in a directory.
func (t *taking) dir(name string) error {
	_ = t.changed.Chmod(name, 0o700)
	f, err := t.changed.Open(name)
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	replaces := sandbox.Marked(f, sandbox.Replaces)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if len(entries) > 0 && t.links == nil {
		ctx, cancel := context.WithTimeout(context.Background(), maxTime) // also after a stop: it changed something
		t.links, err = t.Workspace.links(ctx)
		if cancel(); err != nil {
			return err
		}
	}
	if replaces && name != "." {
		t.scratch.Forget(name)
		t.replaced(name, entries)
	}
	for _, e := range entries {
		at := path.Join(name, e.Name())
		info, err := e.Info()
		switch {
		case err != nil:
		case info.IsDir() && len(at) < maxDeep:
			err = t.dir(at)
		default:
			t.file(at, info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// replaced notes what a new directory replaced: something else, or what it lacks.
func (t *taking) replaced(name string, entries []fs.DirEntry) {
	was, err := t.root.Lstat(name)
	switch {
	case err != nil:
	case !was.IsDir():
		t.removed = append(t.removed, name)
	default:
		had, _ := fs.ReadDir(t.root.FS(), name)
		for _, e := range had {
			if !slices.ContainsFunc(entries, func(now fs.DirEntry) bool { return now.Name() == e.Name() }) {
				t.removed = append(t.removed, path.Join(name, e.Name()))
			}
		}
	}
}

// file takes over the change of what is no directory, or drops it.
func (t *taking) file(name string, info fs.FileInfo) {
	kept := t.scratch.Forget(name)
	if sandbox.Removes(info) {
		t.removed = append(t.removed, name)
		return
	}
	_, copied, err := t.read(name, info, 0)
	if info.Mode() != info.Mode().Perm() || !t.isPlain(t.links, name) { // no regular file, or setuid
		err = errNotPlain
		t.lost = t.lost || copied && !kept
	} else if err == nil {
		err = t.put(name, info)
		t.lost = t.lost || err != nil && !errors.Is(err, errNotRun)
	}
	if err != nil {
		t.drop(name, err)
	}
	if _, err := t.root.Lstat(name); errors.Is(err, fs.ErrNotExist) && len(name) < maxDeep {
		t.scratch.Keep(name)
	}
}

// read returns the beginning of a changed file, and whether the file was there before, perhaps at another path.
func (t *taking) read(name string, info fs.FileInfo, limit int64) (text string, copied bool, err error) {
	if !info.Mode().IsRegular() {
		return "", false, nil
	}
	if info.Mode()&0o400 == 0 {
		_ = t.changed.Chmod(name, info.Mode().Perm()|0o400)
	}
	f, err := t.changed.Open(name)
	if err != nil {
		return "", false, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit))
	return string(data), sandbox.Marked(f, sandbox.Copied), errors.Join(err, f.Close())
}

// put takes over the content of a file.
func (t *taking) put(name string, info fs.FileInfo) error {
	now, err := t.state(name)
	if err != nil {
		return err
	}
	if t.room -= info.Size(); info.Size() > maxFile || t.room < 0 {
		return errors.New("it is too large")
	}
	text, _, err := t.read(name, info, maxFile)
	if now.new = &text; err == nil && !sameText(now.old, now.new) {
		err = t.commit([]change{now})
	}
	if err == nil && info.Mode()&0o100 > now.mode&0o100 {
		err = errNotRun
	}
	return err
}

// state is [Workspace.now] of a file that nobody else changed since the command began.
func (t *taking) state(name string) (change, error) {
	if info, err := t.root.Lstat(name); err == nil && sandbox.ChangedAfter(info, t.began) {
		return change{}, errMeanwhile
	}
	return t.now(name)
}

// remove removes a file, or all files below a directory that may be removed.
func (t *taking) remove(name string) {
	at, err := t.spot(name, false)
	if err != nil {
		return // its directory is gone, or is a link now
	}
	defer func() { _ = at.dir.Close() }()
	info, err := at.dir.Lstat(at.name())
	switch {
	case err != nil:
		return
	case info.IsDir() && t.isPlain(t.links, name+"/x.txt"): // a file in it could be removed
		entries, _ := fs.ReadDir(t.root.FS(), name)
		for _, e := range entries {
			t.remove(path.Join(name, e.Name()))
		}
		_ = at.dir.Remove(at.name()) // it stays while anything is left in it
		return
	case !info.Mode().IsRegular() || !t.isPlain(t.links, name):
		err = errNotPlain
	default:
		var now change
		if now, err = t.state(name); err == nil {
			err = t.commit([]change{now})
		}
	}
	if err != nil {
		t.drop(name, err)
	}
}

// drop notes that a change was not taken over.
func (t *taking) drop(name string, why error) {
	top, _, inside := strings.Cut(name, "/")
	if !inside {
		top = "."
	}
	at := reason{plain(why), top}
	if t.dropped[at] == nil {
		t.dropped[at] = &some{first: name}
	}
	t.dropped[at].n++
}

// note tells what was dropped, by directory at the top; what is not dropped for what it is comes first.
func (t *taking) note() string {
	var all []string
	for _, at := range slices.SortedFunc(maps.Keys(t.dropped), func(a, b reason) int {
		return cmp.Or(cmp.Compare(b.why, a.why), cmp.Compare(a.dir, b.dir))
	}) {
		text := t.dropped[at].first
		if more := t.dropped[at].n - 1; more > 0 {
			text += fmt.Sprintf(" and %d more in %s", more, at.dir)
		}
		if at.why != "" {
			text += " (" + at.why + ")"
		}
		all = append(all, text)
	}
	if more := len(all) - maxDropped; more > 0 {
		all = append(all[:maxDropped], fmt.Sprintf("more in %d other directories", more))
	}
	if len(all) == 0 {
		return ""
	}
	return "\nNot taken over into the workspace: " + strings.Join(all, "; ") + ". A command changes plain files alone. " +
		"What is new of the rest is there for the next commands, and for nobody else; the other changes are undone. To " +
		"make them, use write_file, apply_patch or outside: a person is asked then.\n"
}
