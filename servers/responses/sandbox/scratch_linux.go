package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Prefixes of scratch directories, in the directory for temporary files. A new one has the second prefix, and gets the
// first once it is locked.
const (
	scratchPrefix = "switchboard-scratch-"
	makingPrefix  = "switchboard-making-"
	lockName      = "lock"
)

// makingTime is the age at which an unfinished directory counts as abandoned.
const makingTime = time.Hour

// A Scratch is a directory for the temporary files of commands. Its process has a lock on it, which ends with the
// process; an unlocked one is removed when the next one is made.
type Scratch struct {
	Dir  string
	of   *User // Set once: whose files are in it; nil: ours
	lock *os.File
}

// NewScratch makes a scratch directory for the commands of a user (nil for our own), and removes abandoned ones.
func NewScratch(of *User) (*Scratch, error) {
	sweep()
	dir, err := os.MkdirTemp("", makingPrefix)
	if err != nil {
		return nil, err
	}
	s := &Scratch{Dir: dir, of: of}
	for _, name := range append(written, "root") {
		name = filepath.Join(dir, name)
		err = errors.Join(err, os.Mkdir(name, 0o700))
		if of != nil {
			err = errors.Join(err, os.Chmod(dir, 0o711), os.Lchown(name, of.UID, of.GID))
		}
	}
	if err == nil {
		s.lock, err = os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	}
	if err == nil {
		err = unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err == nil {
		s.Dir = filepath.Join(filepath.Dir(dir), scratchPrefix+strings.TrimPrefix(filepath.Base(dir), makingPrefix))
		err = os.Rename(dir, s.Dir)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir), s.Close())
	}
	return s, nil
}

// Close removes the directory. No command may use it any more.
func (s *Scratch) Close() error {
	err := os.RemoveAll(s.Dir)
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

// sweep removes the directories that killed processes of this user left, as far as it can.
func sweep() {
	entries, _ := os.ReadDir(os.TempDir())
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.IsDir() {
			continue
		}
		dir := filepath.Join(os.TempDir(), e.Name())
		owner, ok := info.Sys().(*syscall.Stat_t)
		switch {
		case !ok || int(owner.Uid) != os.Geteuid():
		case strings.HasPrefix(e.Name(), makingPrefix) && time.Since(info.ModTime()) > makingTime,
			strings.HasPrefix(e.Name(), scratchPrefix) && abandoned(dir):
			_ = os.RemoveAll(dir)
		}
	}
}

// abandoned reports whether nobody has the lock of a directory. Two processes may remove it at once.
func abandoned(dir string) bool {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return true // a removal was interrupted
	}
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}
