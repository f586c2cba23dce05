package web

import (
	"crypto/rand"
	"crypto/sha256"
	"slices"
	"sync"
	"time"
)

const (
	codeLife = 10 * time.Minute
	maxCodes = 16 // of one origin, that wait to be used; the oldest goes
)

// codes are what links log in with: each counts once, for ten minutes, in this process alone.
type codes struct {
	mu   sync.Mutex
	kept []code // Guarded by mu: oldest first
}

type code struct {
	sum   [sha256.Size]byte
	by    origin
	until time.Time
}

// make returns a new code: 26 letters and digits, 130 random bits.
func (c *codes) make(by origin, now time.Time) string {
	text := rand.Text()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, code{sha256.Sum256([]byte(text)), by, now.Add(codeLife)})
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

// spend uses a code up, and tells by what it was made.
func (c *codes) spend(text string, now time.Time) (by origin, ok bool) {
	sum := sha256.Sum256([]byte(text))
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, k := range c.kept {
		if k.sum == sum {
			c.kept = slices.Delete(c.kept, i, i+1)
			return k.by, now.Before(k.until)
		}
	}
	return origin{}, false
}
