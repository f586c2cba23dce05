package call

import "time"

// A timer is a [time.Timer] that does not run until it is set.
type timer struct{ *time.Timer }

func newTimer() timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return timer{t}
}
