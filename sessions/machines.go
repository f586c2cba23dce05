package sessions

import (
	"context"
	"encoding/json"
	"time"

	"switchboard/handoff"
)

// A Machine is a computer that joined. Its key tells who it is; everything else of it may change.
type Machine struct {
	Key    []byte // its public key, 32 bytes (Ed25519)
	Name   string // what people call it, as one of no other machine
	Joined time.Time
	Body   []byte // what else whoever lets machines in knows of it, as JSON; at most [MaxMachine] bytes
}

// Bounds of machines.
const (
	MaxMachine   = 64 << 10 // bytes of a body; a larger one is refused with code too_large
	machineBytes = 32       // of a key
)

// Machines keeps the machines that joined. Implementations are safe for concurrent use.
type Machines interface {
	// PutMachine keeps a machine, in the place of one with the same key.
	PutMachine(ctx context.Context, m Machine) error
	// Machines lists them, the one that joined first first.
	Machines(ctx context.Context) ([]Machine, error)
	// DropMachine forgets the machine with a key, and reports whether there was one.
	DropMachine(ctx context.Context, key []byte) (bool, error)
}

// Check tells what of a machine cannot be kept. An error has code malformed or too_large.
func (m Machine) Check() error {
	switch {
	case len(m.Key) != machineBytes || m.Name == "" || len(m.Name) > maxDocumentID:
		return handoff.Fault(handoff.CodeMalformed, "a machine has a key and a name", "")
	case len(m.Body) > MaxMachine:
		return handoff.Fault(handoff.CodeTooLarge, "what is known of a machine", "")
	case len(m.Body) > 0 && !json.Valid(m.Body):
		return handoff.Fault(handoff.CodeMalformed, "what is known of a machine is JSON", "")
	}
	return nil
}
