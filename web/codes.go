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

	codeLetters = "BCDFGHJKMNPQRSTWXYZ" // no vowels, so no words, and no letters that look alike or like a digit
	codeLength  = 8                     // letters: 17 billion codes
)

// codes makes and checks the codes that links and devices log in with. Each works once, within [codeLife], at any
// instance that shares the store.
type codes struct{ store sessions.Codes }

// make returns a new code of [codeLength] letters, which ends with the login that asked for it; zero: none did.
func (c codes) make(ctx context.Context, by origin, login [sha256.Size]byte, now time.Time) (string, error) {
	text := newCode()
	return text, c.store.PutCode(ctx, sessions.Code{
		Sum: sha256.Sum256([]byte(text)), Principal: by.principal, Key: by.key, Login: login, Ends: now.Add(codeLife),
	})
}

// newCode returns random letters with equal probabilities.
func newCode() string {
	const even = 256 / len(codeLetters) * len(codeLetters) // higher bytes would make the first letters more likely
	text := make([]byte, 0, codeLength)
	var b [1]byte
	for len(text) < codeLength {
		if _, _ = rand.Read(b[:]); int(b[0]) < even { // rand.Read never fails
			text = append(text, codeLetters[int(b[0])%len(codeLetters)])
		}
	}
	return string(text)
}

// codeTyped normalises a code that a person typed, with spaces, hyphens and small letters. It returns "" for a text
// that cannot be a code.
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

// spend uses up a code, and returns it. ok is false if there is no such code.
func (c codes) spend(ctx context.Context, text string) (made sessions.Code, ok bool, err error) {
	text = codeTyped(text)
	if text == "" {
		return made, false, nil
	}
	return c.store.SpendCode(ctx, sha256.Sum256([]byte(text)))
}
