package handoff

import (
	"testing"
	"time"
	"unsafe"
)

// skip moves the clock on the wall alone.
func skip(t time.Time, d time.Duration) time.Time {
	t = t.Add(d)
	(*struct {
		wall uint64
		mono int64
	})(unsafe.Pointer(&t)).mono -= int64(d)
	return t
}

func TestPassed(t *testing.T) {
	from := time.Now()
	for name, c := range map[string]struct {
		to              time.Time
		passed, skipped time.Duration
	}{
		"awake":     {from.Add(time.Second), time.Second, 0},
		"suspended": {skip(from.Add(time.Second), time.Hour), time.Hour + time.Second, time.Hour},
		"set back":  {skip(from.Add(time.Second), -time.Hour), time.Second, -time.Hour},
		"read back": {from.Add(time.Second).Round(0), time.Second, 0},
	} {
		if p, s := Passed(from, c.to), Skipped(from, c.to); p != c.passed || s != c.skipped {
			t.Errorf("%s: %v passed, %v skipped", name, p, s)
		}
	}
}
