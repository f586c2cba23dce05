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

// aside is appended to the name of a file that a command made and that other programs would run later.
const aside = ".set-aside"

// maxAside is how many of these files are named to the model.
const maxAside = 20

// laterNames are the last elements, in lower case, of the paths that other programs run later. They sort out most
// names quickly. Set once.
var laterNames = func() map[string]bool {
	names := map[string]bool{}
	for _, name := range risk.LaterNames() {
		names[strings.ToLower(path.Base(name))] = true
	}
	return names
}()

// runsLater reports whether other programs run a path of the workspace later, if they run none of its directories.
func runsLater(name string) bool {
	return laterNames[strings.TrimRight(strings.ToLower(path.Base(name)), ". ")] && risk.RunsLater(name)
}

// A thing is a file, directory or link that other programs run later.
type thing struct {
	about fs.FileInfo
	to    string // target of a link; "" if it is none
}

// is reports whether two things are the same one. Links are compared by their target.
func (t thing) is(other thing) bool {
	return t.to == other.to && t.about.Mode().Type() == other.about.Mode().Type() &&
		(t.to != "" || os.SameFile(t.about, other.about))
}

// look calls found for each thing in the workspace, at any depth but not inside another thing. found returns the path
// at which to look inside it, "" for not at all. hidden is called for a directory that cannot be read, and reports
// whether to look inside.
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
			return nil // it is gone or cannot be read, or the walk begins here
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

// later returns the things before a command, and the paths that the command may only read because of them.
func (w *Workspace) later() (before map[string]thing, kept []string, err error) {
	before = map[string]thing{}
	add := func(name string, t thing) string {
		before[name] = t
		place := filepath.Join(w.dir, name)
		if t.to != "" { // the target is protected; the link is compared afterwards
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

// setAside renames the things that a command made, and returns a note about it for the model, "" for none.
func (w *Workspace) setAside(before map[string]thing) string {
	var notes []string
	move := func(name string, t thing) string {
		if had, ok := before[name]; ok && had.is(t) {
			return ""
		}
		for _, had := range before { // it was moved with a directory above it
			if had.to == "" && had.is(t) {
				return ""
			}
		}
		to, err := w.free(name + aside)
		if err == nil {
			err = w.root.Rename(name, to)
		}
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s could not be set aside: %s", name, plain(err)))
			return ""
		}
		notes = append(notes, name+" is now "+to)
		return to
	}
	err := w.look(".", move, func(name string, about fs.FileInfo) bool {
		if had, ok := before[name]; ok && os.SameFile(had.about, about) {
			return false
		}
		return w.root.Chmod(name, about.Mode().Perm()|0o700) == nil
	})
	if err != nil {
		notes = append(notes, "the workspace could not be looked through: "+plain(err))
	}
	if len(notes) == 0 {
		return ""
	}
	if more := len(notes) - maxAside; more > 0 {
		notes = append(notes[:maxAside], fmt.Sprintf("%d more", more))
	}
	return "\nSet aside, because other programs run or obey it later: " + strings.Join(notes, "; ") +
		". A command cannot make such files. Write them with write_file or apply_patch: a person is asked then.\n"
}

// free returns a name that does not exist: the given one, or one with a number.
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
