package sessions

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"time"
)

// A Login is a browser page that somebody logged in at. Only the SHA-256 of its token is kept.
type Login struct {
	ID        string            // 12 letters and digits, shown in lists
	Sum       [sha256.Size]byte // of the token
	Principal string
	Key       [sha256.Size]byte // SHA-256 of the key it was made with; zero for one made with a link from the operator
	Host      string            // the page's Host, the only one that accepts the token
	Device    string            // the name that the browser gives, at most 200 bytes
	Made      time.Time
	Used      time.Time // the last use, written at most once a minute
	Ends      time.Time
}

// Logins stores logins, and what callers spent, for the HTTP edge.
type Logins interface {
	loginKeeper
	loginFinder
	// Spend notes how much a call has spent so far of the sum of a name and a day ("2006-01-02"), and returns the sum.
	// An amount that was noted before, or is less, changes nothing; 0 only reads. The name says what is counted and for
	// whom: time in calls in nanoseconds, or money in billionths of a dollar.
	Spend(ctx context.Context, name, day, call string, soFar int64) (int64, error)
}

// A loginKeeper stores logins until they end.
type loginKeeper interface {
	PutLogin(ctx context.Context, l Login) error // replaces a login with the same id
	// UseLogin sets when a login was used last, if it is still there.
	UseLogin(ctx context.Context, l Login, at time.Time) error
	// DropLogin forgets a login of a principal, and reports whether there was one with this id.
	DropLogin(ctx context.Context, principal, id string) (bool, error)
}

// A loginFinder finds logins.
type loginFinder interface {
	// Login returns the login whose token has this sum; false when there is none.
	Login(ctx context.Context, sum [sha256.Size]byte) (Login, bool, error)
	// Logins lists the logins of a principal, the most recently used first.
	Logins(ctx context.Context, principal string) ([]Login, error)
}

// SpentFor is how long the sum of a day is kept after it last grew.
const SpentFor = 48 * time.Hour

// sortLogins sorts logins, the most recently used first.
func sortLogins(all []Login) {
	slices.SortFunc(all, func(a, b Login) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.ID, b.ID)) })
}

// A Secret is a client secret: until it ends, it opens calls as one caller, instead of the key that it was made with.
// Only the SHA-256 of its text is kept.
type Secret struct {
	Sum       [sha256.Size]byte // of the text
	Principal string
	Key       [sha256.Size]byte // SHA-256 of the key it was made with
	Login     [sha256.Size]byte // Sum of the [Login] it was made with, and with which it ends; zero: none
	User      string            // the end user that the maker named; "" for none
	Session   []byte            // the configuration that its calls begin with, a JSON object; nil for none
	Ends      time.Time
}

// MaxSecrets bounds the secrets of a principal that have not ended; another one is refused.
const MaxSecrets = 512
