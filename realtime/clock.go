package realtime

import (
	"time"

	"github.com/tidwall/gjson"
)

const (
	// prefixPadding is how much sound before the speech a model counts to it, unless the session says
	// otherwise (API reference, turn_detection.prefix_padding_ms).
	prefixPadding = 300 * time.Millisecond
	// maxLag is how late a model may report that the caller began to speak. What says more is no clock.
	maxLag = 2 * time.Second
)

// A clock tells when the sound of the caller that a model counts in milliseconds of the session came. It
// is pure.
type clock struct {
	heard time.Duration // of sound so far
	at    time.Time     // when the newest of it came
}

// add counts sound that came now.
func (c *clock) add(now time.Time, bytes, rate int) {
	c.heard += time.Duration(bytes) * time.Millisecond / time.Duration(rate)
	c.at = now
}

// began returns when speech began of which the model tells now: its event comes hundreds of milliseconds
// later. Where the model's count is not that of the session, it is now.
func (c *clock) began(now time.Time, start gjson.Result, padding time.Duration) time.Time {
	if !start.Exists() || c.at.IsZero() {
		return now
	}
	began := c.at.Add(time.Duration(start.Int())*time.Millisecond + padding - c.heard)
	if began.After(now) || now.Sub(began) > maxLag {
		return now
	}
	return began
}
