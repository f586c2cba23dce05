package call

import "time"

// newTimer returns a timer that does not run until it is set.
func newTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}
