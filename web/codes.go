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
	maxCodes = 16 // that wait to be used; the oldest goes
)

// codes are what links log in with: each counts once, for ten minutes, in this process alone.
type codes struct {
	mu   sync.Mutex
	kept []code // Guarded by mu: oldest first
}

type code struct {
	sum       [sha256.Size]byte
	principal string
	until     time.Time
}

// make returns a new code for a principal: 26 letters and digits, 130 random bits.
func (c *codes) make(principal string, now time.Time) string {
	text := rand.Text()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, code{sha256.Sum256([]byte(text)), principal, now.Add(codeLife)})
	c.kept = slices.Delete(c.kept, 0, max(len(c.kept)-maxCodes, 0))
	return text
}

// spend uses a code up, and tells whose it was.
func (c *codes) spend(text string, now time.Time) (principal string, ok bool) {
	sum := sha256.Sum256([]byte(text))
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, k := range c.kept {
		if k.sum == sum {
			c.kept = slices.Delete(c.kept, i, i+1)
			return k.principal, now.Before(k.until)
		}
	}
	return "", false
}
