package realtime

import (
	"sync"
	"time"

	"switchboard/handoff"
)

// guardStep is how often it is asked whether what let a client in has ended: everything that it opened is to end within
// 15 s, and the answer may take a moment.
const guardStep = 10 * time.Second

// guard asks every step whether the key or login of a grant was taken away ([handoff.Grant.Revoked]), and then calls
// end, once. stop ends that, and waits for an answer that is on its way.
func guard(step time.Duration, g handoff.Grant, end func(*handoff.Error)) (stop func()) {
	if g.Revoked == nil {
		return func() {}
	}
	var asking sync.WaitGroup
	over := make(chan struct{})
	asking.Go(func() {
		tick := time.NewTicker(step)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-over:
				return
			}
			if err := g.Revoked(); err != nil {
				end(handoff.AsError(err))
				return
			}
		}
	})
	return func() {
		close(over)
		asking.Wait()
	}
}
