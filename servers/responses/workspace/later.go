package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"switchboard/handoff/risk"
)

// aside is put behind the name of what a command made and other programs would run later.
const aside = ".set-aside"

// maxAside is how many of them are told by name.
const maxAside = 20

// laterNames are the last elements of what other programs run later, in lower case: most names are none of them. Set
// once.
var laterNames = func() map[string]bool {
	names := map[string]bool{}
	for _, name := range risk.LaterNames() {
		names[strings.ToLower(path.Base(name))] = true
	}
	return names
}()

// runsLater reports whether a path of the workspace names what other programs run later, when no directory of it does.
func runsLater(name string) bool {
	return laterNames[strings.TrimRight(strings.ToLower(path.Base(name)), ". ")] && risk.RunsLater(name)
}

// A thing is a file, a directory or a link that other programs run later.
type thing struct {
	about fs.FileInfo
	to    string // of a link
}

// is reports whether two things are the same one. A link has no file of its own that would stay the same.
func (t thing) is(other thing) bool {
	return t.to == other.to && t.about.Mode().Type() == other.about.Mode().Type() &&
		(t.to != "" || os.SameFile(t.about, other.about))
}

// look finds what other programs run later, at any depth of the workspace, except inside another such thing. found
// returns where to go on, "" not to. A directory that cannot be looked into is hidden, which reports whether to go on.
func (w *Workspace) look(
	from string, found func(name string, t thing) (next string), hidden func(name string, about fs.FileInfo) bool,
) error {
	return filepath.WalkDir(filepath.Join(w.dir, from), func(full string, e fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(w.dir, full)
		switch {
		case relErr != nil:
			return relErr
		case err != nil && name == ".":
			return err
		case err != nil || name == "." || name == from:
			return nil // it has gone meanwhile, or nobody can name it
		case runsLater(filepath.ToSlash(name)):
			about, err := e.Info()
			if err != nil {
				return nil
			}
			t := thing{about: about}
			if about.Mode().Type() == fs.ModeSymlink {
				t.to, _ = os.Readlink(full)
			}
			next := found(name, t)
			if !e.IsDir() {
				return nil
			}
			if next != "" {
				if err := w.look(next, found, hidden); err != nil {
					return err
				}
			}
			return fs.SkipDir
		case e.IsDir():
			if about, err := e.Info(); err == nil && about.Mode()&0o500 != 0o500 && !hidden(name, about) {
				return fs.SkipDir
			}
		}
		return nil
	})
}

// later returns what there is of it before a command, and what of the workspace is only shown to the command for that.
func (w *Workspace) later() (before map[string]thing, kept []string, err error) {
	before = map[string]thing{}
	add := func(name string, t thing) string {
		before[name] = t
		place := filepath.Join(w.dir, name)
		if t.to != "" { // its target is kept; the link itself is looked at afterwards
			if place, err = filepath.EvalSymlinks(place); err != nil || !strings.HasPrefix(place, w.dir+"/") {
				return ""
			}
		}
		kept = append(kept, place)
		return ""
	}
	err = w.look(".", add, func(name string, about fs.FileInfo) bool {
		add(name, thing{about: about})
		return false
	})
	if err != nil {
		return nil, nil, fmt.Errorf("the workspace cannot be looked through: %w", err)
	}
	return before, kept, nil
}

// setAside renames what a command made that other programs would run later, and says so; "" when there is nothing.
func (w *Workspace) setAside(before map[string]thing) string {
	var did []string
	move := func(name string, t thing) string {
		if had, ok := before[name]; ok && had.is(t) {
			return ""
		}
		for _, had := range before { // a directory above it was moved
			if had.to == "" && had.is(t) {
				return ""
			}
		}
		to, err := w.free(name + aside)
		if err == nil {
			err = w.root.Rename(name, to)
		}
		if err != nil {
			did = append(did, fmt.Sprintf("%s could not be set aside: %s", name, plain(err)))
			return ""
		}
		did = append(did, name+" is now "+to)
		return to
	}
	err := w.look(".", move, func(name string, about fs.FileInfo) bool {
		if had, ok := before[name]; ok && os.SameFile(had.about, about) {
			return false
		}
		return w.root.Chmod(name, about.Mode().Perm()|0o700) == nil
	})
	if err != nil {
		did = append(did, "the workspace could not be looked through: "+plain(err))
	}
	if len(did) == 0 {
		return ""
	}
	if more := len(did) - maxAside; more > 0 {
		did = append(did[:maxAside], fmt.Sprintf("%d more", more))
	}
	return "\nSet aside, because other programs run or obey it later: " + strings.Join(did, "; ") +
		". A command cannot make such files. Write them with write_file or apply_patch: a person is asked then.\n"
}

// free is a name like another one that nothing has.
func (w *Workspace) free(name string) (string, error) {
	for i := range 1000 {
		try := name
		if i > 0 {
			try = fmt.Sprintf("%s-%d", name, i+1)
		}
		if _, err := w.root.Lstat(try); errors.Is(err, fs.ErrNotExist) {
			return try, nil
		}
	}
	return "", errors.New("there are too many already")
}
