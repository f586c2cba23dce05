package web

import (
	"crypto/rand"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

const (
	codeLife = 10 * time.Minute
	maxCodes = 16 // of one origin, that wait to be used; the oldest goes

	codeLetters = "BCDFGHJKMNPQRSTWXYZ" // none looks like another one or like a digit, and they make no words
	codeLength  = 8                     // letters: 17 billion codes
	maxGuesses  = 5                     // wrong codes, after which one that waits is void
)

// codes are what links and devices log in with: each works once, within ten minutes, in this process alone. A code is
// short enough to be typed, so it must not be guessed: each wrong code counts against all that wait, whoever they are
// for, since nobody can tell which one was meant.
type codes struct {
	mu   sync.Mutex
	kept []code // Guarded by mu: oldest first
}

type code struct {
	sum     [sha256.Size]byte
	by      origin
	until   time.Time
	guesses int // how many wrong codes were tried while it waited
}

// make returns a new code of [codeLength] letters.
func (c *codes) make(by origin, now time.Time) string {
	text := newCode()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, code{sum: sha256.Sum256([]byte(text)), by: by, until: now.Add(codeLife)})
	waiting := 0
	for _, k := range c.kept {
		if k.by == by {
			waiting++
		}
	}
	if waiting > maxCodes {
		oldest := slices.IndexFunc(c.kept, func(k code) bool { return k.by == by })
		c.kept = slices.Delete(c.kept, oldest, oldest+1)
	}
	return text
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
func (c *codes) spend(text string, now time.Time) (by origin, ok bool) {
	text = codeTyped(text)
	if text == "" {
		return origin{}, false
	}
	sum := sha256.Sum256([]byte(text))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = slices.DeleteFunc(c.kept, func(k code) bool { return !now.Before(k.until) })
	for i, k := range c.kept {
		if k.sum == sum {
			c.kept = slices.Delete(c.kept, i, i+1)
			return k.by, true
		}
	}
	for i := range c.kept {
		c.kept[i].guesses++
	}
	c.kept = slices.DeleteFunc(c.kept, func(k code) bool { return k.guesses == maxGuesses })
	return origin{}, false
}
