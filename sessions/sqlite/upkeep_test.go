package sqlite

import (
	"testing"
	"time"
)

// TestJumpOfTheClock: nothing is deleted in the hour after the clock has jumped, in which somebody may set it back.
// Somebody who closes a laptop for the night has not made it jump.
func TestJumpOfTheClock(t *testing.T) {
	now := time.Now()
	var c clock
	for i, step := range []struct {
		after, skipped time.Duration
		doubted        bool
	}{
		{0, 30 * 365 * 24 * time.Hour, false}, // nothing is known before the first look
		{time.Second, 0, false},
		{time.Second, 12 * time.Hour, false},
		{time.Second, 400 * 24 * time.Hour, true},
		{doubtFor - time.Second, 0, true},
		{time.Second, 0, false},
		{time.Second, -400 * 24 * time.Hour, false}, // it was set back
		{time.Second, 25 * time.Hour, true},
		{time.Second, 25 * time.Hour, true},
	} {
		now = now.Add(step.after)
		if got := c.isDoubted(now, step.skipped); got != step.doubted {
			t.Errorf("step %d: %v", i, got)
		}
	}
}
