package sessions

import (
	"io"
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

// VerifyAudit reads a whole audit file and returns how many lines its chain has, or which line is wrong.
func VerifyAudit(r io.Reader) (records uint64, err error) {
	end, err := readAudit(r, auditEnd{})
	return end.n, err
}
