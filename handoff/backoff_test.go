package handoff

import (
	"math"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	b := Backoff{First: 250 * time.Millisecond, Longest: 10 * time.Second}
	for earlier, want := range map[int]time.Duration{
		-1: 250 * time.Millisecond, 0: 250 * time.Millisecond, 1: 500 * time.Millisecond, 5: 8 * time.Second,
		6: 10 * time.Second, 64: 10 * time.Second, math.MaxInt: 10 * time.Second,
	} {
		if got := b.Step(earlier); got != want {
			t.Errorf("after %d earlier failures: %s, want %s", earlier, got, want)
		}
		less := false
		for range 100 {
			got := b.Pause(earlier)
			if got < want/2 || got > want {
				t.Errorf("after %d earlier failures by chance: %s of %s", earlier, got, want)
			}
			less = less || got < want
		}
		if !less {
			t.Errorf("after %d earlier failures: no chance in a hundred pauses", earlier)
		}
	}
	if got := (Backoff{First: time.Minute, Longest: time.Second}).Step(0); got != time.Second {
		t.Errorf("a first above the longest: %s", got)
	}
	if got := (Backoff{First: 1, Longest: math.MaxInt64}).Step(math.MaxInt); got <= 0 {
		t.Errorf("doubled over the edge: %s", got)
	}
}
