package realtime

import (
	"math"
	"time"

	"switchboard/handoff"
)

// guardStep is how often it is asked whether what let a client in has ended: everything that it opened is to end within
// 15 s, and the answer may take a moment.
const guardStep = 10 * time.Second

// guard asks every step whether the key or login of a grant was taken away ([handoff.Grant.Revoked]), and then calls
// end, once. stop ends that, and waits for an answer that is on its way. Between two questions there is only a timer,
// as every call has a guard.
func guard(step time.Duration, revoked func() error, end func(*handoff.Error)) (stop func()) {
	if revoked == nil {
		return func() {}
	}
	asking := make(chan struct{}, 1) // holds a token while it is asked, and from stop on
	var timer *time.Timer
	timer = time.AfterFunc(math.MaxInt64, func() {
		select {
		case asking <- struct{}{}:
		default: // it was stopped
			return
		}
		err := revoked()
		if err != nil {
			end(handoff.AsError(err))
		}
		<-asking
		if err == nil {
			timer.Reset(step) // after stop, the timer finds the token taken
		}
	})
	timer.Reset(step) // not before timer is set
	return func() {
		asking <- struct{}{}
		timer.Stop()
	}
}
