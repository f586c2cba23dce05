package handoff

import (
	"math/rand/v2"
	"time"
)

// A Backoff says how long to pause between tries of what failed: First after the first failure, doubled
// after each further one, at most Longest. Both are above 0.
type Backoff struct{ First, Longest time.Duration }

// Step returns the pause after so many earlier failures (0: the first one), without chance.
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

// Jitter takes a random part off a pause, at most half of it, so that many that failed together do not come
// back together.
func Jitter(d time.Duration) time.Duration { return d - rand.N(d/2+1) }
