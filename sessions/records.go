package sessions

import (
	"context"

	"switchboard/handoff"
)

// A Record is something that an installation keeps for itself, whoever its callers are: all instances that share a
// store have it. What is in it only who keeps it knows.
type Record struct {
	Kind string // what it is; a few words of our own
	Name string // tells it from others of its kind
	Body []byte
}

// Bounds of records.
const (
	MaxRecord  = 16 << 10 // bytes of a body; a larger one is refused with code too_large
	MaxRecords = 10_000   // of a kind; what comes on top is refused with code limited
)

// Records keeps records. Implementations are safe for concurrent use.
type Records interface {
	// PutRecord makes or replaces a record.
	PutRecord(ctx context.Context, r Record) error
	// KeepRecord makes a record unless there is one, and returns the one that is there then.
	KeepRecord(ctx context.Context, r Record) (Record, error)
	recordList
}

// A recordList lists records, and forgets them.
type recordList interface {
	// Records returns those of a kind, in the order of their names.
	Records(ctx context.Context, kind string) ([]Record, error)
	// DropRecord forgets one, and reports whether it was there.
	DropRecord(ctx context.Context, kind, name string) (bool, error)
}

// Check tells what of a record cannot be kept. An error has code malformed or too_large.
func (r Record) Check() error {
	switch {
	case r.Kind == "" || r.Name == "" || len(r.Kind)+len(r.Name) > 2*maxDocumentID:
		return handoff.Fault(handoff.CodeMalformed, "a record has a kind and a name", "")
	case len(r.Body) > MaxRecord:
		return handoff.Fault(handoff.CodeTooLarge, "a record", "")
	}
	return nil
}
