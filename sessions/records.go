package sessions

import (
	"context"

	"switchboard/handoff"
)

// A Record is data of the installation rather than of a caller: all instances that share a store have it. Only the
// package that writes records of a kind knows the content of their bodies.
type Record struct {
	Kind string // a few words of our own, one kind for each use
	Name string // unique within its kind
	Body []byte
}

// Bounds of records.
const (
	MaxRecord  = 16 << 10 // bytes of a body; a larger one is refused with code too_large
	MaxRecords = 10_000   // of a kind; another one is refused with code limited
)

// Records stores records. Implementations are safe for concurrent use.
type Records interface {
	// PutRecord makes or replaces a record.
	PutRecord(ctx context.Context, r Record) error
	// KeepRecord makes a record unless there is one, and returns the record that is stored then.
	KeepRecord(ctx context.Context, r Record) (Record, error)
	recordList
}

// A recordList lists and drops records.
type recordList interface {
	// Records returns the records of a kind, in the order of their names.
	Records(ctx context.Context, kind string) ([]Record, error)
	// DropRecord forgets a record, and reports whether there was one.
	DropRecord(ctx context.Context, kind, name string) (bool, error)
	// DropRecordAs forgets a record if it is still as it was read, and reports whether it did.
	DropRecordAs(ctx context.Context, was Record) (bool, error)
}

// Check reports why a record cannot be kept. Its errors have code malformed or too_large.
func (r Record) Check() error {
	switch {
	case r.Kind == "" || r.Name == "" || len(r.Kind)+len(r.Name) > 2*maxDocumentID:
		return handoff.Fault(handoff.CodeMalformed, "a record has a kind and a name", "")
	case len(r.Body) > MaxRecord:
		return handoff.Fault(handoff.CodeTooLarge, "a record", "")
	}
	return nil
}
