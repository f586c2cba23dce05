package sessions

import (
	"io"
	"os"
	"syscall"
	"testing"
)

// RunAs lets a test run as another user: not every machine lets it give a directory away.
func RunAs(t *testing.T, uid int) {
	was := ourUser
	ourUser = func() int { return uid }
	t.Cleanup(func() { ourUser = was })
}

// FarAway lets a test's directory be on another machine.
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

// ReadOnly lets a test's directory be one that we cannot write in.
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

// DiskWith lets a test's directories be on a disk with so many bytes free.
func DiskWith(t *testing.T, free uint64) {
	was := roomOf
	roomOf = func(string) (uint64, error) { return free, nil }
	t.Cleanup(func() { roomOf = was })
}

// VerifyAudit reads a whole audit file and returns how many lines its chain has, or which line is wrong.
func VerifyAudit(r io.Reader) (records uint64, err error) {
	end, err := readAudit(r, auditEnd{})
	return end.n, err
}

// VerifyAuditDir returns the numbers of the first line of an audit that is kept and of the last, 0 if there is none.
func VerifyAuditDir(path string) (first, last uint64, err error) {
	lines, err := ReadAuditDir(path)
	if err != nil || len(lines) == 0 {
		return 0, 0, err
	}
	return lines[0].N, lines[len(lines)-1].N, nil
}

// Fork gives the locks of a directory and its audit to somebody else too until the test ends, as a fork does until its
// exec.
func Fork(t *testing.T, d *Dir, a *Audit) {
	for _, lock := range []*os.File{d.lock, a.dir.lock} {
		fd, err := syscall.Dup(int(lock.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Close(fd) })
	}
}
