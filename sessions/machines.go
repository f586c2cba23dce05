package sessions

import (
	"context"
	"encoding/json"
	"time"

	"switchboard/handoff"
)

// A Machine is a computer that joined. Its key identifies it; everything else may change.
type Machine struct {
	Key    []byte // public key, 32 bytes (Ed25519)
	Name   string // what people call it, unique
	Joined time.Time
	Body   []byte // JSON whose content the caller defines, at most [MaxMachine] bytes
}

// Bounds of machines.
const (
	MaxMachine   = 64 << 10 // bytes of a body; a larger one is refused with code too_large
	machineBytes = 32       // of a key
)

// Machines stores the machines that joined. Implementations are safe for concurrent use.
type Machines interface {
	// ChangeMachine stores a machine if what is stored under its key is still as it was read, and reports whether it
	// did. The zero Machine stands for none.
	ChangeMachine(ctx context.Context, was, is Machine) (bool, error)
	// Machines lists all machines, in the order in which they joined.
	Machines(ctx context.Context) ([]Machine, error)
	// DropMachine forgets the machine with a key, and reports whether there was one.
	DropMachine(ctx context.Context, key []byte) (bool, error)
}

// Check reports why a machine cannot be kept. Its errors have code malformed or too_large.
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
