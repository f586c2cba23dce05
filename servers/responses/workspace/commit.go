package workspace

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"
)

// A spot is a file name in a directory that is held open from the check of the file to its replacement. The write goes
// to that directory, even if its path leads elsewhere by then.
type spot struct {
	w    *Workspace
	dir  *os.Root
	path string // of the workspace
}

// spot opens the directory of a path, element by element and without following links: an edit is approved by its path,
// so the path must not lead elsewhere. If make is false, a missing directory is [fs.ErrNotExist].
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

// errLink is the error of an edit through a link.
var errLink = errors.New("is a link or a file; name the place itself")

// enter opens a directory within another one. It refuses a link, also one that takes its place meanwhile.
func (w *Workspace) enter(dir *os.Root, name string, make bool) (*os.Root, error) {
	info, err := dir.Lstat(name)
	if make && errors.Is(err, fs.ErrNotExist) {
		if err = dir.Mkdir(name, 0o755); err == nil && w.cfg.User != nil {
			err = dir.Lchown(name, w.cfg.User.UID, w.cfg.User.GID)
		}
		if err == nil {
			info, err = dir.Lstat(name)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, errLink
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if opened, err := next.Stat("."); err != nil || !os.SameFile(info, opened) {
		_ = next.Close()
		return nil, errLink
	}
	return next, nil
}

func (at spot) name() string { return path.Base(at.path) }

// read returns the content and the mode of the file; nil if there is none. Links are refused: the edit would replace
// them by files.
func (at spot) read() (*string, fs.FileMode, error) {
	info, err := at.dir.Lstat(at.name())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, newFile, nil
	case err != nil:
		return nil, 0, err
	case !info.Mode().IsRegular():
		return nil, 0, fmt.Errorf("%s is no regular file", at.path)
	case info.Size() > maxFile:
		return nil, 0, fmt.Errorf("%s is larger than %d bytes", at.path, maxFile)
	}
	f, err := at.dir.OpenFile(at.name(), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }()
	if opened, err := f.Stat(); err != nil || !os.SameFile(info, opened) {
		return nil, 0, fmt.Errorf("%s was changed meanwhile", at.path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, 0, err
	}
	text := string(data)
	return &text, info.Mode().Perm(), nil
}

// stage writes a text to a temporary file in the same directory and returns its name; "" for a nil text.
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

// put renames the temporary file to the file, or removes the file if temp is "".
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

// commit writes all new texts to temporary files, and then puts each into its place. If anything fails, it restores
// the old files; the error says whether that worked. The caller holds the lock of the workspace.
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
				_ = at.dir.Remove(temps[i]) // already renamed if all went well
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
		if now, _, err := spots[i].read(); err != nil || !sameText(now, c.old) {
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

// notMade returns the error of changes that were not made; left says which files could not be restored.
func notMade(err, left error) error {
	if left == nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	return fmt.Errorf("some files are changed: %w\n%w", left, err)
}

// sameText reports whether two texts are equal; nil is a missing file.
func sameText(a, b *string) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
