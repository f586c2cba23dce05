package sessions

import (
	"context"
	"crypto/sha256"
	"time"
)

// A Code logs a page in, once. It is short enough to be typed, so it must not be guessed: each code that nobody has
// counts against all that wait, whoever they are for, since nobody can tell which one was meant.
type Code struct {
	Sum       [sha256.Size]byte // SHA-256 of its text
	Principal string
	Key       [sha256.Size]byte // as in [Login]
	Ends      time.Time
}

// Bounds of codes.
const (
	MaxCodes   = 16 // of one principal and key, that wait to be used; the one that ends first goes
	MaxGuesses = 5  // wrong codes, after which one that waits is void
)

// Codes keeps codes until they are used, at whichever instance. Implementations are safe for concurrent use.
type Codes interface {
	// PutCode keeps a code.
	PutCode(ctx context.Context, c Code) error
	// SpendCode uses a code up, and returns it; of several at once one gets it. A sum that nobody has is a wrong guess.
	SpendCode(ctx context.Context, sum [sha256.Size]byte) (Code, bool, error)
}
