package handoff

import (
	"math/rand/v2"
	"time"
)

// A Backoff is the pause between tries: First after the first failure, doubled after each further one, at most Longest.
// Both are above 0.
type Backoff struct{ First, Longest time.Duration }

// Step returns the pause after a failure, without jitter; earlier is the number of failures before it.
func (b Backoff) Step(earlier int) time.Duration {
	d := b.First
	for ; earlier > 0 && d <= b.Longest/2; earlier-- {
		d *= 2
	}
	if earlier > 0 {
		return b.Longest
	}
	return min(d, b.Longest)
}

// Pause is [Backoff.Step] with [Jitter].
func (b Backoff) Pause(earlier int) time.Duration { return Jitter(b.Step(earlier)) }

// Jitter takes a random part off a pause, at most half of it, so that many tries that failed together are not repeated
// together.
func Jitter(d time.Duration) time.Duration { return d - rand.N(d/2+1) }
