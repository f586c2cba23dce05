package sessions

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"time"
)

// A Login is a page that somebody logged in at. Of its token only the SHA-256 is kept.
type Login struct {
	ID        string            // names it in lists: 12 letters and digits
	Sum       [sha256.Size]byte // of the token
	Principal string
	Key       [sha256.Size]byte // SHA-256 of the key that it was made with; a login by link has its principal's
	Host      string            // the page's Host; the token counts nowhere else
	Device    string            // how the browser names itself, at most 200 bytes
	Made      time.Time
	Used      time.Time // when it was last used; written at most once a minute
	Ends      time.Time
}

// SpentFor is how long the minutes of a day are kept after the last that were added.
const SpentFor = 48 * time.Hour

// SortLogins puts the one that was used last first.
func SortLogins(all []Login) {
	slices.SortFunc(all, func(a, b Login) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.ID, b.ID)) })
}
