package realtime

import (
	"time"

	"github.com/tidwall/gjson"
)

const (
	// prefixPadding is how much sound before the speech a model counts as part of it, unless the session says otherwise
	// (API reference, turn_detection.prefix_padding_ms).
	prefixPadding = 300 * time.Millisecond
	// maxLag is how late a model may report that the caller began to speak. A report that would be later is not
	// believed.
	maxLag = 2 * time.Second
)

// A clock converts the model's count of the caller's sound, in milliseconds since the session began, into the time when
// that sound came. It is pure.
type clock struct {
	heard       time.Duration // length of all sound so far
	at          time.Time     // when the newest of it came
	resentSince time.Time     // when the oldest sound came that this session was sent again; zero: none
}

// add counts sound that came now.
func (c *clock) add(now time.Time, bytes, rate int) {
	c.heard += time.Duration(bytes) * time.Millisecond / time.Duration(rate)
	c.at = now
}

// began returns when the speech began that the model reports now, some hundred milliseconds late. start is the model's
// count. If that makes no sense, the result is now.
func (c *clock) began(now time.Time, start gjson.Result, padding time.Duration) time.Time {
	earliest := now.Add(-maxLag)
	if again := c.resentSince; !again.IsZero() { // the speech may be in that sound: better too early than too late
		if c.resentSince = (time.Time{}); again.Before(earliest) {
			earliest = again
		}
		if !start.Exists() {
			return earliest
		}
	}
	if !start.Exists() || c.at.IsZero() {
		return now
	}
	began := c.at.Add(time.Duration(start.Int())*time.Millisecond + padding - c.heard)
	if began.After(now) || began.Before(earliest) {
		return now
	}
	return began
}
