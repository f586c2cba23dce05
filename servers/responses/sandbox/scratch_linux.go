package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// scratchPrefix begins the names of scratch directories, in the directory for temporary files. Older versions, which
// lock another file, remove those that begin with "switchboard-scratch-".
const scratchPrefix = "switchboard-commands-"

// A Scratch is a directory for the temporary files of commands. Its process has a lock on it, which ends with the
// process; an unlocked one is removed when the next one is made.
type Scratch struct {
	Dir  string
	of   *User    // Set once: whose files are in it; nil: ours
	lock *os.File // Set once: the open directory
}

// NewScratch makes a scratch directory for the commands of a user (nil for our own), and removes abandoned ones.
func NewScratch(of *User) (*Scratch, error) {
	all, _ := filepath.Glob(filepath.Join(os.TempDir(), scratchPrefix+"*"))
	for _, dir := range all { // as far as they are ours
		if lock := locked(dir); lock != nil {
			_ = errors.Join(os.RemoveAll(dir), lock.Close())
		}
	}
	s, err := &Scratch{of: of}, error(nil)
	for range 100 { // somebody who looks for abandoned ones may be faster with the lock
		if s.Dir, err = os.MkdirTemp("", scratchPrefix); err != nil {
			return nil, err
		}
		if s.lock = locked(s.Dir); s.lock != nil {
			break
		}
	}
	if s.lock == nil {
		return nil, errors.New(s.Dir + " cannot be locked")
	}
	for _, name := range append(written, "root") {
		name = filepath.Join(s.Dir, name)
		err = errors.Join(err, os.Mkdir(name, 0o700))
		if of != nil {
			err = errors.Join(err, os.Chmod(s.Dir, 0o711), os.Lchown(name, of.UID, of.GID))
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// locked opens and locks a directory; nil if it is not ours, or another process has locked or removed it.
func locked(dir string) *os.File {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		opened, err := f.Stat()
		named, err2 := os.Lstat(dir)
		if errors.Join(err, err2) == nil && os.SameFile(opened, named) &&
			int(opened.Sys().(*syscall.Stat_t).Uid) == os.Geteuid() {
			return f
		}
	}
	_ = f.Close()
	return nil
}

// Close removes the directory. No command may use it any more.
func (s *Scratch) Close() error { return errors.Join(os.RemoveAll(s.Dir), s.lock.Close()) }
