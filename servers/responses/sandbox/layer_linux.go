package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The directories of the layer of a [Scratch], of which an overlay makes what a command sees as the workspace.
const (
	layerName   = "layer"
	upperName   = "upper"   // what the command changed
	lowerName   = "lower"   // where the workspace is mounted, beneath it
	privateName = "private" // what is kept of former commands, beneath the workspace
	workName    = "work"    // of overlayfs
)

// The marks of overlayfs.
const (
	Replaces = "user.overlay.opaque" // the directory replaces what was at its path
	Copied   = "user.overlay.origin" // the file was there before, perhaps at another path
)

// Marked reports whether an open file has a mark of overlayfs.
func Marked(f *os.File, mark string) bool {
	_, err := unix.Fgetxattr(int(f.Fd()), mark, nil)
	return err == nil
}

// Removes reports whether a file of overlayfs says that what was at its path was removed.
func Removes(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&fs.ModeCharDevice != 0 && stat.Rdev == 0
}

// ChangedAfter reports whether a file was changed after a time. Programs cannot set when a file was changed.
func ChangedAfter(info fs.FileInfo, t time.Time) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || time.Unix(stat.Ctim.Unix()).After(t)
}

// Changed opens what the last command changed of its workspace, in the form of overlayfs. [fs.ErrNotExist] means that
// none ran. [Scratch.Settle] comes after it, and before the next command.
func (s *Scratch) Changed() (*os.Root, error) {
	return os.OpenRoot(filepath.Join(s.Dir, layerName, upperName))
}

// Keep keeps a file of [Scratch.Changed] beneath the workspace, in place of what is kept there: the next commands see
// it while the workspace has nothing at its path. What cannot be kept is gone.
func (s *Scratch) Keep(name string) {
	layer, err := os.OpenRoot(filepath.Join(s.Dir, layerName))
	if err != nil {
		return
	}
	defer func() { _ = layer.Close() }()
	to := path.Join(privateName, name)
	for i, r := range to {
		if r == '/' && layer.Mkdir(to[:i], 0o755) == nil && s.of != nil {
			_ = layer.Lchown(to[:i], s.of.UID, s.of.GID)
		}
	}
	_ = layer.Rename(path.Join(upperName, name), to)
}

// Forget removes what is kept at a path, and reports whether there was anything.
func (s *Scratch) Forget(name string) bool {
	kept, err := os.OpenRoot(filepath.Join(s.Dir, layerName, privateName))
	if err != nil {
		return false
	}
	defer func() { _ = kept.Close() }()
	_, err = kept.Lstat(name)
	_ = kept.RemoveAll(name)
	return err == nil
}

// Settle removes what is left of the last command's changes.
func (s *Scratch) Settle() error { return settle(s.Dir) }

func settle(scratch string) error {
	var err error
	for _, name := range []string{upperName, workName, lowerName} {
		err = errors.Join(err, os.RemoveAll(filepath.Join(scratch, layerName, name)))
	}
	return err
}
