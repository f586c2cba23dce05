package sessions

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"switchboard/handoff"
)

const (
	auditLock = "audit.lock"
	auditNew  = "audit.new"
	// maxAuditFile is the size in bytes at which an audit file is full and a new one begins: about 14,000 decisions.
	maxAuditFile = 8 << 20
	// keptAuditFiles is how many full files are kept; the oldest is removed first.
	keptAuditFiles = 16
	// auditTail is how many bytes at the end of a chain are verified at the start: at least two lines.
	auditTail = 4 * maxAuditLine
)

// fullAudit returns the name of a full file: the number of its last line, in digits that sort.
func fullAudit(n uint64) string { return fmt.Sprintf("audit-%012d.jsonl", n) }

// An auditDir has the files of one audit: the file that is appended to, and the full files before it.
type auditDir struct {
	root  *os.Root // Set once; no file outside is opened
	lock  *os.File // Set once; holds the lock while it is open
	limit int64    // Set once: bytes of a full file
	kept  int      // Set once: how many full files are kept
	file  *os.File // Guarded by mu of the Audit: the file that is appended to
}

// openAuditDir opens the audit of a state directory and takes its lock.
func openAuditDir(path string) (*auditDir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open the state directory: %w", err)
	}
	lock, err := root.OpenFile(auditLock, os.O_RDWR|os.O_CREATE, fileMode)
	if err == nil {
		if err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = lock.Close() // nothing was written
		}
	}
	if err != nil {
		_ = root.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("the audit in %s is in use by another Switchboard: end that one, or set XDG_STATE_HOME to "+
				"another directory", path)
		}
		return nil, fmt.Errorf("lock the audit in %s: %w", path, err)
	}
	return &auditDir{root: root, lock: lock, limit: maxAuditFile, kept: keptAuditFiles}, nil
}

// last opens the file that is appended to, and returns the end of the chain.
func (d *auditDir) last() (*os.File, auditEnd, error) {
	before, err := d.beforeLast()
	if err != nil {
		return nil, auditEnd{}, err
	}
	file, err := d.root.OpenFile(auditName, os.O_RDWR|os.O_CREATE|os.O_APPEND, fileMode)
	if err != nil {
		return nil, auditEnd{}, err
	}
	d.file = file
	if err := file.Chmod(fileMode); err != nil {
		return nil, auditEnd{}, err
	}
	end, err := tailAudit(file, before)
	if err != nil {
		return nil, auditEnd{}, fmt.Errorf("%s: %w", auditName, err)
	}
	d.sync() // so that the file's name survives a power cut
	return file, end, nil
}

// beforeLast returns the end of the newest full file; zero when there is none.
func (d *auditDir) beforeLast() (auditEnd, error) {
	names, err := d.full()
	if err != nil || len(names) == 0 {
		return auditEnd{}, err
	}
	name := names[len(names)-1]
	file, err := d.root.Open(name)
	if err != nil {
		return auditEnd{}, err
	}
	defer func() { _ = file.Close() }() // only read from
	end, err := tailAudit(file, auditEnd{anyStart: true})
	if err == nil && (end.torn || fullAudit(end.n) != name) {
		err = fmt.Errorf("it does not end with the line of its name")
	}
	if err != nil {
		return auditEnd{}, fmt.Errorf("%s: %w", name, err)
	}
	return auditEnd{n: end.n, sum: end.sum}, nil
}

// tailAudit verifies the first line of a file, which must continue the chain at before, and its last lines; a short
// file is verified whole. The size of the result is that of the complete lines.
func tailAudit(file *os.File, before auditEnd) (auditEnd, error) {
	info, err := file.Stat()
	if err != nil {
		return auditEnd{}, err
	}
	size := info.Size()
	if size <= auditTail {
		return readAudit(io.NewSectionReader(file, 0, size), before)
	}
	head, _, err := toLineEnd(file, 0)
	if err != nil {
		return auditEnd{}, fmt.Errorf("its first line cannot be read: %w", err)
	}
	if _, err := readAudit(bytes.NewReader(head), before); err != nil {
		return auditEnd{}, err
	}
	_, from, err := toLineEnd(file, size-auditTail) // in the middle of a line
	if err != nil {
		return auditEnd{}, fmt.Errorf("a line near its end cannot be read: %w", err)
	}
	return readAudit(io.NewSectionReader(file, from, size-from), auditEnd{anyStart: true, size: from})
}

// toLineEnd reads from an offset to the end of that line, and returns the offset after it.
func toLineEnd(file *os.File, from int64) (line []byte, next int64, err error) {
	line, err = bufio.NewReaderSize(io.NewSectionReader(file, from, maxAuditLine), maxAuditLine).ReadSlice('\n')
	return line, from + int64(len(line)), err
}

// full returns the names of the full files, oldest first.
func (d *auditDir) full() ([]string, error) {
	names, err := fs.Glob(d.root.FS(), "audit-*.jsonl")
	slices.Sort(names)
	return names, err
}

// next renames the full file, whose last line has number n, and begins a new one.
func (d *auditDir) next(n uint64) (*os.File, error) {
	file, err := d.root.OpenFile(auditNew, os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, fileMode)
	if err != nil {
		return nil, err
	}
	if err := d.root.Rename(auditName, fullAudit(n)); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if err := d.root.Rename(auditNew, auditName); err != nil { // the old file stays in use, as it would after a restart
		return nil, errors.Join(err, d.root.Rename(fullAudit(n), auditName), file.Close())
	}
	d.sync()
	_ = d.file.Close() // each of its lines was synced
	d.file = file
	if names, err := d.full(); err == nil { // a file that cannot be removed now is removed next time
		for _, name := range names[:max(len(names)-d.kept, 0)] {
			_ = d.root.Remove(name)
		}
	}
	return file, nil
}

// sync makes the names of the files durable, where the file system can.
func (d *auditDir) sync() {
	if self, err := d.root.Open("."); err == nil {
		_ = self.Sync()
		_ = self.Close()
	}
}

func (d *auditDir) close() error {
	var err error
	if d.file != nil {
		err = d.file.Close()
	}
	return errors.Join(err, release(d.lock), d.root.Close())
}

// AuditLine is a record of an audit, with its number in the chain.
type AuditLine struct {
	N      uint64
	Record handoff.AuditRecord
}

// ReadAuditDir reads all files of a state directory's audit, also while another process appends, and returns the
// records that are kept, oldest first. An error names the bad line and its file. Lines that are missing at the very
// end cannot be noticed.
func ReadAuditDir(path string) (lines []AuditLine, err error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // only read from
	d := &auditDir{root: root}
	err = d.reading(func(names []string) (err error) { lines, err = d.read(names); return err })
	return lines, err
}

// reading calls read with the names of all files, oldest first, and again if a file was renamed meanwhile.
func (d *auditDir) reading(read func(names []string) error) error {
	for {
		full, err := d.full()
		if err != nil {
			return err
		}
		err = read(append(slices.Clone(full), auditName))
		if now, wrong := d.full(); wrong != nil || slices.Equal(now, full) {
			return errors.Join(err, wrong)
		}
	}
}

// read reads the files with these names, oldest first.
func (d *auditDir) read(names []string) (lines []AuditLine, err error) {
	var odd error
	end := auditEnd{anyStart: len(names) > 1, each: func(l auditLine) { // older files than the oldest may be gone
		one := AuditLine{N: l.N}
		if err := json.Unmarshal(l.Record, &one.Record); err != nil && odd == nil {
			odd = fmt.Errorf("line %d is no decision: %w", l.N, err)
		}
		lines = append(lines, one)
	}}
	for _, name := range names {
		file, err := d.root.Open(name)
		if errors.Is(err, fs.ErrNotExist) && name == auditName {
			continue
		}
		if err != nil {
			return nil, err
		}
		end, err = readAudit(file, end)
		_ = file.Close() // only read from
		if err = errors.Join(err, odd); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return lines, nil
}
