package sessions

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	lockFile = "lock"
	dirMode  = 0o700
	fileMode = 0o600

	othersMay   = 0o077 // the mode bits of group and others
	othersWrite = 0o022
)

// StateDir returns the directory where Switchboard keeps what must survive a restart. It makes it with mode 0700 if it
// is missing, and gives mode 0700 to one that others can read. A directory that belongs to another user, or in which
// others can write, is an error.
func StateDir(getenv func(string) string) (string, error) {
	dir, err := StatePath(getenv)
	if err != nil {
		return "", err
	}
	if err := ownDir(dir); err != nil {
		return "", err
	}
	return dir, nil
}

// StatePath returns the path of the state directory, whether it is there or not: $XDG_STATE_HOME/switchboard, else
// ~/.local/state/switchboard. A relative XDG_STATE_HOME is ignored, as the XDG base directory specification says.
func StatePath(getenv func(string) string) (string, error) {
	base := getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		home := getenv("HOME")
		if !filepath.IsAbs(home) {
			return "", errors.New("no state directory: set XDG_STATE_HOME or HOME to an absolute path")
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "switchboard"), nil
}

// ownDir makes a state directory, or checks the one that is there: it must belong to our user, and others must not
// have been able to write in it. If others could only read, it gets mode 0700.
func ownDir(path string) error {
	if err := os.MkdirAll(path, dirMode); err != nil {
		return fmt.Errorf("the state directory %s cannot be made (%w): let your user write there, or set XDG_STATE_HOME to "+
			"another directory", path, err)
	}
	dir, info, err := openDir(path)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // only read from
	mode := info.Mode().Perm()
	if mode&othersMay == 0 {
		return nil
	}
	if err := dir.Chmod(dirMode); err != nil {
		return fmt.Errorf("close the state directory to others: %w", err)
	}
	if mode&othersWrite == 0 {
		return nil
	}
	if _, err := dir.Readdirnames(1); errors.Is(err, io.EOF) { // empty: nobody has put anything into it
		return nil
	}
	_ = dir.Chmod(mode) // so that the next start refuses it, too
	return openToOthers(path, mode)
}

// openDir opens a state directory, and checks that it is a directory of our user.
func openDir(path string) (*os.File, fs.FileInfo, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("open the state directory: %w", err)
	}
	info, err := dir.Stat()
	switch {
	case err != nil:
		err = fmt.Errorf("look at the state directory: %w", err)
	case !info.IsDir():
		err = fmt.Errorf("the state directory %s is no directory: move it away, or set XDG_STATE_HOME to another one", path)
	default:
		err = notOurs(path, info)
	}
	if err != nil {
		_ = dir.Close() // only read from
		return nil, nil, err
	}
	return dir, info, nil
}

// OwnPath reports whether a state directory is there, belongs to our user, and others cannot write in it.
func OwnPath(path string) bool {
	info, err := os.Stat(path)
	return err == nil && notOurs(path, info) == nil && info.Mode().Perm()&othersWrite == 0
}

// ourUser returns our user id. Set once, except by tests.
var ourUser = os.Geteuid

// notOurs returns an error unless our user owns the directory.
func notOurs(path string, info fs.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int64(stat.Uid) != int64(ourUser()) {
		return fmt.Errorf("the state directory %s belongs to user %d, not to user %d who runs Switchboard: run it as "+
			"that user, "+
			"or set XDG_STATE_HOME to another directory", path, stat.Uid, ourUser())
	}
	return nil
}

// openToOthers is the error about a directory in which others can write.
func openToOthers(path string, mode fs.FileMode) error {
	return fmt.Errorf("others can write in the state directory %s (mode %04o), so what is in it may not be ours: "+
		"look at it, "+
		"then chmod 700 it, or set XDG_STATE_HOME to another directory", path, mode)
}

// LookDir returns the error with which a start would refuse a state directory. It changes nothing and takes no lock. A
// missing directory is fine if the start could make it.
func LookDir(path string) error {
	dir, info, err := openDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return lookWritable(path, existing(path))
	}
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // only read from
	if err := lookWritable(path, path); err != nil {
		return err
	}
	if _, empty := dir.Readdirnames(1); info.Mode().Perm()&othersWrite != 0 && !errors.Is(empty, io.EOF) {
		return openToOthers(path, info.Mode().Perm())
	}
	return nil
}

// existing returns the nearest parent directory of a path that exists.
func existing(path string) string {
	for {
		path = filepath.Dir(path)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
			return path
		}
	}
}

// mayWrite returns why we cannot write in a directory. Set once, except by tests: root may write whatever the mode.
var mayWrite = func(dir string) error {
	const write, enter = 2, 1 // the bits of access(2)
	return syscall.Access(dir, write|enter)
}

// leastRoom is how many bytes of the disk must be free: a piece of work begins with a write of more than a few bytes.
const leastRoom = 1 << 20

// roomOf is [RoomOf]. Set once, except by tests.
var roomOf = RoomOf

// RoomOf returns how many bytes of a directory's disk are free for us.
func RoomOf(dir string) (uint64, error) {
	var disk syscall.Statfs_t
	err := syscall.Statfs(dir, &disk)
	return uint64(disk.Bavail) * uint64(disk.Bsize), err
}

// Writable returns why nothing can be written in a state directory, such as that of a read-only disk.
func Writable(path string) error { return writable(path, path) }

func writable(path, dir string) error {
	if err := mayWrite(dir); err != nil {
		return fmt.Errorf("the state directory %s cannot be written (%s: %w): let your user write there, or set "+
			"XDG_STATE_HOME to another directory", path, dir, err)
	}
	return nil
}

// lookWritable returns why nothing can be written in the state directory at path; dir is path or its nearest parent.
func lookWritable(path, dir string) error {
	if err := writable(path, dir); err != nil {
		return err
	}
	if room, err := roomOf(dir); err == nil && room < leastRoom {
		return fmt.Errorf("the disk of the state directory %s is full (%d KiB are free): make room there", path, room>>10)
	}
	return nil
}

// networkKind is [kindOfNetwork]. Set once, except by tests.
var networkKind = kindOfNetwork

// OnNetwork returns an error if a directory is on a network file system, where a lock promises nothing.
func OnNetwork(path string) error {
	if kind := networkKind(path); kind != "" {
		return fmt.Errorf("the state directory %s is on a network file system (%s), where a lock promises nothing: "+
			"set XDG_STATE_HOME to a directory on this machine, or use a Redis", path, kind)
	}
	return nil
}

// A Dir is a state directory whose lock this process has.
type Dir struct {
	// Path is the directory. Set once.
	Path string
	root *os.Root // Set once; no file outside is opened
	lock *os.File // Set once; holds the lock while it is open
}

// HoldDir makes the directory if it is missing and takes its lock. If another process has the lock, the error names
// that process. The kernel releases the lock when the process ends, however it ends. A directory on a network file
// system is refused: locks there promise nothing.
func HoldDir(path string) (*Dir, error) {
	if err := ownDir(path); err != nil {
		return nil, err
	}
	if err := OnNetwork(path); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open the state directory: %w", err)
	}
	lock, err := root.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, fileMode)
	if err == nil {
		if err = holdLock(lock, path); err != nil {
			_ = lock.Close() // only read from
		}
	}
	if err != nil {
		_ = root.Close()
		return nil, err
	}
	return &Dir{Path: path, root: root, lock: lock}, nil
}

// Held reports whether the lock file is still the one that we locked: nobody removed or replaced it.
func (d *Dir) Held() bool {
	found, err := d.root.Stat(lockFile)
	if err != nil {
		return false
	}
	ours, err := d.lock.Stat()
	return err == nil && os.SameFile(found, ours)
}

// Root returns the root through which the files of the directory are opened.
func (d *Dir) Root() *os.Root { return d.root }

// Close releases the lock.
func (d *Dir) Close() {
	_ = release(d.lock) // nothing was buffered
	_ = d.root.Close()
}

// release unlocks a file and closes it. Closing alone is not enough: between fork and exec a child process has all our
// open files, and with them the lock.
func release(lock *os.File) error {
	return errors.Join(syscall.Flock(int(lock.Fd()), syscall.LOCK_UN), lock.Close())
}

// holdLock takes the lock and writes our process id into its file, for the error of a second process.
func holdLock(lock *os.File, path string) error {
	err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("the state directory %s is in use by another Switchboard (%s): end that one, or set "+
			"XDG_STATE_HOME to another directory", path, readPID(lock))
	}
	if err != nil {
		return fmt.Errorf("lock the state directory %s: %w", path, err)
	}
	if err := lock.Truncate(0); err != nil {
		return fmt.Errorf("write the lock of the state directory: %w", err)
	}
	if _, err := lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return fmt.Errorf("write the lock of the state directory: %w", err)
	}
	return nil
}

// readPID returns the process that has the lock, for an error; "process unknown" if the file does not say.
func readPID(lock *os.File) string {
	data, err := io.ReadAll(io.LimitReader(lock, 32))
	pid, errNumber := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || errNumber != nil {
		return "process unknown"
	}
	return fmt.Sprintf("process %d", pid)
}
