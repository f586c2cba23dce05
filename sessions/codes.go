package sessions

import (
	"context"
	"crypto/sha256"
	"time"
)

// A Code logs a page in, once. It is short enough to be typed, so guessing must be prevented: a wrong code counts
// against every code that waits, of all principals, since nobody can tell which one was meant.
type Code struct {
	Sum       [sha256.Size]byte // SHA-256 of its text
	Principal string
	Key       [sha256.Size]byte // as Key of [Login]
	Ends      time.Time
}

// Bounds of codes.
const (
	MaxCodes   = 16 // waiting codes of one principal and key; beyond it the one that ends first is dropped
	MaxGuesses = 5  // wrong codes after which a waiting code is void
)

// Codes stores codes until they are used, at any instance. Implementations are safe for concurrent use.
type Codes interface {
	// PutCode stores a code.
	PutCode(ctx context.Context, c Code) error
	// SpendCode removes the code with this sum and returns it; of several calls at once, one gets it. A sum that no
	// code has counts as a wrong guess.
	SpendCode(ctx context.Context, sum [sha256.Size]byte) (Code, bool, error)
}
