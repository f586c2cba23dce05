package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"strings"
	"time"
	"unicode"

	"switchboard/sessions"
)

const (
	codeLife = 10 * time.Minute

	codeLetters = "BCDFGHJKMNPQRSTWXYZ" // none looks like another one or like a digit, and they make no words
	codeLength  = 8                     // letters: 17 billion codes
)

// codes are what links and devices log in with: each works once, within ten minutes, at whichever instance shares the
// store.
type codes struct{ store sessions.Codes }

// make returns a new code of [codeLength] letters.
func (c codes) make(ctx context.Context, by origin, now time.Time) (string, error) {
	text := newCode()
	return text, c.store.PutCode(ctx, sessions.Code{
		Sum: sha256.Sum256([]byte(text)), Principal: by.principal, Key: by.key, Ends: now.Add(codeLife),
	})
}

// newCode draws letters, each as likely as any other.
func newCode() string {
	const even = 256 / len(codeLetters) * len(codeLetters) // from there on the first letters would be likelier
	text := make([]byte, 0, codeLength)
	var b [1]byte
	for len(text) < codeLength {
		if _, _ = rand.Read(b[:]); int(b[0]) < even { // it never fails
			text = append(text, codeLetters[int(b[0])%len(codeLetters)])
		}
	}
	return string(text)
}

// codeTyped reads a code as people type it, with spaces and hyphens, in capitals or not. What cannot be a code is "".
func codeTyped(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '-' {
			return -1
		}
		return unicode.ToUpper(r)
	}, text)
	if len(text) != codeLength || strings.Trim(text, codeLetters) != "" {
		return ""
	}
	return text
}

// spend uses a code up, and tells by what it was made. A wrong one is a guess; what cannot be a code is none.
func (c codes) spend(ctx context.Context, text string) (by origin, ok bool, err error) {
	text = codeTyped(text)
	if text == "" {
		return origin{}, false, nil
	}
	made, ok, err := c.store.SpendCode(ctx, sha256.Sum256([]byte(text)))
	return origin{made.Principal, made.Key}, ok, err
}
