package sessions

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"switchboard/handoff"
)

// A fullDisk is a file that has room for only so many bytes.
type fullDisk struct {
	data     []byte
	room     int // bytes that can still be written
	noSync   bool
	noRepair bool
}

var errFull = errors.New("no space left on device")

func (d *fullDisk) Write(p []byte) (int, error) {
	n := min(len(p), d.room)
	d.data, d.room = append(d.data, p[:n]...), d.room-n
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

func (d *fullDisk) Sync() error {
	if d.noSync {
		return errFull
	}
	return nil
}

func (d *fullDisk) Truncate(size int64) error {
	if d.noRepair {
		return errFull
	}
	d.room += len(d.data) - int(size)
	d.data = d.data[:size]
	return nil
}

// TestAuditFullDisk: if the disk is full at any byte of a record, there is an error and no part of the record; when
// there is room again, the chain goes on.
func TestAuditFullDisk(t *testing.T) {
	rec := handoff.AuditRecord{Who: "owner", Decision: handoff.DecisionAccept}
	probe := &fullDisk{room: 1 << 20}
	must(t, (&Audit{dir: &auditDir{limit: maxAuditFile}, file: probe}).Audit(t.Context(), rec))
	for room := range len(probe.data) {
		d := &fullDisk{room: room}
		a := &Audit{dir: &auditDir{limit: maxAuditFile}, file: d}
		err := a.Audit(t.Context(), rec)
		if e, ok := errors.AsType[*handoff.Error](err); !ok || e.Code != handoff.CodeInternal || len(d.data) != 0 {
			t.Fatalf("room for %d: %v, %d bytes stay", room, err, len(d.data))
		}
		d.room = 1 << 20
		must(t, a.Audit(t.Context(), rec))
		if n, err := VerifyAudit(bytes.NewReader(d.data)); n != 1 || err != nil {
			t.Fatalf("%d records, %v", n, err)
		}
	}
}

func TestAuditDiskFails(t *testing.T) {
	rec := handoff.AuditRecord{Who: "owner", Decision: handoff.DecisionAccept}
	d := &fullDisk{room: 1 << 20, noSync: true}
	a := &Audit{dir: &auditDir{limit: maxAuditFile}, file: d}
	if err := a.Audit(t.Context(), rec); err == nil {
		t.Fatal("a record that is not on the disk was acknowledged")
	}
	d.noSync, d.noRepair = false, true
	if err := a.Audit(t.Context(), rec); err == nil {
		t.Fatal("appended behind what may be a part of a line")
	}
	d.noRepair = false
	for range 2 {
		must(t, a.Audit(t.Context(), rec))
	}
	if n, err := VerifyAudit(bytes.NewReader(d.data)); n != 2 || err != nil {
		t.Fatalf("%d records, %v", n, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Audit(ended, rec); err == nil {
		t.Fatal("a record for nobody")
	}
}
