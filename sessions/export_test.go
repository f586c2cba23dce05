package sessions

import (
	"io"
	"os"
	"syscall"
	"testing"
)

// RunAs makes ourUser return another user id, since not every machine lets a test change the owner of a directory.
func RunAs(t *testing.T, uid int) {
	was := ourUser
	ourUser = func() int { return uid }
	t.Cleanup(func() { ourUser = was })
}

// FarAway puts a test's directory on a network file system.
func FarAway(t *testing.T, dir string) {
	was := networkKind
	networkKind = func(path string) string {
		if path == dir {
			return "NFS"
		}
		return was(path)
	}
	t.Cleanup(func() { networkKind = was })
}

// ReadOnly makes a test's directory one that we cannot write in.
func ReadOnly(t *testing.T, dir string) {
	was := mayWrite
	mayWrite = func(path string) error {
		if path == dir {
			return syscall.EROFS
		}
		return was(path)
	}
	t.Cleanup(func() { mayWrite = was })
}

// DiskWith puts all directories on a disk with so many free bytes.
func DiskWith(t *testing.T, free uint64) {
	was := roomOf
	roomOf = func(string) (uint64, error) { return free, nil }
	t.Cleanup(func() { roomOf = was })
}

// VerifyAudit verifies a whole audit file and returns how many lines it has; the error names a bad line.
func VerifyAudit(r io.Reader) (records uint64, err error) {
	end, err := readAudit(r, auditEnd{})
	return end.n, err
}

// VerifyAuditDir returns the numbers of the first and the last line that an audit keeps, 0 for none.
func VerifyAuditDir(path string) (first, last uint64, err error) {
	lines, err := ReadAuditDir(path)
	if err != nil || len(lines) == 0 {
		return 0, 0, err
	}
	return lines[0].N, lines[len(lines)-1].N, nil
}

// Fork duplicates the locks of a directory and its audit until the test ends, as a fork does until its exec.
func Fork(t *testing.T, d *Dir, a *Audit) {
	for _, lock := range []*os.File{d.lock, a.dir.lock} {
		fd, err := syscall.Dup(int(lock.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Close(fd) })
	}
}
