package sessions

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"

	"switchboard/handoff"
)

// Decisions returns what a caller decided, the newest first, at most limit: out of the newest file and the full one
// before it. It may be used while others append.
func (a *Audit) Decisions(c handoff.Caller, limit int) ([]handoff.AuditRecord, error) {
	full, err := a.dir.full()
	if err != nil {
		return nil, auditFault("read", err)
	}
	names := append(full[max(len(full)-1, 0):], auditName)
	var all []handoff.AuditRecord
	for _, name := range names {
		found, err := a.decisionsIn(name, c.String())
		if err != nil {
			return nil, auditFault("read", err)
		}
		all = append(all, found...)
	}
	all = all[max(len(all)-limit, 0):]
	slices.Reverse(all)
	return all, nil
}

// decisionsIn reads one file. A line that is being written, or that is no record, tells nothing.
func (a *Audit) decisionsIn(name, who string) ([]handoff.AuditRecord, error) {
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
		var line auditLine
		var rec handoff.AuditRecord
		if json.Unmarshal(in.Bytes(), &line) == nil && json.Unmarshal(line.Record, &rec) == nil && rec.Who == who {
			found = append(found, rec)
		}
	}
	return found, in.Err()
}
