package sessions

import "io"

// VerifyAudit reads a whole audit file and returns how many lines its chain has, or which line is wrong.
func VerifyAudit(r io.Reader) (records uint64, err error) {
	end, err := readAudit(r, auditEnd{})
	return end.n, err
}
