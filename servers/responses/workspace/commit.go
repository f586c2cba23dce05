package workspace

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"
	"unicode/utf8"
)

// A spot is a name in a directory that is held open, from the check of what is there to the rename: wherever its path
// leads by then, what is written comes into that directory.
type spot struct {
	w    *Workspace
	dir  *os.Root
	path string // of the workspace
}

// spot opens the directory of a path, one element after the other and through no link: what an edit touches is asked
// and judged by its name. Missing directories are made, or are [fs.ErrNotExist].
func (w *Workspace) spot(name string, make bool) (spot, error) {
	at := spot{w: w, path: name}
	dir, err := w.root.OpenRoot(".")
	if err != nil {
		return at, err
	}
	for i, r := range name + "/" {
		if r != '/' || i == len(name) {
			continue
		}
		next, err := w.enter(dir, path.Base(name[:i]), make)
		_ = dir.Close()
		if err != nil {
			return at, fmt.Errorf("%s %w", name[:i], err)
		}
		dir = next
	}
	at.dir = dir
	return at, nil
}

// errLink refuses an edit.
var errLink = errors.New("is a link or a file; name the place itself")

// enter opens a directory in another one. A link that takes its place meanwhile leads to another one.
func (w *Workspace) enter(dir *os.Root, name string, make bool) (*os.Root, error) {
	about, err := dir.Lstat(name)
	if make && errors.Is(err, fs.ErrNotExist) {
		if err = dir.Mkdir(name, 0o755); err == nil && w.cfg.User != nil {
			err = dir.Lchown(name, w.cfg.User.UID, w.cfg.User.GID)
		}
		if err == nil {
			about, err = dir.Lstat(name)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case !about.IsDir():
		return nil, errLink
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if opened, err := next.Stat("."); err != nil || !os.SameFile(about, opened) {
		_ = next.Close()
		return nil, errLink
	}
	return next, nil
}

func (at spot) name() string { return path.Base(at.path) }

// read returns the text that is there, nil without a file, and its mode. Links are refused: they would be replaced by
// files.
func (at spot) read() (*string, fs.FileMode, error) {
	about, err := at.dir.Lstat(at.name())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, newFile, nil
	case err != nil:
		return nil, 0, err
	case !about.Mode().IsRegular():
		return nil, 0, fmt.Errorf("%s is no regular file", at.path)
	case about.Size() > maxFile:
		return nil, 0, fmt.Errorf("%s is larger than %d bytes", at.path, maxFile)
	}
	f, err := at.dir.OpenFile(at.name(), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }()
	if opened, err := f.Stat(); err != nil || !os.SameFile(about, opened) {
		return nil, 0, fmt.Errorf("%s was changed meanwhile", at.path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, 0, err
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return nil, 0, fmt.Errorf("%s is not text", at.path)
	}
	text := string(data)
	return &text, about.Mode().Perm(), nil
}

// stage writes a text beside what is there, and returns the name that it has so long; "" for no text.
func (at spot) stage(text *string, mode fs.FileMode) (temp string, err error) {
	if text == nil {
		return "", nil
	}
	temp = ".switchboard-" + rand.Text()
	f, err := at.dir.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return "", err
	}
	if u := at.w.cfg.User; u != nil {
		err = f.Chown(u.UID, u.GID)
	}
	_, wrote := f.WriteString(*text)
	return temp, errors.Join(err, wrote, f.Chmod(mode), f.Close())
}

// put moves the staged text to its place, or removes the file.
func (at spot) put(temp string) error {
	if temp == "" {
		return at.dir.Remove(at.name())
	}
	return at.dir.Rename(temp, at.name())
}

// restore puts the old file back.
func (at spot) restore(c change) error {
	temp, err := at.stage(c.old, c.mode)
	if err == nil {
		err = at.put(temp)
	}
	if c.old == nil && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// commit writes everything beside what is there, and then puts it in its place. What fails in between is undone; an
// error says whether all of it was. Nobody else has the turn.
func (w *Workspace) commit(changes []change) (err error) {
	var spots []spot
	var temps []string
	done := 0
	defer func() {
		if err != nil {
			var left error
			for i, c := range slices.Backward(changes[:done]) {
				if undone := spots[i].restore(c); undone != nil {
					left = errors.Join(left, fmt.Errorf("%s could not be put back: %w", c.path, undone))
				}
			}
			err = notMade(err, left)
		}
		for i, at := range spots {
			if i < len(temps) && temps[i] != "" {
				_ = at.dir.Remove(temps[i]) // there is none where all went well
			}
			_ = at.dir.Close()
		}
	}()
	for _, c := range changes {
		at, err := w.spot(c.path, c.new != nil)
		if err != nil {
			return err
		}
		spots = append(spots, at)
		temp, err := at.stage(c.new, c.mode)
		temps = append(temps, temp)
		if err != nil {
			return err
		}
	}
	for i, c := range changes {
		if is, _, err := spots[i].read(); err != nil || !sameText(is, c.old) {
			return errors.Join(fmt.Errorf("%s was changed meanwhile", c.path), err)
		}
	}
	for i := range changes {
		done = i + 1
		if err := spots[i].put(temps[i]); err != nil {
			return err
		}
	}
	return nil
}

// notMade says why changes were not made, and what of them is left nevertheless.
func notMade(err, left error) error {
	if left == nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	return fmt.Errorf("some files are changed: %w\n%w", left, err)
}

// sameText compares two texts; nil is a file that is not there.
func sameText(a, b *string) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
