package sessions

import (
	"context"
	"crypto/sha256"
	"time"
)

// A Code logs a page in, once. It is short enough to be typed, so whoever takes codes has to bound how often they may
// be guessed.
type Code struct {
	Sum       [sha256.Size]byte // SHA-256 of its text
	Principal string
	Key       [sha256.Size]byte // as Key of [Login]
	Login     [sha256.Size]byte // Sum of the [Login] that made it, and with which it ends; zero: none
	Ends      time.Time
}

// Bounds of codes.
const MaxCodes = 16 // waiting codes of one principal and key; beyond it the one that ends first is dropped

// Codes stores codes until they are used, at any instance. Implementations are safe for concurrent use.
type Codes interface {
	// PutCode stores a code.
	PutCode(ctx context.Context, c Code) error
	// SpendCode removes the code with this sum and returns it; of several calls at once, one gets it.
	SpendCode(ctx context.Context, sum [sha256.Size]byte) (Code, bool, error)
}
