package sessions

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"switchboard/handoff"
)

const (
	auditName = "audit.jsonl"
	// maxAuditLine bounds one line, in bytes, so that a broken file cannot fill the memory.
	maxAuditLine = 64 << 10
)

// An Audit keeps decisions in a file that lines are only appended to. Each line holds the hash of the line before it:
// a changed, missing or moved line is detected. The hash has no key, so who can write the file can rewrite the chain.
// A full file is renamed, and the chain goes on in a new one.
// An Audit is safe for concurrent use; one process at a time has it open.
type Audit struct {
	dir *auditDir // Set once

	mu   sync.Mutex
	file auditFile // Guarded by mu; nil after Close
	size int64     // Guarded by mu: bytes of complete lines in the file
	n    uint64    // Guarded by mu: number of the last line
	sum  string    // Guarded by mu: hash of the last line
	torn bool      // Guarded by mu: a write failed, so the file may end in an incomplete line
}

// auditFile is what an Audit needs of its file, which is opened for appending.
type auditFile interface {
	io.Writer
	Sync() error
	Truncate(size int64) error
}

// auditLine is one line of the file. Sum is the [auditSum] of the other fields.
type auditLine struct {
	N      uint64          `json:"n"`
	Prev   string          `json:"prev"`
	Record json.RawMessage `json:"record"`
	Sum    string          `json:"sum"`
}

// auditSum is the SHA-256, in hex, of a line's number, the sum of the line before and its record.
func auditSum(n uint64, prev string, record []byte) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\n%s\n%s", n, prev, record))
	return hex.EncodeToString(sum[:])
}

// OpenAudit opens the audit of a state directory, which is made with mode 0700 if it is missing; its files have mode
// 0600. Only the end of the chain is verified, so that a long chain costs no more than a short one; [ReadAuditDir]
// reads all of it. If a line at the end was changed, the error names the line and nothing is appended. An incomplete
// last line was never acknowledged (the power failed while it was written); it is cut off.
func OpenAudit(dir string) (*Audit, error) {
	if err := ownDir(dir); err != nil {
		return nil, err
	}
	d, err := openAuditDir(dir)
	if err != nil {
		return nil, err
	}
	file, end, err := d.last()
	if err != nil {
		d.close()
		return nil, fmt.Errorf("the audit in %s: %w: move its files away to begin a new one", dir, err)
	}
	return &Audit{dir: d, file: file, size: end.size, n: end.n, sum: end.sum, torn: end.torn}, nil
}

// auditEnd is the state of a chain after its last line.
type auditEnd struct {
	size     int64  // bytes of complete lines in the newest file
	first    uint64 // number of the first line that was read; 0 before
	n        uint64 // number of the last line
	sum      string // hash of the last line
	torn     bool   // an incomplete line follows
	anyStart bool   // the next line is not checked against n and sum: the chain may begin with any line

	each func(auditLine) // called for each line that was read; nil for none
}

// readAudit reads lines up to the end of the file and verifies that they continue the chain at end.
func readAudit(r io.Reader, end auditEnd) (auditEnd, error) {
	in := bufio.NewReaderSize(r, maxAuditLine)
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			end.torn = len(line) > 0
			return end, nil
		}
		if err != nil {
			return end, fmt.Errorf("line %d cannot be read: %w", end.n+1, err)
		}
		l, ok := parseAuditLine(bytes.TrimSuffix(line, []byte("\n")))
		if !ok {
			return end, fmt.Errorf("line %d is no record", end.n+1)
		}
		if end.anyStart {
			end.n, end.sum, end.anyStart = l.N-1, l.Prev, false
		}
		if l.N != end.n+1 || l.Prev != end.sum || l.Sum != auditSum(l.N, l.Prev, l.Record) {
			return end, fmt.Errorf("line %d was changed, or a line before it is missing", end.n+1)
		}
		if end.first == 0 {
			end.first = l.N
		}
		end.size, end.n, end.sum = end.size+int64(len(line)), l.N, l.Sum
		if end.each != nil {
			end.each(l)
		}
	}
}

// parseAuditLine reads a line, and reports whether it is exactly what [Audit.Audit] writes.
func parseAuditLine(line []byte) (l auditLine, ok bool) {
	if json.Unmarshal(line, &l) != nil {
		return auditLine{}, false
	}
	written, err := json.Marshal(l)
	return l, err == nil && bytes.Equal(written, line)
}

// Audit appends a record and returns once it is on the disk. After an error the decision must not be carried out; a
// later call may succeed. The record was cut off the file again. If that failed too, the next call tries it once more,
// but a restart before it may keep the record.
func (a *Audit) Audit(ctx context.Context, rec handoff.AuditRecord) error {
	if err := ctx.Err(); err != nil {
		return auditFault("canceled", err)
	}
	record, err := json.Marshal(rec)
	if err != nil {
		return auditFault("the record", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock() // held during the file's I/O: records are few, and the chain needs their order
	if a.file == nil {
		return auditFault("closed", os.ErrClosed)
	}
	if err := a.mend(); err != nil {
		return auditFault("remove an incomplete line", err)
	}
	next := auditLine{N: a.n + 1, Prev: a.sum, Record: record, Sum: auditSum(a.n+1, a.sum, record)}
	line, err := json.Marshal(next)
	if err != nil {
		return auditFault("the record", err)
	}
	if len(line) >= maxAuditLine {
		return auditFault("the record", errors.New("too long"))
	}
	if err := a.makeRoom(int64(len(line)) + 1); err != nil {
		return auditFault("lay a full file aside", err)
	}
	a.torn = true
	if _, err := a.file.Write(append(line, '\n')); err != nil {
		return auditFault("write", errors.Join(err, a.mend()))
	}
	if err := a.file.Sync(); err != nil {
		return auditFault("sync", errors.Join(err, a.mend()))
	}
	a.torn = false
	a.size, a.n, a.sum = a.size+int64(len(line))+1, next.N, next.Sum
	return nil
}

// makeRoom begins a new file when a line of so many bytes does not fit into the present one.
func (a *Audit) makeRoom(line int64) error {
	if a.size == 0 || a.size+line <= a.dir.limit {
		return nil
	}
	file, err := a.dir.next(a.n)
	if err != nil {
		return err
	}
	a.file, a.size = file, 0
	return nil
}

// mend cuts off the incomplete line that a failed write may have left.
func (a *Audit) mend() error {
	if !a.torn {
		return nil
	}
	if err := a.file.Truncate(a.size); err != nil {
		return err
	}
	if err := a.file.Sync(); err != nil {
		return err
	}
	a.torn = false
	return nil
}

// auditFault names the step that failed. Only the operator can do something about it, so the code is internal.
func auditFault(what string, err error) error {
	return handoff.Fault(handoff.CodeInternal, "", "audit: "+what+": "+err.Error())
}

// Close closes the file and releases its lock. Later calls of Audit return an error.
func (a *Audit) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		return nil
	}
	a.file = nil
	return a.dir.close()
}

// Decisions returns at most limit answers of a caller to agents, the newest first. It reads the newest file and the
// full one before it, and may be used while others append.
func (a *Audit) Decisions(c handoff.Caller, limit int) ([]handoff.AuditRecord, error) {
	var all []handoff.AuditRecord
	err := a.dir.reading(func(names []string) error {
		all = nil
		for _, name := range names[max(len(names)-2, 0):] {
			found, err := a.decisionsIn(name, c.String())
			if err != nil {
				return err
			}
			all = append(all, found...)
		}
		return nil
	})
	if err != nil {
		return nil, auditFault("read", err)
	}
	all = all[max(len(all)-limit, 0):]
	slices.Reverse(all)
	return all, nil
}

// decisionsIn returns the decisions of a caller in one file. A line that [Audit.Audit] did not write is skipped.
func (a *Audit) decisionsIn(name, caller string) ([]handoff.AuditRecord, error) {
	file, err := a.dir.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read from
	var found []handoff.AuditRecord
	in := bufio.NewScanner(file)
	in.Buffer(nil, maxAuditLine)
	for in.Scan() {
		var rec handoff.AuditRecord
		if line, ok := parseAuditLine(in.Bytes()); ok && json.Unmarshal(line.Record, &rec) == nil &&
			rec.Who == caller && rec.Act == "" {
			found = append(found, rec)
		}
	}
	return found, in.Err()
}
