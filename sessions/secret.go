package sessions

import (
	"crypto/sha256"
	"time"
)

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
