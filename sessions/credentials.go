package sessions

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"time"
)

// A Login is a page that somebody logged in at. Of its token only the SHA-256 is kept.
type Login struct {
	ID        string            // names it in lists: 12 letters and digits
	Sum       [sha256.Size]byte // of the token
	Principal string
	Key       [sha256.Size]byte // SHA-256 of the key that it was made with; zero: by a link from whoever runs the service
	Host      string            // the page's Host; the token counts nowhere else
	Device    string            // how the browser names itself, at most 200 bytes
	Made      time.Time
	Used      time.Time // when it was last used; written at most once a minute
	Ends      time.Time
}

// Logins are what the edge asks of a store.
type Logins interface {
	loginKeeper
	// DropLogin forgets a login of a principal; false when there is none with this id.
	DropLogin(ctx context.Context, principal, id string) (bool, error)
	// Spend adds an amount of a name to a day ("2006-01-02") and returns the day's sum; 0 reads it. The name says whose
	// it is and of what: time in calls in nanoseconds, money in billionths of a dollar.
	Spend(ctx context.Context, name, day string, amount int64) (int64, error)
}

// A loginKeeper keeps logins until they end.
type loginKeeper interface {
	PutLogin(ctx context.Context, l Login) error // in the place of one with the same id
	// Login finds the login of a token by the token's sum; false when there is none.
	Login(ctx context.Context, sum [sha256.Size]byte) (Login, bool, error)
	// Logins lists those of a principal, the one that was used last first.
	Logins(ctx context.Context, principal string) ([]Login, error)
}

// SpentFor is how long the sums of a day are kept after they last grew.
const SpentFor = 48 * time.Hour

// SortLogins puts the one that was used last first.
func SortLogins(all []Login) {
	slices.SortFunc(all, func(a, b Login) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.ID, b.ID)) })
}

// A Secret is a client secret: for a while it opens calls as one caller, in the place of the key that it was
// made with. Of its text only the SHA-256 is kept.
type Secret struct {
	Sum       [sha256.Size]byte // of the text
	Principal string
	Key       [sha256.Size]byte // SHA-256 of the key that it was made with
	User      string            // the end user whom the maker named; "" for none
	Session   []byte            // the configuration that its calls begin with, a JSON object; nil for none
	Ends      time.Time
}

// MaxSecrets bounds the secrets of a principal that have not ended. No more are made then.
const MaxSecrets = 512
